package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/egress"
	"skep/host/internal/jail"
	"skep/host/internal/mcpclient"
	"skep/host/internal/recompose"
	"skep/host/internal/runset"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// definitions are what the host's swarm is made of: for every tenant the
// operator's composition or one that came over the network within it, and those
// that unfinished tasks were begun with.
type definitions struct {
	store    *sqlite.Store
	kept     *moduleStore
	confined *runset.Quarantine
	exec     *capability.Executor
	swarm    *swarm.Runtime
	// providers open the models of files.
	providers *providers
	// tools are the MCP servers of files.
	tools *toolServers
	// keeper counts what actions write.
	keeper *jail.Keeper
	log    *slog.Logger
	// most is how many definitions a tenant may have kept.
	most int

	// reloading is held from the first look at a file until it is in force.
	reloading sync.Mutex

	// change is held from the first look at what is in force until something
	// else is. Who holds it may read the state without mu.
	change sync.Mutex

	network func(*egress.Options) // as in [Options]

	mu sync.Mutex
	state
	// coming are modules of a file that is not in force yet.
	coming map[string]bool
}

// maxDefinitions is how many definitions of its own a tenant may have kept.
const maxDefinitions = 64

// state is what is in force.
type state struct {
	file recompose.File
	outside
	// own is the operator's composition, and bound everything that can be run,
	// by digest.
	own    *composed
	bound  map[string]*composed
	loaded map[string]origin // by tenant
}

// origin is where a composition came from.
type origin struct {
	*composed
	by string
	at time.Time
}

var _ swarm.Library = (*definitions)(nil)

func newDefinitions(store *sqlite.Store, kept *moduleStore, confined *runset.Quarantine, log *slog.Logger, network func(*egress.Options)) *definitions {
	return &definitions{store: store, kept: kept, confined: confined, log: log, most: maxDefinitions, network: network, keeper: jail.NewKeeper(), providers: newProviders(network), tools: newToolServers(mcpclient.Options{}, nil)}
}

// open puts the operator's composition in force, and what tenants have loaded as
// far as it is still covered.
func (d *definitions) open(ctx context.Context, cfg *config.Config, modules map[string]Module) error {
	next, err := d.next(ctx, cfg, modules)
	if err != nil {
		return err
	}
	d.state = next
	d.exec = capability.NewExecutor(next.bindings(), d.kept)
	return d.tools.keep(next.servers)
}

// next makes the state of a configuration. What it needs later is durable.
func (d *definitions) next(ctx context.Context, cfg *config.Config, modules map[string]Module) (state, error) {
	http := cfg.Limits.HTTP
	models, faults := d.providers.open(cfg)
	if len(faults) > 0 {
		return state{}, faults
	}
	files, faults := jails(cfg, d.keeper)
	if len(faults) > 0 {
		return state{}, faults
	}
	servers := d.tools.of(cfg)
	s := state{
		file: recompose.File{Config: cfg, Modules: map[string]string{}, Reaches: reaches},
		outside: outside{
			web:    newClient(egress.Options{Timeout: http.Timeout, MaxSent: int64(http.Request), MaxBody: int64(http.Response)}, d.network),
			models: models,
			files:  files,

			servers: servers, tools: tools(cfg, servers),
		},
		bound: map[string]*composed{}, loaded: map[string]origin{},
	}
	byDigest := map[string]capability.Module{}
	for name, m := range modules {
		s.file.Modules[name], byDigest[m.Digest()] = m.Digest(), m
	}
	own := s.file.Own()
	s.own = compose(cfg, s.outside, composed{digest: own.Digest(), x: own, own: true, modules: byDigest}, own)
	s.bound[s.own.digest] = s.own
	if err := d.keep(ctx, "", s.own); err != nil {
		return s, err
	}
	loaded, err := d.store.Loaded(ctx)
	if err != nil {
		return s, err
	}
	for _, l := range loaded {
		if err := d.reload(ctx, &s, l); err != nil {
			return s, err
		}
	}
	return s, nil
}

