package swarm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Library finds definitions that are no longer in force. It is safe for concurrent use.
type Library interface {
	// Definition returns the definition with a digest of a tenant's swarm, or
	// [ErrNotFound].
	Definition(ctx context.Context, tenant, swarm, digest string) (*Definition, error)
}

// definitions are the definitions in force, which new tasks use, and the older ones
// that unfinished tasks began with.
type definitions struct {
	recorded Library // nil for none

	mu      sync.RWMutex
	current map[swarmKey]*Definition
	older   map[olderKey]*Definition
	// replaced counts the replacements: what the library gave before one may be wider
	// than today's grants. next is closed by the next one.
	replaced int
	next     chan struct{}
}

type olderKey struct {
	swarmKey
	digest string
}

func newDefinitions(recorded Library) definitions {
	return definitions{recorded: recorded, current: map[swarmKey]*Definition{}, older: map[olderKey]*Definition{}, next: make(chan struct{})}
}

func (d *Definition) key() swarmKey { return swarmKey{d.Tenant, d.Name} }

// prepareDefinitions returns copies of definitions that come in force, with the tools of
// their agents. Tenants that share agents share the tools.
func (r *Runtime) prepareDefinitions(defs []Definition) ([]Definition, error) {
	if err := validateAll(defs); err != nil {
		return nil, err
	}
	defs = slices.Clone(defs)
	shared := map[*Agent]*toolsets{}
	for i := range defs {
		def := &defs[i]
		first := &def.Agents[0] // validate has found one
		if shared[first] == nil {
			kept, err := r.keepToolsets(def)
			if err != nil {
				return nil, err
			}
			shared[first] = kept
		}
		def.toolsets = shared[first]
	}
	return defs, nil
}

func validateAll(defs []Definition) error {
	for i := range defs {
		if err := defs[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceDefinitions replaces the definitions of their tenants' swarms, all at the same
// time. Tasks that run or are paused keep the definition they began with until they
// end; narrowed, whose definitions have no tenant, restricts it for turns that begin
// later. With an error nothing has changed.
func (r *Runtime) ReplaceDefinitions(defs []Definition, narrowed ...Definition) error {
	for i := range defs {
		if _, ok := r.definition(defs[i].Tenant, defs[i].Name); !ok {
			return fmt.Errorf("tenant %q has no swarm %q", defs[i].Tenant, defs[i].Name)
		}
	}
	defs, err := r.prepareDefinitions(defs)
	if err != nil {
		return err
	}
	if err := validateAll(narrowed); err != nil {
		return err
	}
	d := &r.defs
	d.mu.Lock()
	defer d.mu.Unlock()
	var replaced []*Definition
	for i := range defs {
		def := &defs[i]
		old := d.current[def.key()]
		replaced = append(replaced, old)
		if old.Digest != def.Digest {
			d.older[olderKey{old.key(), old.Digest}] = old
		}
		delete(d.older, olderKey{def.key(), def.Digest})
		d.current[def.key()] = def
	}
	d.dropToolsets(replaced)
	d.applyNarrowed(narrowed)
	d.replaced++
	close(d.next)
	d.next = make(chan struct{})
	return nil
}

// nextReplacement is closed when definitions are replaced.
func (d *definitions) nextReplacement() <-chan struct{} {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.next
}

// dropToolsets drops the toolsets of replaced definitions, which tasks in memory still
// hold, unless another tenant has them in force. The caller holds mu.
func (d *definitions) dropToolsets(replaced []*Definition) {
	inForce := map[*toolsets]bool{}
	for _, def := range d.current {
		inForce[def.toolsets] = true
	}
	for _, def := range replaced {
		if !inForce[def.toolsets] {
			def.toolsets.drop()
		}
	}
}

// applyNarrowed replaces older definitions by their narrowed form. The caller holds mu.
func (d *definitions) applyNarrowed(narrowed []Definition) {
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

// effective returns the form, narrowed or not, of a definition that a task began with.
// The caller holds mu.
func (d *definitions) effective(begun *Definition) *Definition {
	if def := d.current[begun.key()]; def != nil && def.Digest == begun.Digest {
		return def
	}
	if def := d.older[olderKey{begun.key(), begun.Digest}]; def != nil {
		return def
	}
	return begun
}

func (r *Runtime) effectiveDefinition(begun *Definition) *Definition {
	r.defs.mu.RLock()
	defer r.defs.mu.RUnlock()
	return r.defs.effective(begun)
}

// ForgetDefinitions drops the older definitions that are not wanted. A definition must
// be wanted while a running or paused task in the store began with it, or
// [Runtime.DefinitionsInUse] returns it.
func (r *Runtime) ForgetDefinitions(wanted func(digest string) bool) {
	r.defs.mu.Lock()
	defer r.defs.mu.Unlock()
	maps.DeleteFunc(r.defs.older, func(key olderKey, _ *Definition) bool { return !wanted(key.digest) })
}

// DefinitionsInUse returns the digests of the definitions in force and of those that
// tasks in memory use. The store knows the other tasks. A caller that needs both asks
// the runtime first, because tasks move from memory to the store.
func (r *Runtime) DefinitionsInUse() map[string]bool {
	used := map[string]bool{}
	r.defs.mu.RLock()
	for _, def := range r.defs.current {
		used[def.Digest] = true
	}
	r.defs.mu.RUnlock()
	r.mu.Lock()
	tasks := make([]*activeTask, 0, len(r.tasks))
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

// refreshDefinition gives a new or ended task the current definition, and any other the
// effective form of its own. The caller holds t.commit. Replacement is locked out
// meanwhile, so that a caller that replaces a definition and then reads
// [Runtime.DefinitionsInUse] sees the task's.
func (r *Runtime) refreshDefinition(t *activeTask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.defs.mu.RLock()
	defer r.defs.mu.RUnlock()
	if t.exists && !t.rec.State.Ended() {
		t.def = r.defs.effective(t.def)
	} else if def, ok := r.defs.current[t.key.swarm()]; ok {
		t.def = def
	}
}

// loadDefinition returns the definition of a task that comes from the store.
func (r *Runtime) loadDefinition(ctx context.Context, rec Task) (*Definition, error) {
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
	def, err := r.loadFromLibrary(ctx, key)
	if errors.Is(err, ErrNotFound) {
		r.log.Warn("the definition that a task was begun with is gone; it goes on with the current one",
			"tenant", key.tenant, "swarm", key.name, "task_id", rec.Key.Task, "definition", rec.Definition)
		return current, nil
	}
	return def, err
}

func (r *Runtime) loadFromLibrary(ctx context.Context, key olderKey) (*Definition, error) {
	if r.defs.recorded == nil {
		return nil, ErrNotFound
	}
	for {
		replaced := r.defs.countReplaced()
		def, err := r.defs.recorded.Definition(ctx, key.tenant, key.name, key.digest)
		if err == nil {
			err = def.validate()
		}
		if err != nil {
			return nil, fmt.Errorf("definition %s of swarm %q: %w", key.digest, key.name, err)
		}
		if r.defs.addOlder(key, def, replaced) {
			return def, nil
		}
	}
}

func (d *definitions) countReplaced() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.replaced
}

// addOlder adds a definition that the library gave after so many replacements. It adds
// none if there was another since.
func (d *definitions) addOlder(key olderKey, def *Definition, replaced int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.replaced != replaced {
		return false
	}
	d.older[key] = def
	return true
}
