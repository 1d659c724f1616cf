package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"skep/host/internal/recompose"
	"skep/host/internal/rest"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

var _ rest.Definitions = (*definitions)(nil)

// Load puts a definition that came over the network in the place of a tenant's.
func (d *definitions) Load(ctx context.Context, tenant, by string, text []byte) (name string, err error) {
	d.change.Lock()
	defer d.change.Unlock()
	s := d.current()
	c, err := s.judge(text)
	var refused recompose.Refused
	if errors.As(err, &refused) {
		return "", &swarm.Refusal{Kind: swarm.ErrInvalid, Text: refused.Error()}
	}
	if err == nil {
		err = d.mayRun(s, tenant, c)
	}
	if err != nil {
		return "", err
	}
	o := origin{c, by, time.Now()}
	err = d.store.LoadDefinition(ctx, sqlite.Loaded{Tenant: tenant, Swarm: c.def.Name, At: o.at, By: by, Text: text}, record(tenant, c))
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	d.take(tenant, o)
	d.exec.Bind(d.bindings())
	d.mu.Unlock()
	return c.def.Name, d.swarm.Replace([]swarm.Definition{c.of(tenant)})
}

// mayRun refuses to give the module of an agent in quarantine to one of another
// name.
func (d *definitions) mayRun(s state, tenant string, c *composed) error {
	d.mu.Lock()
	before := s.of(tenant)
	d.mu.Unlock()
	confined := map[string]string{}
	for _, known := range []*composed{s.own, before} {
		for _, a := range known.x.Agents {
			if _, yes := d.confined.Why(tenant, c.def.Name, a.Name); yes {
				confined[a.SHA256] = a.Name
			}
		}
	}
	for _, a := range c.x.Agents {
		if name, yes := confined[a.SHA256]; yes && name != a.Name {
			return &swarm.Refusal{Kind: swarm.ErrInvalid, Text: fmt.Sprintf(
				"agents.%s: agent %q of the same module is in quarantine; an operator may release it", a.Name, name)}
		}
	}
	return nil
}

// Unload gives a tenant the operator's definition.
func (d *definitions) Unload(ctx context.Context, tenant string) error {
	d.change.Lock()
	defer d.change.Unlock()
	s := d.current()
	if err := d.store.UnloadDefinition(ctx, tenant, s.own.def.Name); err != nil {
		return err
	}
	return d.restore(tenant)
}

// forget gives a tenant that was erased the operator's definition.
func (d *definitions) forget(tenant string) error {
	d.change.Lock()
	defer d.change.Unlock()
	return d.restore(tenant)
}

// restore puts the operator's definition in force for a tenant. The caller holds
// d.change.
func (d *definitions) restore(tenant string) error {
	d.mu.Lock()
	delete(d.loaded, tenant)
	own := d.own
	d.mu.Unlock()
	if _, served := d.swarm.Definition(tenant, own.def.Name); !served {
		return nil
	}
	return d.swarm.Replace([]swarm.Definition{own.of(tenant)})
}

// InForce returns what a tenant's new tasks go by.
func (d *definitions) InForce(tenant string) rest.InForce {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.of(tenant)
	in := rest.InForce{Swarm: c.def.Name, Digest: c.digest, Origin: "file", Definition: json.RawMessage(c.x.JSON())}
	if o, loaded := d.loaded[tenant]; loaded {
		in.Origin, in.By, in.At = "network", o.by, o.at
	}
	return in
}
