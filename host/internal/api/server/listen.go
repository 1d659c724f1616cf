package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"skep/host/internal/api/http3"
	"skep/host/internal/api/listener"
	"skep/host/internal/definition/config"
)

// listen opens both listeners.
func (s *Server) listen(ctx context.Context) (err error) {
	cfg := s.opt.Config.Server
	public, admin := s.opt.Listen, s.opt.AdminListen
	if public == "" {
		public = cfg.Listen
	}
	if admin == "" {
		admin = cfg.AdminListen
	}
	if err := s.loadCertificates(cfg.TLS); err != nil {
		return err
	}
	limits := listener.Limits{
		Connections: s.connectionLimit(cfg.MaxConnections), PerAddress: cfg.MaxConnectionsPerAddress, Proxies: cfg.TrustedProxies,
	}
	if s.publicListener, err = listener.Open(ctx, public, limits, s.certs); err != nil {
		return fmt.Errorf("listen on %s ([server] listen): %w", public, err)
	}
	if admin != "off" {
		if s.adminListener, err = s.listenAdmin(ctx, admin); err != nil {
			return err
		}
	}
	for _, l := range []*listener.Listener{s.publicListener, s.adminListener} {
		if err := s.checkPlainHTTP(l); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) loadCertificates(t config.TLS) (err error) {
	if t.Cert == "" {
		return nil
	}
	s.certs, err = listener.LoadCertificates(listener.CertificateOptions{Files: t.Files, RequireClient: t.RequireClient, TLS12: t.TLS12, Logger: s.log})
	if err != nil {
		return fmt.Errorf("[server.tls]: %w", err)
	}
	return nil
}

// openHTTP3 serves the public handler over UDP, at the port of the public listener, which
// announces it (https://www.rfc-editor.org/rfc/rfc7838.html).
func (s *Server) openHTTP3(ctx context.Context) (err error) {
	if !s.opt.HTTP3 {
		return nil
	}
	if s.certs == nil {
		return errors.New("HTTP/3 needs [server.tls]")
	}
	cfg := s.opt.Config.Server
	s.http3, err = http3.Open(ctx, s.Addr(), http3.Options{
		TLS: s.certs.TLS(), Handler: s.api,
		Limits: listener.Limits{Connections: s.connectionLimit(cfg.MaxConnections), PerAddress: cfg.MaxConnectionsPerAddress, Proxies: cfg.TrustedProxies},
	})
	if err != nil {
		return fmt.Errorf("listen on %s for HTTP/3 ([server] listen): %w", s.Addr(), err)
	}
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return err
	}
	next := s.public.Handler
	s.public.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3=":`+port+`"; ma=3600`)
		next.ServeHTTP(w, r)
	})
	return nil
}

// adminConnections bounds the connections of the admin listener.
const adminConnections = 256

// OpenSocket listens for a protocol without HTTP, under the limits and with the certificate
// of the public listener.
func (s *Server) OpenSocket(ctx context.Context, address string) (*listener.Listener, error) {
	cfg := s.opt.Config.Server
	limits := listener.Limits{Connections: s.connectionLimit(cfg.MaxConnections), PerAddress: cfg.MaxConnectionsPerAddress, Proxies: cfg.TrustedProxies}
	l, err := listener.Open(ctx, address, limits, s.certs)
	if err == nil {
		if err = s.checkPlainHTTP(l); err != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return l, err
}

// listenAdmin opens the admin listener, with TLS unless it is on loopback.
func (s *Server) listenAdmin(ctx context.Context, address string) (*listener.Listener, error) {
	certs := s.certs
	if config.Loopback(address) {
		certs = nil
	}
	l, err := listener.Open(ctx, address, listener.Limits{Connections: adminConnections}, certs)
	if err != nil {
		return nil, fmt.Errorf("listen on %s ([server] admin_listen): %w", address, err)
	}
	return l, nil
}

// checkPlainHTTP refuses a listener without TLS that other machines can reach,
// unless the operator allows it. The configuration alone cannot decide it, because
// Options override its addresses.
func (s *Server) checkPlainHTTP(l *listener.Listener) error {
	if l == nil || l.Secure() || listener.Loopback(l.Addr()) || s.opt.Config.Server.PlainHTTP || s.opt.PlainHTTP {
		return nil
	}
	return fmt.Errorf("listen on %s: it is reached from other machines, and has no TLS; add [server.tls] with cert and key, "+
		"or set [server] plain_http = true (--plain-http) if a proxy in front speaks TLS", l.Addr())
}

// connectionLimit returns how many connections the process can hold, at most the
// configured number.
func (s *Server) connectionLimit(most int) int {
	files := listener.MaxOpenFiles()
	limit := listener.ConnectionsFor(files, most)
	if limit == most {
		return most
	}
	s.log.Warn("fewer connections than [server] max_connections: the process may not open as many files; raise its limit (ulimit -n, or LimitNOFILE of systemd)",
		"files", files, "connections", limit, "max_connections", most)
	return limit
}
