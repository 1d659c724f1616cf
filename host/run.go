package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"skep/host/internal/api/audit"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/definition/plan"
	"skep/host/internal/gateway"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// Run serves until ctx ends. Then it takes no new posts and no new turns, gives
// running turns the configured grace, answers waiting callers that their tasks
// continue at the next start, and closes the store last. Nothing runs after it
// returns.
func (h *Host) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	defer h.boundStop(ctx)()
	turnsEnded := make(chan struct{})
	g.Go(func() error {
		defer close(turnsEnded)
		defer h.pulse.Close()
		return h.swarm.Run(ctx, h.opt.Config.Server.ShutdownGrace)
	})
	g.Go(func() error { return h.runShared(ctx, turnsEnded) })
	g.Go(func() error { return h.watchStore(ctx) })
	g.Go(func() error { return h.router.Run(ctx, h.swarm) })
	g.Go(func() error { return h.server.Serve(ctx, turnsEnded) })
	for _, one := range h.gateways {
		g.Go(func() error { return one.Run(ctx) })
	}
	if h.messages != nil {
		g.Go(func() error {
			h.messages.Run(ctx)
			return nil
		})
	}
	for _, background := range []func(context.Context){h.retention.Run, h.definitions.Run, h.audit.Run, h.exchangeHeads, h.peers.Registry().Run, h.watchHangups} {
		g.Go(func() error {
			background(ctx)
			return nil
		})
	}
	err := g.Wait()
	if end := h.store.End(); end != nil && errors.Is(err, swarm.ErrFenced) {
		err = errors.Join(end, h.recordLoss(end)) // it has the reason
	}
	return errors.Join(h.explainWrite(err), h.Close())
}

// boundStop lets no write wait for a server that is away once [leaveTime] has passed after the grace of a
// stop: a turn's commit heeds no context once the writer has it, so the turn would not end either.
func (h *Host) boundStop(ctx context.Context) (release func()) {
	store, limit := h.store, h.opt.Config.Server.ShutdownGrace+leaveTime
	released, release := context.WithCancel(context.Background())
	context.AfterFunc(ctx, func() {
		late := time.NewTimer(limit)
		defer late.Stop()
		select {
		case <-late.C:
			h.log.Warn("the stop takes long: a store's server that is away is not waited for any more, and turns that it has not committed run again at the next start", "after", limit)
			store.StopWaiting()
		case <-released.Done():
		}
	})
	return release
}

// watchStore ends the host when its store takes no write any more, also while no turn runs that
// would meet it.
func (h *Host) watchStore(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-h.store.Ended():
		return h.store.End()
	}
}

// Reload reads the configuration again and puts it in force, all of it or nothing.
func (h *Host) Reload(ctx context.Context) ([]plan.Change, error) { return h.definitions.Reload(ctx) }

// watchHangups reloads at each hangup until ctx ends.
func (h *Host) watchHangups(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.opt.Hangups:
			h.reloadOnHangup(ctx)
		}
	}
}

// reloadOnHangup reloads the certificate and the configuration. What it cannot
// reload stays as it is and is logged: a hangup never ends a host.
func (h *Host) reloadOnHangup(ctx context.Context) {
	h.log.Info("SIGHUP: reading the configuration and the certificate again")
	h.server.ReloadCertificate(ctx)
	changes, err := h.Reload(ctx)
	if err != nil {
		h.log.Error("SIGHUP: the configuration stays as it is", "err", err)
	} else {
		h.log.Info("SIGHUP: the file is in force", "changes", len(changes))
	}
	h.recordReload(err)
}

// recordReload records a reload by signal in the audit log.
func (h *Host) recordReload(err error) {
	e := audit.Entry{Act: "config.reload", Outcome: audit.Done, Target: h.opt.Config.Swarm.Name, Reason: "SIGHUP"}
	if err != nil {
		e.Outcome, e.Reason = audit.Failed, "SIGHUP: "+err.Error()
	}
	if refusal := new(swarm.Refusal); errors.As(err, &refusal) {
		e.Outcome = audit.Refused
	}
	if err := h.audit.Record(e); err != nil {
		h.log.Warn("not recorded in the audit log", "act", e.Act, "err", err)
	}
}

