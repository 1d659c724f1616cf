package host

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"skep/host/internal/auth"
	"skep/host/internal/listen"
	"skep/host/internal/rest"
	"skep/host/internal/swarm"
)

// guessing is how often one address may show wrong credentials. Keys have at
// least 16 characters, so this is less for their sake than for that of outside
// authorities and of the log.
var guessing = auth.Rate{Requests: 30, Per: time.Minute}

// handlers makes the servers for the open listeners.
func (h *Host) handlers() error {
	callers, err := h.callers()
	if err != nil {
		return err
	}
	cfg := h.opt.Config
	s := cfg.Server
	known, private, err := h.openRegistry()
	if err != nil {
		return err
	}
	h.peers.known, h.peers.private = known, private
	h.warnOfPeers()
	api := rest.New(h.swarm, callers, rest.Options{
		Tenant: swarm.DefaultTenant, Swarm: cfg.Swarm.Name, Version: h.opt.Version,
		Tenants: eraser{h.swarm, h.defs}, PublicURL: s.PublicURL, Registry: known, Letters: h.peers.trouble, Seals: seals{h.peers}, Debug: s.Debug, MaxBody: int64(s.MaxBody), MaxDepth: s.MaxDepth,
		Loopback: listen.Loopback(h.publicAddr.Addr()), Hosts: s.Hosts, Origins: s.CORSOrigins,
		TrustedProxies: s.TrustedProxies, MaxStreams: s.MaxStreams, MaxStreamsPerPrincipal: s.MaxStreamsPerPrincipal,
		Rate: auth.Rate{Requests: s.RateLimit.Requests, Per: s.RateLimit.Per}, Guess: guessing,
		Definitions: h.defs, File: h, Tokens: h.tokens, Operators: callers.Operators, Audit: h.audit, Logger: h.log,
	})
	errorLog := slog.NewLogLogger(h.log.Handler(), slog.LevelDebug)
	h.public = rest.Server(api)
	h.public.ErrorLog = errorLog
	if h.adminAddr != nil {
		h.admin = rest.Server(rest.NewAdmin(api, rest.AdminOptions{
			Ready: h.ready, Loopback: listen.Loopback(h.adminAddr.Addr()), Hosts: s.Hosts,
			Counters: func() []rest.Counter {
				return slices.Concat(h.retention.counters(), h.doorCounters(), h.peerCounters(), h.letterCounters(), h.defs.providers.counters(), h.defs.tools.counters(), h.opCounters())
			},
			Gauges: func() []rest.Gauge { return slices.Concat(h.doorGauges(), h.peerGauges(), h.letterGauges()) }, Warnings: h.warnings,
			Meters: h.swarm.Meters(),
		}))
		h.admin.ErrorLog = errorLog
	}
	return nil
}

// ready says why the host takes no work.
func (h *Host) ready(context.Context) error {
	if h.swarm.Draining() {
		return swarm.ErrDraining
	}
	return nil
}
