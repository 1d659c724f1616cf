package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/listener"
	"skep/host/internal/api/rest"
	"skep/host/internal/definition"
	"skep/host/internal/diskspace"
	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
	"skep/host/internal/telemetry"
)

// authFailures bounds the invalid credentials of one address in a minute. Keys have at
// least 16 characters, so the bound protects external auth backends and the log more
// than the keys.
const authFailures = 30

// rate is a bound of requests that all hosts hold together.
func (s *Server) rate(requests int, per time.Duration) auth.Rate {
	return auth.Rate{Requests: requests, Per: per, Hosts: s.opt.CountHosts}
}

// makeHandlers makes the HTTP servers of the open listeners.
func (s *Server) makeHandlers(ctx context.Context) error {
	guard, err := s.authenticator()
	if err != nil {
		return err
	}
	loopback := listener.Loopback(s.publicListener.Addr())
	if err := s.opt.Peers.OpenRegistry(ctx, loopback); err != nil {
		return err
	}
	cfg, several := s.opt.Config.Server, len(s.opt.Config.Tenants) > 1
	tenantRate := s.rate(cfg.RateLimit.Tenant, cfg.RateLimit.Per)
	if !several || cfg.RateLimit.Requests == 0 {
		tenantRate.Requests = 0
	}
	s.api = rest.New(s.opt.Runtime, guard, rest.Options{
		Tenant: swarm.DefaultTenant, Swarm: s.opt.Config.Swarm.Name, Version: s.opt.Version, PublicURL: cfg.PublicURL,
		Registry: s.opt.Peers.Registry(), CheckPeer: s.opt.Peers.CheckPeer, Signatures: s.opt.Peers,
		Gateways:    gateways(s.opt.Gateways),
		Definitions: definitions{s.opt.Library}, ConfigFile: s.opt.Library, Tenants: s.opt.Library,
		Tokens: s.opt.Tokens, Operators: guard.Operators, Audit: s.opt.Audit, Logger: s.log,
		Ping: s.opt.Ping, Now: s.opt.Now, Pulse: s.opt.Pulse,
		Debug: cfg.Debug, MaxBody: int64(cfg.MaxBody), MaxDepth: cfg.MaxDepth,
		Loopback: loopback, Hosts: cfg.Hosts, Origins: cfg.CORSOrigins, TrustedProxies: cfg.TrustedProxies,
		MaxStreams: cfg.MaxStreams, MaxStreamsPerPrincipal: cfg.MaxStreamsPerPrincipal,
		SeveralTenants: several, TenantRate: tenantRate,
		Rate: s.rate(cfg.RateLimit.Requests, cfg.RateLimit.Per), AuthFailures: s.rate(authFailures, time.Minute),
		OtherHosts: s.opt.OtherHosts, Looks: s.opt.Looks, LogLevels: s.opt.LogLevels, Cluster: s.opt.Cluster, Draining: s.opt.Runtime.Draining, Certificates: s.opt.Certificates,
	})
	if err := s.api.Mount(s.opt.Mounts...); err != nil {
		return err
	}
	errorLog := slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)
	s.public = rest.Server(s.api, loopback)
	s.public.ErrorLog = errorLog
	s.public.Handler = s.lameDuck.wrap(s.public.Handler)
	if s.adminListener != nil {
		loopback := listener.Loopback(s.adminListener.Addr())
		metrics, err := s.registerMetrics()
		if err != nil {
			return err
		}
		s.admin = rest.Server(rest.NewAdmin(s.api, rest.AdminOptions{
			Ready: s.ready, Loopback: loopback, Hosts: cfg.Hosts, Warnings: s.warnings, Metrics: telemetry.Handler(metrics, s.log),
		}), loopback)
		s.admin.ErrorLog = errorLog
	}
	return nil
}

// errDraining is why a host that stops takes no work.
var errDraining = errors.New("draining")

// ready returns why the host takes no work, or nil.
func (s *Server) ready(ctx context.Context) error {
	if s.opt.Runtime.Draining() {
		return errDraining
	}
	return s.opt.StoreReady(ctx)
}

// warnings returns faults for operators that do not keep the host from working.
func (s *Server) warnings() (all []string) {
	if s.certs != nil {
		all = s.certs.Warnings()
	}
	for _, a := range s.authorities {
		all = append(all, a.Warnings()...)
	}
	all = append(all, diskWarnings(s.opt.DataDir, diskspace.Of)...)
	if err := s.opt.Audit.LastError(); err != nil {
		all = append(all, "the audit log cannot be written: "+err.Error())
	}
	if n := s.opt.Runtime.CountDamaged(); n > 0 {
		all = append(all, fmt.Sprintf("%d running tasks cannot be read and are set aside; the host's log names them", n))
	}
	if confined := s.opt.Library.Confined(); len(confined) > 0 {
		a := confined[0]
		all = append(all, fmt.Sprintf("%d agents are in quarantine, first %q of swarm %q of tenant %q; skep agent quarantine lists them, skep agent release lets one run again", len(confined), a.Name, a.Swarm, a.Tenant))
	}
	for _, n := range s.opt.Router.Stats() {
		if n.Breaker != router.BreakerClosed && n.Outboxes > 0 {
			all = append(all, fmt.Sprintf("messages of %d tasks wait for %q, which does not answer", n.Outboxes, n.Peer))
		}
	}
	for _, g := range s.opt.Gateways {
		if health := g.Health(); !health.OK {
			all = append(all, fmt.Sprintf("the gateway %s is not well: %s", g.Name(), health.Detail))
		}
	}
	for _, tenant := range s.opt.Library.Damaged() {
		all = append(all, fmt.Sprintf("the loaded definition of tenant %q cannot be read, and the tenant is not served; the host's log says what to do", tenant))
	}
	for _, m := range s.opt.Library.SilentModels() {
		all = append(all, fmt.Sprintf("[models.%s] does not answer: %s (calls without an answer: %d, since %s)", m.Name, m.Cause, m.Calls, m.Since.Format(time.RFC3339)))
	}
	return all
}

// definitions adapts the library to [rest.Definitions].
type definitions struct{ *definition.Library }

// InForce implements [rest.Definitions].
func (d definitions) InForce(tenant string) rest.InForce {
	return rest.InForce(d.Library.InForce(tenant))
}
