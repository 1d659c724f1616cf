package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/api/http3"
	"skep/host/internal/api/listener"
	"skep/host/internal/api/rest"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/peer/directory"
	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
	"skep/host/internal/swarm/metrics"
	"skep/host/internal/telemetry"
	"skep/host/internal/telemetry/logexport"
	"skep/host/internal/telemetry/loglevel"
	"skep/host/internal/telemetry/pulse"
	"skep/host/internal/telemetry/trace"
)

// Options of [Open]. All but Listen, AdminListen, Ping, Mounts and Certificates are required.
type Options struct {
	Config  *config.Config
	DataDir string
	// Listen and AdminListen override the configuration's addresses; an
	// AdminListen of "off" opens no admin listener.
	Listen, AdminListen string
	// PlainHTTP lets other machines call without TLS.
	PlainHTTP bool
	Version   string
	Logger    *slog.Logger
	// Ping is the longest silence on a stream; 0 is 15 s.
	Ping time.Duration

	Runtime Runtime
	// StoreReady returns why nothing can be stored, or nil.
	StoreReady func(context.Context) error
	// OtherHosts are the hosts that share the store; nil means none.
	OtherHosts *rest.OtherHosts
	// Looks are how operators see what is said in tasks of others; nil means never.
	Looks *rest.Looks
	// LogLevels are what the host logs; nil means the level info.
	LogLevels *loglevel.Levels
	// CountHosts counts the hosts that share the store; nil means one.
	CountHosts func() int
	// Now is the clock by which tokens expire, looks end and hosts prove that they send requests on; nil means
	// this machine's. Hosts that share a store have the same one.
	Now func() time.Time
	// Cluster is what operators see of them; nil means none.
	Cluster   rest.Cluster
	Library   *definition.Library
	Retention *definition.Retention
	Router    *router.Router
	// Peers gets its registry from Open, which depends on the public address.
	Peers  *directory.Directory
	Tokens *auth.Tokens
	Audit  *audit.Log
	// Work has the metrics of turns and tasks.
	Work *telemetry.Work
	// Commits has the metrics of the store's transactions, and StoreSize returns the bytes that it
	// takes.
	Commits   *telemetry.Commits
	StoreSize func(context.Context) (int64, error)
	// Traces has the metrics of spans; nil for none.
	Traces *trace.Sender
	// Log has the metrics of the log that is sent to a collector; nil for none.
	Log *logexport.Exporter
	// Pulse has what happens on the host.
	Pulse *pulse.Ring

	// Gateways are the gateways that run, as operators see them; nil means none.
	Gateways []Gateway
	// Mounts are routes of gateways on the public listener, and Certificates the callers
	// of them that client certificates name. Both may be nil.
	Mounts       []rest.Mount
	Certificates *auth.Certificates
	// HTTP3 also serves the public listener's requests over UDP, at the same port. It needs TLS.
	HTTP3 bool
}

// Runtime is the runtime behind the REST interface and its metrics.
type Runtime interface {
	rest.Runtime
	// Draining reports whether the runtime takes no new posts.
	Draining() bool
	// CountResting returns the number of agents whose turns are not run for a while.
	CountResting() int
	// CountDamaged returns the number of running tasks that cannot be read.
	CountDamaged() int
	// CountLoad returns the running tasks and the messages that wait in them.
	CountLoad() (tasks, messages int)
	// CountQueued counts the messages that stand in queues, by tier.
	CountQueued() swarm.Queued
	// QuotasLeft lists what tenants have left of their quotas, by tenant.
	QuotasLeft(ctx context.Context) []swarm.QuotaLeft
	// Metrics returns the metrics that agents report.
	Metrics() *metrics.Registry
}

// Server holds the listeners and their HTTP servers. Make one with [Open].
type Server struct {
	opt Options
	log *slog.Logger

	api           *rest.Handler
	public, admin *http.Server
	// adminListener is nil when it is off.
	publicListener, adminListener *listener.Listener
	lameDuck                      lameDuck
	// http3 is nil where it is not served.
	http3 *http3.Server
	// certs is nil without TLS.
	certs *listener.Certificates
	// authorities are the external auth backends.
	authorities []authority
	// operatorKeyPath is empty if the configuration has keys.
	operatorKeyPath string
	questions       questionCount
}

// authority is an external auth backend, which holds connections.
type authority interface {
	Close()
	Warnings() []string
}