// applyReload applies the parts of a reloaded configuration that are not
// definitions.
func (h *Host) applyReload(cfg *config.Config) {
	h.swarm.ReplaceQuotas(definition.Tenants(cfg))
	h.peers.SetPeers(cfg.Peers)
	for _, g := range h.gateways {
		g.Catalog.ReplacePartners()
	}
	if err := h.certificates.Replace(certificateNames(cfg)); err != nil {
		h.log.Error("the names of certificates stay as they were", "err", err) // the configuration was checked
	}
	h.opt.Level.Set(cfg.Telemetry.Level())
}

// Close releases what New opened: the listeners first, the store and the audit log
// last.
func (h *Host) Close() error {
	var errs []error
	if h.server != nil {
		errs = append(errs, h.server.Close())
	}
	for _, g := range h.gateways {
		if own, has := g.Gateway.(gateway.Opener); has {
			errs = append(errs, own.Close())
		}
		g.Catalog.Close()
	}
	if h.closeWebhook != nil {
		h.closeWebhook()
		h.closeWebhook = nil
	}
	if h.loader != nil {
		errs = append(errs, h.loader.Close())
		h.loader = nil
	}
	if h.definitions != nil {
		errs = append(errs, h.definitions.Close())
	}
	if h.running != nil {
		errs = append(errs, h.running.Close())
		h.running = nil
	}
	if h.tokens != nil {
		errs = append(errs, h.saveTokens())
		h.tokens = nil
	}
	if h.member != nil {
		errs = append(errs, h.member.Close())
		h.member = nil
	}
	if h.store != nil {
		errs = append(errs, h.store.Close())
		h.store = nil
	}
	errs = append(errs, h.messages.Close(), h.closeAudit(), h.closeTelemetry())
	h.messages = nil
	return errors.Join(errs...)
}

// recordStart records in the audit log that the host runs, and its configuration.
func (h *Host) recordStart() error {
	err := h.audit.Record(audit.Entry{
		Act: "host.start", Outcome: audit.Done, Target: h.configDigest(),
		Reason: "skep " + h.opt.Version + " listens on " + h.Addr(),
	})
	h.recorded = err == nil
	return err
}

// closeAudit records the stop of a host whose start was recorded, and closes the
// log. The host's log gets the head, so that entries cut off the end of the audit
// log can be detected.
func (h *Host) closeAudit() error {
	if h.audit == nil {
		return nil
	}
	var err error
	if h.recorded {
		err = h.audit.Record(audit.Entry{Act: "host.stop", Outcome: audit.Done, Target: h.configDigest()})
	}
	h.finishHeads()
	err = errors.Join(err, h.audit.Close())
	if h.recorded {
		seq, head := h.audit.Head()
		h.log.Info("the audit log is closed", "entries", seq, "head", head)
	}
	h.audit = nil
	return err
}

// recordLoss records that the server has lost what it had acknowledged.
func (h *Host) recordLoss(end error) error {
	if !errors.Is(end, sqlite.ErrLost) {
		return nil
	}
	return h.audit.Record(audit.Entry{Act: "store.loss", Outcome: audit.Failed, Target: h.configDigest(), Reason: end.Error()})
}

// recordToolChange records that an MCP tool differs from its pin.
func (h *Host) recordToolChange(tenant, server, tool string) {
	err := h.audit.Record(audit.Entry{
		Act: "mcp.changed", Outcome: audit.Refused, Tenant: tenant, Target: server + "/" + tool,
		Reason: "the definition is not the one that was pinned",
	})
	if err != nil {
		h.log.Warn("not recorded in the audit log", "act", "mcp.changed", "err", err)
	}
}

// configDigest returns the digest of the configuration in force.
func (h *Host) configDigest() string {
	cfg := h.opt.Config
	if h.definitions != nil {
		cfg = h.definitions.Config() // a reload may have replaced it
	}
	return fmt.Sprintf("sha256:%s", cfg.Digest())
}