// reload puts in force what a tenant has loaded, if the file still covers it.
func (d *definitions) reload(ctx context.Context, s *state, l sqlite.Loaded) error {
	c, err := s.judge(l.Text)
	var refused recompose.Refused
	if errors.As(err, &refused) || err == nil && l.Swarm != s.own.def.Name {
		d.log.Warn("a definition that came over the network is not covered by the file any more; the tenant has the file's own",
			"tenant", l.Tenant, "swarm", l.Swarm, "by", l.By, "why", fmt.Sprint(err))
		return nil
	}
	if err != nil {
		return err
	}
	s.take(l.Tenant, origin{c, l.By, l.At})
	return d.keep(ctx, l.Tenant, c)
}

// take puts a composition in force for a tenant.
func (s *state) take(tenant string, o origin) {
	if has := s.bound[o.digest]; has != nil {
		o.composed = has
	}
	s.bound[o.digest], s.loaded[tenant] = o.composed, o
}

// keep makes a composition durable before a task names it.
func (d *definitions) keep(ctx context.Context, tenant string, c *composed) error {
	name := c.def.Name
	_, err := d.store.Definition(ctx, tenant, name, c.digest)
	if errors.Is(err, swarm.ErrNotFound) {
		err = d.store.AddDefinition(ctx, record(tenant, c))
	}
	return err
}

func record(tenant string, c *composed) sqlite.Definition {
	return sqlite.Definition{Tenant: tenant, Swarm: c.def.Name, Digest: c.digest, Created: time.Now(), Body: c.x.JSON()}
}

// judge makes a composition of a definition that came over the network, or says
// with [recompose.Refused] why not.
func (s *state) judge(text []byte) (*composed, error) {
	x, err := s.file.Judge(text)
	if err != nil {
		return nil, err
	}
	cfg := s.file.Config.With(x)
	var faults config.Faults
	for _, a := range x.Agents {
		m, _ := s.own.modules[a.SHA256].(Module) // judged to be one of them
		faults = append(faults, ModuleFaults(cfg, a, m)...)
	}
	for _, a := range coded(x.Actions) {
		m, _ := s.own.modules[a.SHA256].(Module) // the file's own
		faults = append(faults, ActionFaults(cfg, a, m)...)
	}
	faults = append(faults, FormFaults(cfg)...)
	if faults = append(faults, GrantFaults(cfg)...); len(faults) > 0 {
		var r recompose.Refused
		for _, f := range faults {
			r = append(r, recompose.Reason{Path: f.Path, Text: f.Message})
		}
		return nil, r
	}
	return compose(s.file.Config, s.outside, composed{digest: x.Digest(), x: x, modules: s.own.modules}, x), nil
}

// bindings are those of all that can be run.
func (s *state) bindings() map[capability.Agent]capability.Binding {
	all := map[capability.Agent]capability.Binding{}
	for digest, c := range s.bound {
		for name, b := range c.agents {
			all[capability.Agent{Definition: digest, Name: name}] = b
		}
	}
	return all
}

// all are the definitions of all tenants.
func (s *state) all() []swarm.Definition {
	tenants := s.file.Config.Tenants
	defs := make([]swarm.Definition, 0, len(tenants))
	for _, t := range tenants {
		defs = append(defs, s.of(t.Name).of(t.Name))
	}
	return defs
}

// of returns what a tenant has in force.
func (s *state) of(tenant string) *composed {
	if o, ok := s.loaded[tenant]; ok {
		return o.composed
	}
	return s.own
}

// module returns the digest of what an agent of a definition that can be run runs
// on, empty if there is none.
func (d *definitions) module(definition, agent string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.bound[definition]; c != nil && c.agents[agent].Module != nil {
		return c.agents[agent].Module.Digest()
	}
	return ""
}

// current is the state. It is never changed in place, but for its maps, which are
// d.mu's.
func (d *definitions) current() state {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}