// Open opens the listeners, so that a port in use is an error before the host
// starts, and makes their handlers.
func Open(ctx context.Context, opt Options) (*Server, error) {
	s := &Server{opt: opt, log: opt.Logger, lameDuck: lameDuck{quiet: quietTime}}
	err := s.listen(ctx)
	if err == nil {
		err = s.makeHandlers(ctx)
	}
	if err == nil {
		err = s.openHTTP3(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the listeners and the connections to external auth backends.
func (s *Server) Close() error {
	var errs []error
	for _, l := range []*listener.Listener{s.publicListener, s.adminListener} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if s.http3 != nil {
		errs = append(errs, s.http3.Close())
	}
	for _, a := range s.authorities {
		a.Close()
	}
	return errors.Join(errs...)
}

// Addr returns the address of the public listener.
func (s *Server) Addr() string { return s.publicListener.Addr().String() }

// URL returns the URL of the public listener, by address.
func (s *Server) URL() string {
	if s.publicListener.Secure() {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

// AdminAddr returns the address of the admin listener, empty when it is off.
func (s *Server) AdminAddr() string {
	if s.adminListener == nil {
		return ""
	}
	return s.adminListener.Addr().String()
}

// Identify authenticates the caller of a mounted request; see [rest.Handler.Identify].
func (s *Server) Identify(r *http.Request) (auth.Proven, error) { return s.api.Identify(r) }

// Pace bounds a tenant's messages that are no bodies; see [rest.Handler.Pace].
func (s *Server) Pace(tenant string) rest.Pace { return s.api.Pace(tenant) }

// ServePublic serves a request as the public listener does. A gateway that has a socket of
// its own makes one.
func (s *Server) ServePublic(w http.ResponseWriter, r *http.Request) { s.api.ServeHTTP(w, r) }

// Holder implements [auth.Ledger] for the credentials of callers.
func (s *Server) Holder(d auth.Digest) (auth.Principal, bool) { return s.api.Holder(d) }

// OperatorKeyPath returns the file of the operator's key, empty if the
// configuration has keys.
func (s *Server) OperatorKeyPath() string { return s.operatorKeyPath }

// ReloadCertificate reads the files of the certificate again, if there is one. An
// invalid pair leaves the old one in use and is logged.
func (s *Server) ReloadCertificate(ctx context.Context) {
	if s.certs != nil {
		s.certs.Reload(ctx)
	}
}

// Serve answers requests until ctx ends and every handler has returned. The admin
// listener stays open until turnsEnded is closed, so that /readyz shows the drain.
func (s *Server) Serve(ctx context.Context, turnsEnded <-chan struct{}) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.publicListener.Serve(s.public) })
	if s.http3 != nil {
		g.Go(s.http3.Serve)
	}
	if s.adminListener != nil {
		g.Go(func() error { return s.adminListener.Serve(s.admin) })
	}
	if s.certs != nil {
		g.Go(func() error {
			s.certs.Run(ctx)
			return nil
		})
	}
	g.Go(func() error {
		s.saveTokens(ctx)
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		s.shutdown(turnsEnded)
		return nil
	})
	return g.Wait()
}

// answerGrace is how long callers have to read the answers to their posts after
// the last turn has ended.
const answerGrace = 2 * time.Second

// shutdown sends callers elsewhere, and waits for handlers for the configured grace,
// which turns may use up, plus answerGrace. The admin listener closes last.
func (s *Server) shutdown(turnsEnded <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), s.opt.Config.Server.ShutdownGrace+answerGrace)
	defer cancel()
	var public sync.WaitGroup
	if s.http3 != nil {
		public.Go(func() { s.endHTTP3(ctx) })
	}
	s.lameDuck.await(s.publicListener.Counts().Open)
	s.shutdownServer(ctx, s.public)
	public.Wait()
	<-turnsEnded
	if s.admin != nil {
		s.shutdownServer(ctx, s.admin)
	}
}

// endHTTP3 waits for requests over HTTP/3 until ctx ends.
func (s *Server) endHTTP3(ctx context.Context) {
	if err := s.http3.Shutdown(ctx); err != nil {
		s.log.Warn("cut requests over HTTP/3 that outlasted the grace", "err", err)
	}
}

// shutdownServer waits for handlers until ctx ends and then closes their
// connections.
func (s *Server) shutdownServer(ctx context.Context, server *http.Server) {
	if err := server.Shutdown(ctx); err != nil {
		s.log.Warn("cut connections that outlasted the grace", "err", err)
		_ = server.Close()
	}
}
