package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"skep/host/internal/config"
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
	h.quarantine, err = runset.OpenQuarantine(filepath.Join(h.opt.DataDir, quarantineName))
	return err
}

// quarantine is the list in the data directory, in the runtime's words.
type quarantine struct {
	*runset.Quarantine
	// module returns the digest of what an agent of a definition runs on.
	module func(definition, agent string) string
}

var (
	_ swarm.RunSet     = (*runset.Set)(nil)
	_ swarm.Quarantine = quarantine{}
)

// Why says why an agent must not run.
func (q quarantine) Why(tenant, name, agent string) (string, bool) {
	return q.Quarantine.Why(runset.Agent{Tenant: tenant, Swarm: name, Name: agent})
}

// Confine puts an agent in.
func (q quarantine) Confine(tenant, name, agent, definition, why string) error {
	a := runset.Agent{Tenant: tenant, Swarm: name, Name: agent}
	return q.Quarantine.Confine(a, q.module(definition, agent), why, time.Now())
}

// Release takes an agent out.
func (q quarantine) Release(tenant, name, agent string) (bool, error) {
	return q.Quarantine.Release(runset.Agent{Tenant: tenant, Swarm: name, Name: agent})
}

// mayRun refuses to give a module on which an agent is in quarantine to an agent
// that did not have it before, neither in what is in force nor in the file. The
// caller holds d.change.
func (d *definitions) mayRun(tenant string, c *composed) error {
	known := slices.Concat(d.own.x.Agents, d.of(tenant).x.Agents)
	confined := slices.DeleteFunc(d.confined.Agents(), func(q runset.Confined) bool {
		return q.Tenant != tenant || q.Swarm != c.def.Name
	})
	for _, a := range c.x.Agents {
		on := slices.DeleteFunc(slices.Clone(confined), func(q runset.Confined) bool { return !ranOn(q, a.SHA256, known) })
		had := slices.ContainsFunc(known, func(k config.Agent) bool { return k.Name == a.Name && k.SHA256 == a.SHA256 })
		itself := slices.ContainsFunc(on, func(q runset.Confined) bool { return q.Name == a.Name })
		if len(on) > 0 && !had && !itself {
			return &swarm.Refusal{Kind: swarm.ErrInvalid, Text: fmt.Sprintf(
				"agents.%s: agent %q of the same module is in quarantine; an operator may release it", a.Name, on[0].Name)}
		}
	}
	return nil
}

// ranOn reports whether an agent came into quarantine on a module. Where the entry
// does not say, it is what the agent runs on now, if it is known.
func ranOn(q runset.Confined, module string, known []config.Agent) bool {
	if q.Module != "" {
		return q.Module == module
	}
	return module != "" && slices.ContainsFunc(known, func(k config.Agent) bool { return k.Name == q.Name && k.SHA256 == module })
}
