package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"skep/host/internal/runset"
	"skep/host/internal/swarm"
)

// Names of what a data directory says about turns that killed a host.
const (
	runningName    = "running"
	quarantineName = "quarantine.json"
)

// Confined is an agent in quarantine.
type Confined struct {
	Tenant, Swarm, Agent, Why string
	Since                     time.Time
}

// Quarantine lists the agents that must not run, in the order they came, also
// while a host uses the directory. A directory that is not there is
// [ErrNotFound].
func (d Data) Quarantine() (list []Confined, err error) {
	if _, err := os.Stat(d.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, noStore(d.Dir)
	}
	q, err := runset.OpenQuarantine(filepath.Join(d.Dir, quarantineName))
	if err != nil {
		return nil, err
	}
	for _, c := range q.Agents() {
		list = append(list, Confined{c.Tenant, c.Swarm, c.Name, c.Why, c.Since})
	}
	return list, nil
}

// openRunSet opens what tells which turns killed the last host.
func (h *Host) openRunSet() (err error) {
	if h.running, err = runset.Open(filepath.Join(h.opt.DataDir, runningName), h.log); err != nil {
		return err
	}
	q, err := runset.OpenQuarantine(filepath.Join(h.opt.DataDir, quarantineName))
	h.quarantine = quarantine{q}
	return err
}

// quarantine is the list in the data directory, in the runtime's words.
type quarantine struct{ *runset.Quarantine }

var (
	_ swarm.RunSet     = (*runset.Set)(nil)
	_ swarm.Quarantine = quarantine{}
)

// Why says why an agent must not run.
func (q quarantine) Why(tenant, name, agent string) (string, bool) {
	return q.Quarantine.Why(runset.Agent{Tenant: tenant, Swarm: name, Name: agent})
}

// Confine puts an agent in.
func (q quarantine) Confine(tenant, name, agent, why string) error {
	return q.Quarantine.Confine(runset.Agent{Tenant: tenant, Swarm: name, Name: agent}, why, time.Now())
}

// Release takes an agent out.
func (q quarantine) Release(tenant, name, agent string) (bool, error) {
	return q.Quarantine.Release(runset.Agent{Tenant: tenant, Swarm: name, Name: agent})
}
