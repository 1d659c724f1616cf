package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/runset"
	"skep/host/internal/sandbox"
	"skep/host/internal/schema"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// Options of [New].
type Options struct {
	// Config is required.
	Config *config.Config
	// DataDir holds the store, .skep beside the configuration by default.
	DataDir string
	// CacheDir holds compiled modules, DataDir/cache by default.
	CacheDir string
	// Listen and AdminListen override the configuration's addresses; an
	// AdminListen of "off" opens no admin listener.
	Listen, AdminListen string
	Logger              *slog.Logger
	// Compiler starts a child that compiles modules which do not come with
	// the host, see [sandbox.Child]; empty compiles them in this process.
	Compiler []string
	// Version is shown to clients.
	Version string
}

// Host is one running host. Close it, or call Run, which closes it.
type Host struct {
	opt        Options
	log        *slog.Logger
	store      *sqlite.Store
	engine     *sandbox.Engine
	swarm      *swarm.Runtime
	keyPath    string
	modules    map[string]*sandbox.Module
	kept       *moduleStore
	retention  *retention
	running    *runset.Set
	quarantine quarantine

	public, admin         *http.Server
	publicAddr, adminAddr net.Listener
}

// New opens the store, loads every module and opens the listeners; nothing is
// served before [Host.Run]. A module that is refused makes it return a
// *sandbox.LoadError.
func New(ctx context.Context, opt Options) (_ *Host, err error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.DataDir == "" {
		opt.DataDir = filepath.Join(opt.Config.Dir, ".skep")
	}
	if opt.CacheDir == "" {
		opt.CacheDir = filepath.Join(opt.DataDir, "cache")
	}
	h := &Host{opt: opt, log: opt.Logger, modules: map[string]*sandbox.Module{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err = h.openStore(ctx); err != nil {
		return nil, err
	}
	if err = h.openRunSet(); err != nil {
		return nil, err
	}
	if err = h.loadModules(ctx); err != nil {
		return nil, err
	}
	if err = h.startSwarm(ctx); err != nil {
		return nil, err
	}
	return h, h.listen()
}

func (h *Host) startSwarm(ctx context.Context) error {
	book, err := newToolbook()
	if err != nil {
		return err
	}
	defs, bindings := h.define()
	h.swarm, err = swarm.New(ctx, h.store, capability.NewExecutor(bindings, h.kept), swarm.Closed{}, book,
		defs, swarm.Options{
			Turns: h.opt.Config.Limits.Turns, Tenants: tenants(h.opt.Config), Logger: h.log,
			RunSet: h.running, Quarantine: h.quarantine,
		})
	if err != nil {
		return err
	}
	h.retention = &retention{
		records: h.opt.Config.Store.JournalRetention, tasks: h.opt.Config.Store.HistoryRetention,
		prune: h.swarm.Prune, named: h.store.Modules, modules: h.kept, log: h.log,
	}
	return nil
}

// Addr is where the public listener listens.
func (h *Host) Addr() string { return h.publicAddr.Addr().String() }

// AdminAddr is where the admin listener listens, empty when it is off.
func (h *Host) AdminAddr() string {
	if h.adminAddr == nil {
		return ""
	}
	return h.adminAddr.Addr().String()
}

// OperatorKeyPath is the file that holds the operator's key, empty when the
// configuration has keys of its own.
func (h *Host) OperatorKeyPath() string { return h.keyPath }

// Run serves until ctx ends. Then it takes no new posts and no new turns, gives
// turns under way the grace of the configuration, tells waiting callers that
// their tasks go on at the next start, and closes the store last. Nothing runs
// after it returns.
func (h *Host) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.swarm.Run(ctx, h.opt.Config.Server.ShutdownGrace) })
	g.Go(func() error { return h.serve(ctx) })
	g.Go(func() error {
		h.retention.run(ctx)
		return nil
	})
	return errors.Join(g.Wait(), h.Close())
}

// Close releases what New opened, last opened first.
func (h *Host) Close() error {
	var errs []error
	for _, l := range []net.Listener{h.publicAddr, h.adminAddr} {
		if l == nil {
			continue
		}
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if h.engine != nil {
		errs = append(errs, h.engine.Close(context.Background()))
		h.engine = nil
	}
	if h.running != nil {
		errs = append(errs, h.running.Close())
		h.running = nil
	}
	if h.store != nil {
		errs = append(errs, h.store.Close())
		h.store = nil
	}
	return errors.Join(errs...)
}

// newToolbook compiles the published shapes once.
func newToolbook() (*toolbook, error) {
	set, err := schema.Load()
	if err != nil {
		return nil, fmt.Errorf("load the MAIL schemas: %w", err)
	}
	return &toolbook{set}, nil
}
