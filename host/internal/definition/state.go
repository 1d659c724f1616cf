package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/definition/narrowing"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/egress"
)

// state is what is in force.
type state struct {
	file narrowing.File
	resources
	// own is the operator's composition.
	own *runnable
	// bound is everything that can be run, by digest.
	bound map[string]*runnable
	// loaded are the definitions that came over the network, by tenant.
	loaded map[string]loadedDefinition
	// damaged are the tenants whose loaded definition cannot be read. They have no swarm:
	// the file's own might allow more.
	damaged map[string]bool
}

// loadedDefinition is a composition that came over the network, from whom and when.
type loadedDefinition struct {
	*runnable
	by string
	at time.Time
}

// isFrom reports whether a composition was made of a stored definition.
func (d loadedDefinition) isFrom(stored sqlite.Loaded) bool {
	return d.at.Equal(stored.At) && d.by == stored.By
}

// newState makes the state of a configuration. What it needs later is durable on return.
func (l *Library) newState(ctx context.Context, cfg *config.Config, modules map[string]Module) (state, error) {
	http := cfg.Limits.HTTP
	models, faults := l.providers.open(cfg)
	if len(faults) > 0 {
		return state{}, faults
	}
	files, faults := openRoots(cfg, l.keeper)
	if len(faults) > 0 {
		return state{}, faults
	}
	servers := l.tools.prepare(cfg)
	s := state{
		file: narrowing.File{Config: cfg, Modules: map[string]string{}, Reaches: includes},
		resources: resources{
			web:    newClient(egress.Options{Timeout: http.Timeout, MaxRequestBody: int64(http.Request), MaxResponseBody: int64(http.Response)}, l.opt.Network),
			models: models, files: files, servers: servers, tools: serversBySource(cfg, servers), act: l.opt.Act,
		},
		bound: map[string]*runnable{}, loaded: map[string]loadedDefinition{}, damaged: map[string]bool{},
	}
	byDigest := map[string]capability.Module{}
	for name, m := range modules {
		s.file.Modules[name], byDigest[m.Digest()] = m.Digest(), m
	}
	own := s.file.Own()
	s.own = bind(cfg, s.resources, runnable{digest: own.Digest(), composition: own, operators: true, modules: byDigest}, own)
	s.bound[s.own.digest] = s.own
	if err := l.persist(ctx, "", s.own); err != nil {
		return s, err
	}
	loaded, err := l.store.Loaded(ctx)
	if err != nil {
		return s, err
	}
	for _, stored := range loaded {
		d, err := l.restoreLoaded(ctx, &s, stored)
		if err == nil && d.runnable != nil {
			s.setLoaded(stored.Tenant, d)
		}
		if err != nil && !isUnreadable(err) {
			return s, err
		}
		if err != nil {
			s.damaged[stored.Tenant] = true
			l.logUnused(slog.LevelError, "a loaded definition cannot be read; its tenant is not served, and all others are. Restore the data directory from a backup, or unload the definition or erase the tenant and restart", stored, err)
		}
	}
	return s, nil
}

// errNoJSON is the error of a stored definition that is no JSON any more.
var errNoJSON = errors.New("the stored text is no JSON")

// restoreLoaded returns a tenant's loaded definition, nothing if the file does not cover it any more or the tenant is
// being erased: then it has the file's own.
func (l *Library) restoreLoaded(ctx context.Context, s *state, stored sqlite.Loaded) (d loadedDefinition, err error) {
	if stored.Damaged != nil {
		return d, stored.Damaged
	}
	if !json.Valid(stored.Text) {
		return d, errNoJSON
	}
	r, err := s.admit(stored.Text)
	if err == nil && stored.Swarm != s.own.def.Name {
		err = narrowing.Refused{{Path: "swarm.name", Text: fmt.Sprintf("it is of swarm %q, the file's is %q", stored.Swarm, s.own.def.Name)}}
	}
	var refused narrowing.Refused
	if errors.As(err, &refused) {
		l.logUnused(slog.LevelWarn, "a definition that came over the network is not covered by the file any more; the tenant has the file's own", stored, err)
		return d, nil
	}
	if err == nil {
		err = l.persist(ctx, stored.Tenant, r)
	}
	if errors.Is(err, swarm.ErrErasing) {
		return d, nil
	}
	if err == nil {
		delete(l.unused, stored.Tenant)
	}
	return loadedDefinition{r, stored.By, stored.At}, err
}

// setLoaded puts a composition in force for a tenant.
func (s *state) setLoaded(tenant string, d loadedDefinition) {
	if has := s.bound[d.digest]; has != nil {
		d.runnable = has
	}
	s.bound[d.digest], s.loaded[tenant] = d.runnable, d
}

// persist makes a composition durable before a task names it.
func (l *Library) persist(ctx context.Context, tenant string, r *runnable) error {
	_, err := l.store.Definition(ctx, tenant, r.def.Name, r.digest)
	if errors.Is(err, swarm.ErrNotFound) {
		err = l.store.AddDefinition(ctx, storedForm(tenant, r))
	}
	return err
}

func storedForm(tenant string, r *runnable) sqlite.Definition {
	return sqlite.Definition{Tenant: tenant, Swarm: r.def.Name, Digest: r.digest, Created: time.Now(), Body: r.composition.JSON()}
}

// narrow binds a definition that came over the network, or refuses it with
// [narrowing.Refused].
func (s *state) admit(text []byte) (*runnable, error) {
	x, err := s.file.Admit(text)
	if err != nil {
		return nil, err
	}
	cfg := s.file.Config.With(x)
	var faults config.Faults
	for _, a := range x.Agents {
		m, _ := s.own.modules[a.SHA256].(Module) // Judge made sure that it is one of them
		faults = append(faults, AgentFaults(cfg, a, m)...)
	}
	for _, a := range codedActions(x.Actions) {
		m, _ := s.own.modules[a.SHA256].(Module) // the file's own
		faults = append(faults, ActionFaults(cfg, a, m)...)
	}
	faults = append(faults, formFaults(cfg)...)
	if faults = append(faults, grantFaults(cfg)...); len(faults) > 0 {
		var r narrowing.Refused
		for _, f := range faults {
			r = append(r, narrowing.Reason{Path: f.Path, Text: f.Message})
		}
		return nil, r
	}
	return bind(s.file.Config, s.resources, runnable{digest: x.Digest(), composition: x, modules: s.own.modules}, x), nil
}

// narrow binds a composition again within what today's file grants.
func (s *state) narrow(r runnable) *runnable {
	return bind(s.file.Config, s.resources, r, s.file.Narrow(r.composition, r.operators))
}

// bindings are the bindings of everything that can be run.
func (s *state) bindings() map[capability.Agent]capability.Binding {
	all := map[capability.Agent]capability.Binding{}
	for digest, r := range s.bound {
		for name, b := range r.agents {
			all[capability.Agent{Definition: digest, Name: name}] = b
		}
	}
	return all
}

// all are the definitions of all tenants that are served.
func (s *state) all() []swarm.Definition {
	tenants := s.file.Config.Tenants
	defs := make([]swarm.Definition, 0, len(tenants))
	for _, t := range tenants {
		if !s.damaged[t.Name] {
			defs = append(defs, s.inForce(t.Name).forTenant(t.Name))
		}
	}
	return defs
}

// inForce returns what a tenant's new tasks run on.
func (s *state) inForce(tenant string) *runnable {
	if d, ok := s.loaded[tenant]; ok {
		return d.runnable
	}
	return s.own
}
