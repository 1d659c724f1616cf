package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"skep/host/internal/audit"
	"skep/host/internal/auth"
	"skep/host/internal/config"
	"skep/host/internal/egress"
	"skep/host/internal/listen"
	"skep/host/internal/mcpclient"
	"skep/host/internal/router"
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
	// PlainHTTP lets other machines call without TLS.
	PlainHTTP bool
	// Hangups make the host look at its certificate. It may be nil.
	Hangups <-chan os.Signal
	Logger  *slog.Logger
	// Level is the Logger's. A reload sets it to what the file says; nil leaves
	// the log as it is.
	Level *slog.LevelVar
	// Subprocess begins the command line of the process that stands between the host
	// and a subprocess: the program's own file and [subprocess.Command]. Without it
	// exec: sources are refused.
	Subprocess []string
	// Compiler starts a child that compiles modules which do not come with
	// the host, see [sandbox.Child]; empty compiles them in this process.
	Compiler []string
	// Guests bounds those that compute at once, GOMAXPROCS by default. See
	// [Room].
	Guests int
	// Reread reads the configuration again, for a reload; without it there is
	// none.
	Reread func() (*config.Config, error)
	// Env looks a variable up, for the tokens of registered swarms; without it
	// there are none.
	Env func(name string) (string, bool)
	// Version is shown to clients.
	Version string

	// network changes how agents and models reach others. It is for tests, which have
	// no Internet.
	network func(*egress.Options)
}

// Host is one running host. Close it, or call Run, which closes it.
type Host struct {
	opt        Options
	log        *slog.Logger
	store      *sqlite.Store
	engine     *sandbox.Engine
	swarm      *swarm.Runtime
	router     *router.Router
	peers      *peers
	keyPath    string
	kept       *moduleStore
	defs       *definitions
	retention  *retention
	running    *runset.Set
	quarantine *runset.Quarantine
	audit      *audit.Log
	// recorded says that the audit log has that the host was started.
	recorded bool
	tokens   *auth.Tokens
	outside  []outsider

	public, admin         *http.Server
	publicAddr, adminAddr *listen.Listener
	// certs is nil without TLS.
	certs *listen.Certificates
}

// outsider is an authority that holds connections.
type outsider interface {
	Close()
	Warnings() []string
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
	h := &Host{opt: opt, log: opt.Logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err = h.openStore(ctx); err != nil {
		return nil, err
	}
	if err = h.openAudit(); err != nil {
		return nil, err
	}
	if h.tokens, err = auth.OpenTokens(ctx, h.store, nil); err != nil {
		return nil, err
	}
	h.store.OnErase(h.tokens.Forget)
	if err = h.openRunSet(); err != nil {
		return nil, err
	}
	if err = h.openEngine(ctx); err != nil {
		return nil, err
	}
	if err = h.startSwarm(ctx); err != nil {
		return nil, err
	}
	if err = h.listen(ctx); err != nil {
		return nil, err
	}
	return h, h.begun()
}

func (h *Host) startSwarm(ctx context.Context) error {
	book, err := newToolbook()
	if err != nil {
		return err
	}
	modules, err := h.loadModules(ctx, h.opt.Config)
	if err != nil {
		return err
	}
	h.defs = newDefinitions(h.store, h.kept, h.quarantine, h.log, h.opt.network)
	h.defs.tools = newToolServers(mcpclient.Options{
		Guard: h.opt.Subprocess, Logger: h.log, Version: h.opt.Version, Changed: h.toolChanged, Network: h.opt.network,
	}, h.opt.Env)
	if err := h.defs.open(ctx, h.opt.Config, modules); err != nil {
		return err
	}
	h.peers = newPeers(h.opt.Config.Peers, h.opt.Env)
	h.peers.signs = h.opt.Config.Server.SignLetters
	signer := newLetterKey(h.opt.DataDir, h.audit)
	if err := signer.needed(h.opt.Config); err != nil {
		return err
	}
	h.router = router.New(router.Options{Local: h.opt.Config.Swarm.Name, Peers: h.peers, Signer: signer, Logger: h.log})
	h.swarm, err = swarm.New(ctx, h.store, h.defs.exec, h.router, book,
		h.defs.all(), swarm.Options{
			Turns: cmp.Or(h.opt.Config.Limits.Turns, math.MaxInt32), Tokens: h.opt.Guests, Tenants: tenants(h.opt.Config), Logger: h.log,
			Neighbours: &neighbours{h.peers, h.audit},
			RunSet:     h.running, Quarantine: quarantine{h.quarantine, h.defs.module}, Library: h.defs,
		})
	if err != nil {
		return err
	}
	h.defs.swarm = h.swarm
	h.retention = &retention{
		records: h.opt.Config.Store.JournalRetention, tasks: h.opt.Config.Store.HistoryRetention,
		prune: h.swarm.Prune, named: h.defs.namedModules, modules: h.kept, log: h.log,
	}
	return nil
}

// Addr is where the public listener listens.
func (h *Host) Addr() string { return h.publicAddr.Addr().String() }

// URL is where the host is reached on its public listener, by address.
func (h *Host) URL() string {
	if h.publicAddr.Secure() {
		return "https://" + h.Addr()
	}
	return "http://" + h.Addr()
}

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
	g.Go(func() error { return h.router.Run(ctx, h.swarm) })
	g.Go(func() error { return h.serve(ctx) })
	for _, background := range []func(context.Context){h.retention.run, h.defs.run, h.keepTokens, h.audit.Run, h.peers.known.Run} {
		g.Go(func() error {
			background(ctx)
			return nil
		})
	}
	return errors.Join(g.Wait(), h.Close())
}

// Close releases what New opened, last opened first.
func (h *Host) Close() error {
	var errs []error
	for _, l := range []*listen.Listener{h.publicAddr, h.adminAddr} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if h.kept != nil {
		errs = append(errs, h.kept.programs.close())
		h.kept = nil
	}
	if h.engine != nil {
		errs = append(errs, h.engine.Close(context.Background()))
		h.engine = nil
	}
	if h.defs != nil {
		h.defs.providers.client.Close()
		errs = append(errs, h.defs.tools.keep(nil))
	}
	if h.running != nil {
		errs = append(errs, h.running.Close())
		h.running = nil
	}
	for _, a := range h.outside {
		a.Close()
	}
	if h.tokens != nil {
		errs = append(errs, h.tokens.Save(context.Background()))
		h.tokens = nil
	}
	if h.store != nil {
		errs = append(errs, h.store.Close())
		h.store = nil
	}
	errs = append(errs, h.ended())
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
