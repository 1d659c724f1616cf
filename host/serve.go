package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// listen opens both listeners, so that a port in use is an error of New.
func (h *Host) listen() (err error) {
	cfg := h.opt.Config.Server
	public, admin := h.opt.Listen, h.opt.AdminListen
	if public == "" {
		public = cfg.Listen
	}
	if admin == "" {
		admin = cfg.AdminListen
	}
	if h.publicAddr, err = net.Listen("tcp", public); err != nil {
		return fmt.Errorf("listen on %s ([server] listen): %w", public, err)
	}
	if admin != "off" {
		if h.adminAddr, err = net.Listen("tcp", admin); err != nil {
			return fmt.Errorf("listen on %s ([server] admin_listen): %w", admin, err)
		}
	}
	return h.handlers()
}

// serve answers requests until ctx ends and every handler has returned.
func (h *Host) serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serveOn(h.public, h.publicAddr) })
	if h.adminAddr != nil {
		g.Go(func() error { return serveOn(h.admin, h.adminAddr) })
	}
	g.Go(func() error {
		<-ctx.Done()
		return h.shutdown()
	})
	return g.Wait()
}

func serveOn(s *http.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
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
