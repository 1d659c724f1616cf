package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/api/server"
	"skep/host/internal/datadir"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/catalog"
	"skep/host/internal/gateway/messagelog"
	"skep/host/internal/peer/directory"
	"skep/host/internal/peer/router"
	"skep/host/internal/peer/webhook"
	"skep/host/internal/quarantine"
	"skep/host/internal/schema"
	"skep/host/internal/store/cluster"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/telemetry"
	"skep/host/internal/telemetry/logexport"
	"skep/host/internal/telemetry/loglevel"
	"skep/host/internal/telemetry/pulse"
	"skep/host/internal/telemetry/trace"
	"skep/host/internal/turn/mcp"
)

// Host is one running host. Make one with [New]. Close it, or call Run, which
// closes it.
type Host struct {
	opt         Options
	log         *slog.Logger
	levels      *loglevel.Levels
	store       *sqlite.Store
	tenants     *swarm.TenantSet
	member      *cluster.Member // nil for a host that shares its store with no other
	life        string          // names this start among those of the data directory
	audit       *audit.Log
	heads       *audit.HeadExchange // nil for a host that shares its store with no other
	tokens      *auth.Tokens
	running     *quarantine.RunningSet
	quarantine  *quarantine.Quarantine
	loader      *definition.Loader
	definitions *definition.Library
	retention   *definition.Retention
	peers       *directory.Directory
	router      *router.Router
	swarm       *swarm.Runtime
	gateways    []server.Gateway
	messages    *messagelog.Log // nil without gateways
	outages     *gateway.OutageLog
	work        *telemetry.Work
	commits     *telemetry.Commits
	pulse       *pulse.Ring
	traces      *trace.Sender // nil without a collector
	// exported sends the log to the collector, nil without one; teed is the log of which it has the records.
	exported *logexport.Exporter
	teed     *slog.Logger
	// closeCollector closes the connections to the collector.
	closeCollector func()
	webhook        *webhook.Carrier // of questions; nil for none
	// closeWebhook closes its connections.
	closeWebhook func()
	// certificates are the callers of gateways by the names in their certificates.
	certificates *auth.Certificates
	server       *server.Server
	// recorded reports whether the audit log has an entry for the start.
	recorded bool
}

// New opens the store, loads every module and opens the listeners; it serves
// nothing before [Host.Run]. If a module is refused, New returns a
// *turn.LoadError.
func New(ctx context.Context, opt Options) (_ *Host, err error) {
	opt = opt.withDefaults()
	h := &Host{opt: opt, teed: opt.Logger, levels: loglevel.New(opt.Level, time.Now), commits: telemetry.NewCommits(), pulse: newPulse(opt)}
	if err := h.openCollector(ctx); err != nil {
		return nil, errors.Join(err, h.closeTelemetry())
	}
	h.log = h.logOf("host")
	h.tenants = swarm.NewTenantSet(definition.Tenants(opt.Config))
	h.work = telemetry.NewWork(h.logOf("work"), opt.Config.Telemetry.TenantLabels)
	h.outages = gateway.NewOutageLog(h.logOf("gateways"), time.Now)
	defer func() {
		if err != nil {
			if h.exported != nil { // the caller has the error, the collector needs a line of the log
				h.log.Error("the host does not start", "error", err)
			}
			err = errors.Join(err, h.Close())
		}
	}()
	for _, open := range []func(context.Context) error{
		h.openStore, h.openAudit, h.openTokens, h.openQuarantine, h.openLibrary, h.openPeers, h.openQuestions, h.openRuntime, h.openGateways, h.openServer, h.openSockets,
	} {
		if err = open(ctx); err != nil {
			return nil, err
		}
	}
	return h, h.recordStart()
}

// logOf is the log of a component, whose level operators can set for a while.
func (h *Host) logOf(component string) *slog.Logger {
	return h.levels.Logger(h.teed, component)
}

