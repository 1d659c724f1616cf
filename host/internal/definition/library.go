package definition

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"skep/host/internal/turn/wasm"
	"sync"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/quarantine"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/egress"
	"skep/host/internal/turn/fileaction"
	"skep/host/internal/turn/mcp"
)

// Store keeps definitions. Every write is durable on return.
type Store interface {
	// Definition is [swarm.ErrNotFound] if it is not stored.
	Definition(ctx context.Context, tenant, name, digest string) (sqlite.Definition, error)
	Definitions(ctx context.Context) ([]sqlite.Definition, error)
	AddDefinition(ctx context.Context, d sqlite.Definition) error
	DropDefinition(ctx context.Context, tenant, name, digest string) error
	// LoadDefinition adds d and puts it in force for its tenant.
	LoadDefinition(ctx context.Context, l sqlite.Loaded, d sqlite.Definition) error
	UnloadDefinition(ctx context.Context, tenant, name string) error
	Loaded(ctx context.Context) ([]sqlite.Loaded, error)
	// NamedDefinitions are the digests that unfinished tasks name.
	NamedDefinitions(ctx context.Context) (map[string]bool, error)
	// Modules are the digests that records of turns name.
	Modules(ctx context.Context) (map[string]bool, error)
	Footprint(ctx context.Context, tenant string) (swarm.Footprint, error)
}

// Options of [Open].
type Options struct {
	Store      Store
	Loader     *Loader
	Quarantine *quarantine.Quarantine
	// Tools are the options of MCP servers, Env the environment of their programs.
	Tools mcp.Options
	Env   func(name string) (string, bool)
	// Act does the actions at partners of gateways; nil does none.
	Act GatewayAct
	// Network changes how agents and models reach others; nil changes nothing.
	Network func(*egress.Options)
	// Reread reads the configuration for [Library.Reload]; without it there is no reload.
	Reread func() (*config.Config, error)
	// Agree puts the parts of a file in force on all hosts that share the store, or on none; nil where
	// no other host does.
	Agree func(ctx context.Context, parts map[string]string) error
	// IsAlike reports whether the other hosts have in force what this one has, but for what tenants have loaded; nil where
	// no other host does.
	IsAlike func() bool
	// EraseAll erases a tenant on all hosts that share the store; nil where no other host does.
	EraseAll func(ctx context.Context, tenant string) error
	// Now is the clock by which stored history is too old, default time.Now.
	Now func() time.Time
	// Adopted is called after a reload has put a configuration in force.
	Adopted func(*config.Config)
	Logger  *slog.Logger
}

// Library holds the definitions of a host: for each tenant the operator's or one that came
// over the network, and the definitions of unfinished tasks. Close it.
type Library struct {
	opt   Options
	store Store
	exec  *capability.Executor
	swarm *swarm.Runtime
	// providers open the models of files, tools holds the MCP servers of files.
	providers *modelProviders
	tools     *toolServers
	// keeper counts what file actions write.
	keeper *fileaction.Locks
	log    *slog.Logger

	// reloading is held from the first read of a file until it is in force.
	reloading ctxMutex
	// prepared is a file that is to be in force once all hosts agree. Who has prepared it holds reloading.
	prepared loadedFile

	// change is held from the first read of the state until a change is in force. Its
	// holder may read the state without mu.
	change ctxMutex
	// unused are stored definitions that cannot be read or are not covered by the file, as far as they were logged: by
	// tenant, when they were loaded. The holder of change has it.
	unused map[string]time.Time
	// unwanted is since when this host has no use for stored definitions, by digest. The holder of change has it.
	unwanted map[string]time.Time

	mu sync.Mutex
	state
	// loading are digests of modules of a file that is not in force yet.
	loading map[string]bool
}

var _ swarm.Library = (*Library)(nil)

// Open loads the modules of a configuration and puts the operator's composition in force,
// and the tenants' loaded definitions as far as the file still covers them. Before the
// first call of another method, [Library.Attach] gives it its runtime.
func Open(ctx context.Context, cfg *config.Config, opt Options) (*Library, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	modules, err := opt.Loader.Load(ctx, cfg)
	if err != nil {
		return nil, err
	}
	opt.Loader.modules.keepFiles(ctx) // before this host, or one that starts with it, takes up tasks
	l := &Library{
		opt: opt, store: opt.Store, log: opt.Logger, keeper: fileaction.NewLocks(),
		reloading: newCtxMutex(), change: newCtxMutex(), unused: map[string]time.Time{},
		providers: newModelProviders(opt.Network, opt.Logger), tools: newToolServers(opt.Tools, opt.Env),
	}
	if l.state, err = l.newState(ctx, cfg, modules); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.exec = capability.NewExecutor(l.bindings(), opt.Loader.modules, wasm.Recipe())
	l.exec.WaitingTurns().Bound(boundWaitingTurns(cfg.Limits.WaitingTurns), capability.HibernateAfter)
	return l, l.tools.activate(l.servers)
}

// boundWaitingTurns is the bound of turns that wait with their sandbox; 0 in the file is unlimited.
func boundWaitingTurns(turns int) int {
	if turns == 0 {
		return math.MaxInt
	}
	return turns
}

// Attach sets the runtime that runs the definitions.
func (l *Library) Attach(rt *swarm.Runtime) { l.swarm = rt }

// Close ends connections to models and sessions with MCP servers.
func (l *Library) Close() error {
	l.providers.client.Close()
	return l.tools.activate(nil)
}

// Executor runs the turns of all definitions.
func (l *Library) Executor() *capability.Executor { return l.exec }

// Config is the configuration in force.
func (l *Library) Config() *config.Config { return l.current().file.Config }

// All returns the definitions in force, one for each tenant.
func (l *Library) All() []swarm.Definition {
	s := l.current()
	return s.all()
}

// ModelStats count the calls of models.
func (l *Library) ModelStats() ModelStats { return l.providers.stats() }

// ModelUses lists what the calls of each model have come to.
func (l *Library) ModelUses() []ModelUse { return l.providers.uses() }

// SilentModels lists the models that have not answered, by name.
func (l *Library) SilentModels() []SilentModel { return l.providers.silentModels() }

// SandboxBytes is the memory that instances and images of modules take.
func (l *Library) SandboxBytes() int64 { return l.opt.Loader.engine.Pool().Resident }

// ToolStats count the calls of MCP servers.
func (l *Library) ToolStats() mcp.Stats { return l.tools.stats() }

// current is the state. Only its maps change in place; mu guards them.
func (l *Library) current() state {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}
