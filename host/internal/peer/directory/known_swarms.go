package directory

import (
	"context"
	"fmt"
	"strings"

	"skep/host/internal/api/audit"
	"skep/host/internal/swarm"
)

var _ swarm.KnownSwarms = (*Directory)(nil)

// List implements [swarm.KnownSwarms]. A swarm counts as down only after a failed
// health check, not before the first one.
func (d *Directory) List() (known []swarm.KnownSwarm) {
	if d.registry == nil {
		return nil
	}
	for _, e := range d.registry.Entries() {
		known = append(known, swarm.KnownSwarm{Name: e.Name, Entrypoint: e.Entrypoint, Description: e.Description, Down: e.LastError != ""})
	}
	return known
}

// Discover implements [swarm.KnownSwarms]. The audit log records what an agent has
// discovered, and failures as far as its limit on refusals allows.
func (d *Directory) Discover(ctx context.Context, s swarm.DiscoveryRequest) ([]string, error) {
	if d.registry == nil {
		return nil, fmt.Errorf("the host has not started yet")
	}
	entry := audit.Entry{
		Act: "swarm.discover", Outcome: audit.Done, Tenant: s.Task.Tenant, Principal: s.Task.Instance, Target: s.URL,
		Reason: fmt.Sprintf("agent %s, task %s", s.Agent, s.Task.Task),
	}
	found, err := d.registry.Discover(ctx, s.URL)
	if err != nil {
		entry.Reason += ": " + err.Error()
		d.opt.Audit.RecordRefusal(entry)
		return nil, err
	}
	var names []string
	for _, e := range found {
		names = append(names, e.Name)
	}
	entry.Reason += ": " + strings.Join(names, ", ")
	return names, d.opt.Audit.Record(entry)
}
