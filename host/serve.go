package host

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skep/host/internal/config"
	"skep/host/internal/listen"
	"skep/host/internal/rest"
)

// listen opens both listeners, so that a port in use is an error of New.
func (h *Host) listen(ctx context.Context) (err error) {
	cfg := h.opt.Config.Server
	public, admin := h.opt.Listen, h.opt.AdminListen
	if public == "" {
		public = cfg.Listen
	}
	if admin == "" {
		admin = cfg.AdminListen
	}
	if err := h.openCertificates(cfg.TLS); err != nil {
		return err
	}
	limits := listen.Limits{
		Connections: h.connections(cfg.MaxConnections), PerAddress: cfg.MaxConnectionsPerAddress, Proxies: cfg.TrustedProxies,
	}
	if h.publicAddr, err = listen.Open(ctx, public, limits, h.certs); err != nil {
		return fmt.Errorf("listen on %s ([server] listen): %w", public, err)
	}
	if admin != "off" {
		if h.adminAddr, err = h.listenAdmin(ctx, admin); err != nil {
			return err
		}
	}
	for _, l := range []*listen.Listener{h.publicAddr, h.adminAddr} {
		if err := h.mayServe(l); err != nil {
			return err
		}
	}
	return h.handlers()
}

// openCertificates reads those of the configuration, if it has any.
func (h *Host) openCertificates(t config.TLS) (err error) {
	if t.Cert == "" {
		return nil
	}
	h.certs, err = listen.Load(listen.Options{Files: t.Files, RequireClient: t.RequireClient, TLS12: t.TLS12, Logger: h.log})
	if err != nil {
		return fmt.Errorf("[server.tls]: %w", err)
	}
	return nil
}

// adminConnections is enough for those who watch a host.
const adminConnections = 256

// listenAdmin speaks TLS where others than this machine can call.
func (h *Host) listenAdmin(ctx context.Context, address string) (*listen.Listener, error) {
	certs := h.certs
	if config.Loopback(address) {
		certs = nil
	}
	l, err := listen.Open(ctx, address, listen.Limits{Connections: adminConnections}, certs)
	if err != nil {
		return nil, fmt.Errorf("listen on %s ([server] admin_listen): %w", address, err)
	}
	return l, nil
}

// mayServe refuses listeners that others reach without TLS, unless that is meant:
// the configuration says so only of its own addresses.
func (h *Host) mayServe(l *listen.Listener) error {
	if l == nil || l.Secure() || listen.Loopback(l.Addr()) || h.opt.Config.Server.PlainHTTP || h.opt.PlainHTTP {
		return nil
	}
	return fmt.Errorf("listen on %s: it is reached from other machines, and has no TLS; add [server.tls] with cert and key, "+
		"or set [server] plain_http = true (--plain-http) if a proxy in front speaks TLS", l.Addr())
}

// spareFiles is what the process opens besides connections: the store, modules,
// and what agents and authorities call.
const spareFiles = 512

// connections is how many the process can hold, which may be less than the
// configuration has.
func (h *Host) connections(most int) int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return most
	}
	room := roomFor(files.Cur, most)
	if room == most {
		return most
	}
	h.log.Warn("fewer connections than [server] max_connections: the process may not open as many files; raise its limit (ulimit -n, or LimitNOFILE of systemd)",
		"files", files.Cur, "connections", room, "max_connections", most)
	return room
}

// roomFor is how many connections go with so many files, at most as many as are
// wanted; 0 wants any number.
func roomFor(files uint64, most int) int {
	if files > 1<<20 {
		return most
	}
	room := max(64, int(files)-spareFiles)
	if most > 0 && most < room {
		return most
	}
	return room
}

// serve answers requests until ctx ends and every handler has returned.
func (h *Host) serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.publicAddr.Serve(h.public) })
	if h.adminAddr != nil {
		g.Go(func() error { return h.adminAddr.Serve(h.admin) })
	}
	if h.certs != nil {
		g.Go(func() error {
			h.certs.Run(ctx, h.opt.Hangups)
			return nil
		})
	}
	g.Go(func() error {
		<-ctx.Done()
		return h.shutdown()
	})
	return g.Wait()
}

// telling is how long callers have to be told, after the last turn has ended,
// what became of their posts.
const telling = 2 * time.Second

// shutdown waits for handlers for the configured grace, which turns may use up,
// and for as long as telling takes; then it cuts them off.
func (h *Host) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), h.opt.Config.Server.ShutdownGrace+telling)
	defer cancel()
	for _, s := range []*http.Server{h.public, h.admin} {
		if s == nil {
			continue
		}
		if err := s.Shutdown(ctx); err != nil {
			h.log.Warn("cut connections that outlasted the grace", "err", err)
			_ = s.Close()
		}
	}
	return nil
}

// warnings are what operators should see to, though the host is ready.
func (h *Host) warnings() (all []string) {
	if h.certs != nil {
		all = h.certs.Warnings()
	}
	for _, a := range h.outside {
		all = append(all, a.Warnings()...)
	}
	if err := h.audit.Trouble(); err != nil {
		all = append(all, "the audit log cannot be written: "+err.Error())
	}
	if n := h.swarm.Damaged(); n > 0 {
		all = append(all, fmt.Sprintf("%d running tasks cannot be read and are set aside; the host's log names them", n))
	}
	return all
}

// doorCounters are what the public listener tells operators.
func (h *Host) doorCounters() []rest.Counter {
	n := h.publicAddr.Counts()
	return []rest.Counter{
		{Name: "skep_connections_refused_total", Help: "Connections that were one too many.", Value: n.Refused},
		{Name: "skep_connections_evicted_total", Help: "Connections without a request that had to make room for others.", Value: n.Evicted},
		{Name: "skep_audit_failures_total", Help: "Writes to the audit log that failed.", Value: h.audit.Failures()},
	}
}

func (h *Host) doorGauges() []rest.Gauge {
	all := []rest.Gauge{{Name: "skep_connections", Help: "Connections that are open.", Value: int64(h.publicAddr.Counts().Open)}}
	all = append(all, rest.Gauge{Name: "skep_tasks_damaged", Help: "Running tasks that cannot be read and are set aside.", Value: int64(h.swarm.Damaged())})
	if h.certs != nil {
		left := time.Until(h.certs.Expires())
		all = append(all, rest.Gauge{Name: "skep_certificate_expires_seconds", Help: "How long the certificate in use is valid.", Value: int64(left / time.Second)})
	}
	return all
}
