package swarm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Library finds definitions that are in force no more. It is safe for
// concurrent use.
type Library interface {
	// Definition returns the definition of a tenant's swarm with a digest, or
	// [ErrNotFound].
	Definition(ctx context.Context, tenant, swarm, digest string) (*Definition, error)
}

// definitions are what tasks go by: new ones by the current, begun ones by that
// which they were begun with.
type definitions struct {
	shelf Library // nil for none

	mu      sync.RWMutex
	current map[swarmKey]*Definition
	older   map[olderKey]*Definition
}

type olderKey struct {
	swarmKey
	digest string
}

func newDefinitions(shelf Library) definitions {
	return definitions{shelf: shelf, current: map[swarmKey]*Definition{}, older: map[olderKey]*Definition{}}
}

func (d *Definition) key() swarmKey { return swarmKey{d.Tenant, d.Name} }

// equip checks definitions and returns copies whose agents have their tools.
// Tenants that have agents in common have the copies in common.
func (r *Runtime) equip(defs []Definition) ([]Definition, error) {
	defs = slices.Clone(defs)
	copies := map[*Agent][]Agent{}
	for i := range defs {
		def := &defs[i]
		if err := def.check(); err != nil {
			return nil, err
		}
		first := &def.Agents[0] // check has found one
		if copies[first] == nil {
			agents, err := r.withTools(def)
			if err != nil {
				return nil, err
			}
			copies[first] = agents
		}
		def.Agents = copies[first]
	}
	return defs, nil
}

func (r *Runtime) withTools(def *Definition) ([]Agent, error) {
	agents := slices.Clone(def.Agents)
	for i := range agents {
		if err := agents[i].equip(r.book, def); err != nil {
			return nil, err
		}
	}
	return agents, nil
}

// Replace puts definitions in the place of those that their tenants' swarms have
// now, all at the same time. Tasks that run or are paused keep the one they were
// begun with until they end, as far as narrowed, whose definitions are of no tenant,
// leaves of it to the turns that begin later. With an error nothing has changed.
func (r *Runtime) Replace(defs []Definition, narrowed ...Definition) error {
	for i := range defs {
		if _, ok := r.definition(defs[i].Tenant, defs[i].Name); !ok {
			return fmt.Errorf("tenant %q has no swarm %q", defs[i].Tenant, defs[i].Name)
		}
	}
	defs, err := r.equip(defs)
	if err != nil {
		return err
	}
	if narrowed, err = r.equip(narrowed); err != nil {
		return err
	}
	d := &r.defs
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range defs {
		def := &defs[i]
		if old := d.current[def.key()]; old.Digest != def.Digest {
			d.older[olderKey{old.key(), old.Digest}] = old
		}
		delete(d.older, olderKey{def.key(), def.Digest})
		d.current[def.key()] = def
	}
	d.narrow(narrowed)
	return nil
}

// narrow puts what is left of older definitions in their place. The caller holds mu.
func (d *definitions) narrow(narrowed []Definition) {
	left := make(map[string]Definition, len(narrowed))
	for _, def := range narrowed {
		left[def.Digest] = def
	}
	for key := range d.older {
		if def, ok := left[key.digest]; ok {
			def.Tenant = key.tenant
			d.older[key] = &def
		}
	}
}

// today returns what is left of a definition that a task was begun with. The caller
// holds mu.
func (d *definitions) today(begun *Definition) *Definition {
	if def := d.current[begun.key()]; def != nil && def.Digest == begun.Digest {
		return def
	}
	if def := d.older[olderKey{begun.key(), begun.Digest}]; def != nil {
		return def
	}
	return begun
}

func (r *Runtime) today(begun *Definition) *Definition {
	r.defs.mu.RLock()
	defer r.defs.mu.RUnlock()
	return r.defs.today(begun)
}

// Forget lets go of the definitions that are in force no more and not wanted: no
// task in the store that runs or is paused was begun with one, and none of
// [Runtime.InUse] is among them.
func (r *Runtime) Forget(wanted func(digest string) bool) {
	r.defs.mu.Lock()
	defer r.defs.mu.Unlock()
	maps.DeleteFunc(r.defs.older, func(key olderKey, _ *Definition) bool { return !wanted(key.digest) })
}

// InUse returns the digests of the definitions that are in force or that tasks in
// memory go by. Of other tasks the store knows; who asks both asks the runtime
// first, because tasks go from memory to the store.
func (r *Runtime) InUse() map[string]bool {
	used := map[string]bool{}
	r.defs.mu.RLock()
	for _, def := range r.defs.current {
		used[def.Digest] = true
	}
	r.defs.mu.RUnlock()
	r.mu.Lock()
	tasks := make([]*live, 0, len(r.tasks))
	for _, t := range r.tasks {
		tasks = append(tasks, t)
	}
	r.mu.Unlock()
	for _, t := range tasks {
		t.mu.Lock()
		used[t.def.Digest] = true
		for _, rn := range t.running {
			used[rn.def.Digest] = true
		}
		t.mu.Unlock()
	}
	return used
}

func (r *Runtime) definition(tenant, name string) (*Definition, bool) {
	r.defs.mu.RLock()
	defer r.defs.mu.RUnlock()
	def, ok := r.defs.current[swarmKey{tenant, name}]
	return def, ok
}

// renew makes a task that is new or has ended go by the current definition, and any
// other by what is left of its own. The caller holds t.commit. A task takes its
// definition while none can be replaced, so that whoever replaces one and then asks
// [Runtime.InUse] sees it.
func (r *Runtime) renew(t *live) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.defs.mu.RLock()
	defer r.defs.mu.RUnlock()
	if t.exists && !t.rec.State.Ended() {
		t.def = r.defs.today(t.def)
	} else if def, ok := r.defs.current[t.key.swarm()]; ok {
		t.def = def
	}
}

// begunWith returns what a task of the store goes by.
func (r *Runtime) begunWith(ctx context.Context, rec Task) (*Definition, error) {
	key := olderKey{rec.Key.swarm(), rec.Definition}
	r.defs.mu.RLock()
	current, ok := r.defs.current[key.swarmKey]
	older := r.defs.older[key]
	r.defs.mu.RUnlock()
	switch {
	case !ok:
		return nil, refuse(ErrNotFound, "swarm '%s' not found", key.name)
	case rec.State.Ended(), rec.Definition == "", rec.Definition == current.Digest:
		return current, nil
	case older != nil:
		return older, nil
	}
	def, err := r.lookUp(ctx, key)
	if errors.Is(err, ErrNotFound) {
		r.log.Warn("the definition that a task was begun with is gone; it goes on with the current one",
			"tenant", key.tenant, "swarm", key.name, "task_id", rec.Key.Task, "definition", rec.Definition)
		return current, nil
	}
	return def, err
}

func (r *Runtime) lookUp(ctx context.Context, key olderKey) (*Definition, error) {
	if r.defs.shelf == nil {
		return nil, ErrNotFound
	}
	def, err := r.defs.shelf.Definition(ctx, key.tenant, key.name, key.digest)
	var equipped []Definition
	if err == nil {
		equipped, err = r.equip([]Definition{*def})
	}
	if err != nil {
		return nil, fmt.Errorf("definition %s of swarm %q: %w", key.digest, key.name, err)
	}
	def = &equipped[0]
	r.defs.mu.Lock()
	defer r.defs.mu.Unlock()
	r.defs.older[key] = def
	return def, nil
}
