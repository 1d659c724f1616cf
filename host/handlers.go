package host

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"skep/host/internal/auth"
	"skep/host/internal/rest"
	"skep/host/internal/swarm"
)

// handlers makes the servers for the open listeners.
func (h *Host) handlers() error {
	keys, err := h.keys()
	if err != nil {
		return err
	}
	cfg := h.opt.Config
	s := cfg.Server
	api := rest.New(h.swarm, keys, rest.Options{
		Tenant: swarm.DefaultTenant, Swarm: cfg.Swarm.Name, Version: h.opt.Version,
		PublicURL: s.PublicURL, MaxBody: int64(s.MaxBody), MaxDepth: s.MaxDepth,
		Loopback: isLoopback(h.publicAddr.Addr()), Hosts: s.Hosts, Origins: s.CORSOrigins,
		Rate: auth.Rate{Requests: s.RateLimit.Requests, Per: s.RateLimit.Per}, Logger: h.log,
	})
	errorLog := slog.NewLogLogger(h.log.Handler(), slog.LevelDebug)
	h.public = rest.Server(api)
	h.public.ErrorLog = errorLog
	if h.adminAddr != nil {
		h.admin = rest.Server(rest.NewAdmin(api, rest.AdminOptions{
			Ready: h.ready, Loopback: isLoopback(h.adminAddr.Addr()), Hosts: s.Hosts, Counters: h.retention.counters,
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

// keys are those of the configuration, or the operator's key of this host.
func (h *Host) keys() (*auth.Keys, error) {
	var keys []auth.Key
	for _, k := range h.opt.Config.Auth.Keys {
		keys = append(keys, auth.Key{Principal: principal(k), SHA256: k.SHA256})
	}
	if len(keys) == 0 {
		if !isLoopback(h.publicAddr.Addr()) {
			return nil, fmt.Errorf("listen on %s: a host without [[auth.keys]] listens on loopback only; add a key or set [server] listen = \"127.0.0.1:8000\"", h.publicAddr.Addr())
		}
		text, path, err := operatorKey(h.opt.DataDir)
		if err != nil {
			return nil, err
		}
		h.keyPath = path
		keys = []auth.Key{auth.NewKey(auth.Principal{Tenant: swarm.DefaultTenant, Role: auth.Operator, ID: "operator"}, text)}
	}
	return auth.NewKeys(keys)
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
