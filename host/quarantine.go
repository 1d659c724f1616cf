package host

import (
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
