package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"skep/host/internal/quarantine"
)

// QuarantineName is the file of the agents in quarantine in a data directory.
const QuarantineName = "quarantine.json"

// Confined is an agent in quarantine.
type Confined struct {
	Tenant, Swarm, Agent, Why string
	Since                     time.Time
}

// Quarantine lists the agents in quarantine, oldest first, also while a host uses the
// directory. A missing directory is [ErrNotFound].
func (d Data) Quarantine() (list []Confined, err error) {
	if _, err := os.Stat(d.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, noStore(d.Dir)
	}
	q, err := quarantine.OpenQuarantine(filepath.Join(d.Dir, QuarantineName))
	if err != nil {
		return nil, err
	}
	for _, c := range q.Agents() {
		list = append(list, Confined{c.Tenant, c.Swarm, c.Name, c.Why, c.Since})
	}
	return list, nil
}
