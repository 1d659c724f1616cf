package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	c, err := d.judge(text)
	var refused recompose.Refused
	if errors.As(err, &refused) {
		return "", &swarm.Refusal{Kind: swarm.ErrInvalid, Text: refused.Error()}
	}
	if err == nil {
		err = d.mayRun(tenant, c)
	}
	if err == nil {
		err = d.makeRoom(ctx, tenant, c.digest)
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

// makeRoom refuses a definition that would be one more than a tenant may have kept,
// after those have gone that nobody needs. The caller holds d.change.
func (d *definitions) makeRoom(ctx context.Context, tenant, digest string) error {
	if full, err := d.full(ctx, tenant, digest); !full || err != nil {
		return err
	}
	if err := d.tidy(ctx); err != nil {
		return err
	}
	if full, err := d.full(ctx, tenant, digest); !full || err != nil {
		return err
	}
	return &swarm.Refusal{Kind: swarm.ErrLimit, Retry: sweepEvery, Text: fmt.Sprintf(
		"tenant '%s' has %d definitions, the most there may be: the one in force and those that its unfinished tasks were begun with; finish or cancel tasks of older ones, then load again",
		tenant, d.most)}
}

// full reports whether a tenant has as many definitions as it may, without that
// with the digest.
func (d *definitions) full(ctx context.Context, tenant, digest string) (bool, error) {
	list, err := d.store.Definitions(ctx)
	n := 0
	for _, k := range list {
		switch {
		case k.Tenant != tenant:
		case k.Digest == digest:
			return false, err
		default:
			n++
		}
	}
	return n >= d.most, err
}

// Unload gives a tenant the operator's definition. Whom the file gives a module is
// the operator's choice, so quarantine holds up nothing but the agents in it.
func (d *definitions) Unload(ctx context.Context, tenant string) error {
	d.change.Lock()
	defer d.change.Unlock()
	if err := d.store.UnloadDefinition(ctx, tenant, d.own.def.Name); err != nil {
		return err
	}
	return d.restore(tenant)
}

// forget gives a tenant that was erased the operator's definition, unless it has
// loaded another one since. What is kept for it that cannot be read is not in
// force.
func (d *definitions) forget(ctx context.Context, tenant string) error {
	d.tools.forget(tenant)
	d.change.Lock()
	defer d.change.Unlock()
	kept, err := d.store.Loaded(ctx)
	if slices.ContainsFunc(kept, func(l sqlite.Loaded) bool { return l.Tenant == tenant }) {
		return nil
	}
	return errors.Join(err, d.restore(tenant))
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
