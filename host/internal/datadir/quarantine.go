package datadir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"skep/host/internal/quarantine"
	"skep/host/internal/store/sqlite"
)

// QuarantineName is the file of the agents in quarantine that an earlier version has left in a
// data directory.
const QuarantineName = "quarantine.json"

// Confined is an agent in quarantine.
type Confined struct {
	Tenant, Swarm, Agent, Why string
	Since                     time.Time
}

// Quarantine lists the agents in quarantine, oldest first, also while a host uses the
// directory or the server. A missing directory is [ErrNotFound].
func (d Data) Quarantine(ctx context.Context) (list []Confined, err error) {
	if _, err := os.Stat(d.Dir); errors.Is(err, fs.ErrNotExist) && d.Exists() != nil {
		return nil, noStore(d.Dir)
	}
	all, err := quarantine.ReadFile(d.file(QuarantineName))
	if err != nil {
		return nil, err
	}
	err = d.read(ctx, func(r *sqlite.Reader) error {
		kept, err := r.Confined(ctx)
		// A start that was broken off has left agents in both.
		all = slices.DeleteFunc(all, func(c quarantine.Confined) bool {
			return slices.ContainsFunc(kept, func(k quarantine.Confined) bool { return k.Agent == c.Agent })
		})
		all = append(all, kept...)
		return err
	})
	if err != nil && !errors.Is(err, ErrNoStore) {
		return nil, err
	}
	for _, c := range all {
		list = append(list, Confined{c.Tenant, c.Swarm, c.Name, c.Why, c.Since})
	}
	return list, nil
}