func (h *Host) openStore(ctx context.Context) error {
	var err error
	opt := sqlite.Options{Logger: h.logOf("store"), OnGroup: h.commits.Observe, Weight: definition.Weights(h.opt.Config), Storage: h.storageQuota}
	if h.isShared() {
		err = h.openShared(ctx, opt)
	} else {
		h.store, err = datadir.OpenStore(ctx, h.opt.DataDir, h.opt.Config.Store, opt)
	}
	return datadir.StoreFault(h.opt.Config, err)
}

// storageQuota is the storage quota of a tenant in bytes, 0 for none.
func (h *Host) storageQuota(tenant string) int64 { return h.tenants.Quota(tenant).Storage }

func (h *Host) openAudit(context.Context) (err error) {
	h.audit, err = audit.Open(filepath.Join(h.opt.DataDir, audit.Name), audit.Options{Logger: h.logOf("audit"), OnEntry: h.publishEntry})
	if err != nil {
		return err
	}
	return h.shareAudit()
}

func (h *Host) openTokens(ctx context.Context) (err error) {
	if h.tokens, err = auth.OpenTokens(ctx, h.store, h.clock()); err != nil {
		return err
	}
	h.shareTokens()
	return nil
}

// runningName is the file of the running turns in a data directory.
const runningName = "running"

// openQuarantine reads which turns ran when the last host ended, and which agents
// are in quarantine.
func (h *Host) openQuarantine(ctx context.Context) (err error) {
	if h.running, err = quarantine.OpenRunningSet(filepath.Join(h.opt.DataDir, runningName), h.logOf("runtime")); err != nil {
		return err
	}
	h.quarantine, err = quarantine.Open(ctx, h.store, filepath.Join(h.opt.DataDir, datadir.QuarantineName))
	if err != nil {
		return err
	}
	h.store.OnErase(func(tenant string) {
		h.tokens.DropTenant(tenant)
		h.quarantine.DropTenant(tenant)
		h.pulse.DropTenant(tenant)
		h.work.DropTenant(tenant)
	})
	h.shareQuarantine()
	return nil
}

// openLibrary loads every module and the definitions in force.
func (h *Host) openLibrary(ctx context.Context) error {
	secret, err := h.store.Secret(ctx)
	if err != nil {
		return err
	}
	opt := definition.LoaderOptions{
		DataDir: h.opt.DataDir, CacheDir: h.opt.CacheDir, Secret: secret,
		Subprocess: h.opt.Subprocess, Compiler: h.opt.Compiler, Logger: h.logOf("definitions"),
	}
	if m := h.store.ServerModules(); m != nil {
		opt.Rows = m
	}
	h.loader, err = definition.NewLoader(ctx, h.opt.Config, opt)
	if err != nil {
		return err
	}
	h.definitions, err = definition.Open(ctx, h.opt.Config, definition.Options{
		Store: h.store, Loader: h.loader, Quarantine: h.quarantine,
		Tools: mcp.Options{
			Guard: h.opt.Subprocess, Logger: h.logOf("mcp"), Version: h.opt.Version, OnToolChanged: h.recordToolChange, Network: h.opt.Network,
		},
		Env: h.opt.Env, Act: catalog.Act(h.gateway), Network: h.opt.Network, Reread: h.opt.Reread, Agree: h.agree(), IsAlike: h.isAlike(), Now: h.clock(), EraseAll: h.eraseAll(), Adopted: h.applyReload, Logger: h.logOf("definitions"),
	})
	return err
}

// openPeers makes the router, whose directory lacks the registry until openServer.
func (h *Host) openPeers(ctx context.Context) error {
	opt := directory.Options{
		Config: h.opt.Config, RegistryFile: filepath.Join(h.opt.DataDir, datadir.RegistryName),
		Env: h.opt.Env, Audit: h.audit, Logger: h.logOf("peers"),
		OnUp:    func(peer string) { h.router.MarkPeerUp(peer) },
		Partner: h.partnerPeer,
		OnStart: func(ctx context.Context, peer string, at time.Time) error {
			return h.swarm.FailForgotten(ctx, peer, at)
		},
	}
	if s := h.store.Secrets(); s != nil {
		opt.RegistryStore = s
	}
	h.peers = directory.New(opt)
	signer := h.signingKey()
	if err := signer.OpenIfNeeded(ctx, h.opt.Config); err != nil {
		return err
	}
	h.router = router.New(router.Options{Local: h.opt.Config.Swarm.Name, Peers: h.peers, Signer: signer, State: h.store.GatewayState(), Logger: h.logOf("router"), Now: h.clock()})
	return nil
}

func (h *Host) openRuntime(ctx context.Context) error {
	tools, err := schema.Load()
	if err != nil {
		return fmt.Errorf("load the MAIL schemas: %w", err)
	}
	set, err := h.runSet(ctx)
	if err != nil {
		return err
	}
	h.swarm, err = swarm.New(ctx, h.store, h.definitions.Executor(), h.router, tools, h.definitions.All(), swarm.Options{
		Turns: cmp.Or(h.opt.Config.Limits.Turns, math.MaxInt32), Tokens: h.opt.Guests,
		TurnBuffers: int64(h.opt.Config.Limits.TurnBuffers),
		Tenants:     h.tenants, Logger: h.logOf("runtime"), KnownSwarms: h.peers,
		Cluster: h.cluster(), Handover: h.opt.Config.Cluster.Handover,
		RunSet: set, Quarantine: h.definitions.Quarantine(), Library: h.definitions, LogWords: h.opt.Config.Console.Look == config.LookFree, Now: h.clock(), Observer: h.observers(), Sample: h.sample(), QuestionNotices: h.webhook != nil,
	})
	if err != nil {
		return err
	}
	h.definitions.Attach(h.swarm)
	h.shareConfig()
	h.shareLoaded()
	h.shareChores()
	h.shareLoads()
	h.retention = h.definitions.Retention(h.opt.Config.Store)
	return nil
}

func (h *Host) openServer(ctx context.Context) (err error) {
	if h.certificates, err = auth.NewCertificates(certificateNames(h.opt.Config)); err != nil {
		return err
	}
	others, err := h.others(ctx)
	if err != nil {
		return err
	}
	looks, err := h.looks(ctx)
	if err != nil {
		return err
	}
	h.server, err = server.Open(ctx, server.Options{
		Config: h.opt.Config, DataDir: h.opt.DataDir, Listen: h.opt.Listen, AdminListen: h.opt.AdminListen,
		PlainHTTP: h.opt.PlainHTTP, Version: h.opt.Version, Logger: h.logOf("api"), LogLevels: h.levels, Ping: h.opt.Ping,
		Runtime: h.swarm, StoreReady: h.ready, OtherHosts: others, Looks: looks, CountHosts: h.countHosts(), Now: h.clock(), Cluster: h.roster(), Library: h.definitions, Retention: h.retention, Router: h.router, Peers: h.peers,
		Tokens: h.tokens, Audit: h.audit, Work: h.work, Commits: h.commits, StoreSize: h.store.Size, Pulse: h.pulse, Traces: h.traces, Log: h.exported, Gateways: h.gateways, Mounts: h.mounts(), Certificates: h.certificates, HTTP3: wantsHTTP3(h.opt.Config),
	})
	return err
}

// looks are how operators see what is said in tasks of others, nil for never.
func (h *Host) looks(ctx context.Context) (*rest.Looks, error) {
	mode := h.opt.Config.Console.Look
	if mode == config.LookNever {
		return nil, nil
	}
	secret, err := h.store.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the store's secret: %w", err)
	}
	return rest.NewLooks(secret, mode == config.LookFree), nil
}

// Addr returns the address of the public listener.
func (h *Host) Addr() string { return h.server.Addr() }

// URL returns the URL of the public listener, by address.
func (h *Host) URL() string { return h.server.URL() }

// AdminAddr returns the address of the admin listener, empty when it is off.
func (h *Host) AdminAddr() string { return h.server.AdminAddr() }

// OperatorKeyPath returns the file of the operator's key, empty if the
// configuration has keys.
func (h *Host) OperatorKeyPath() string { return h.server.OperatorKeyPath() }
