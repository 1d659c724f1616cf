package rest

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"skep/host/internal/auth"
)

// admit finds out who the caller is and whether it may go on. Calls without
// credentials, and with wrong ones, count for the address they come from, so
// that whoever shares it with a guesser keeps his own share.
func (c *call) admit(rt route) error {
	if rt.need == "" {
		return c.h.admitAddress(c.r)
	}
	c.w.Header().Set("Cache-Control", "no-store")
	who, fault := c.h.authenticate(c.r, rt.need)
	if fault != nil {
		c.h.counters.unauthenticated.Add(1)
		if err := c.h.admitAddress(c.r); err != nil {
			return err
		}
		return fault
	}
	c.w.who = who
	if wait, ok := c.h.byCaller.Allow(who.String()); !ok {
		return c.h.tooMany(wait)
	}
	if !who.Role.Covers(rt.need) {
		return unauthorized("invalid role")
	}
	return nil
}

// authenticate reads the caller's key (contract 1.1, R-087).
func (h *Handler) authenticate(r *http.Request, need auth.Role) (auth.Principal, *fault) {
	header := r.Header.Values("Authorization")
	if len(header) == 0 {
		return auth.Principal{}, unauthorized("no API key provided")
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	token = strings.Trim(token, " ")
	if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t") {
		if need == auth.User {
			return auth.Principal{}, unauthorized("invalid role")
		}
		return auth.Principal{}, unauthorized("invalid API key format")
	}
	who, ok := h.keys.Authenticate(token)
	if !ok {
		return auth.Principal{}, unauthorized("invalid API key")
	}
	if who.Tenant == "" {
		who.Tenant = h.opt.Tenant
	}
	return who, nil
}

func unauthorized(detail string) *fault {
	return &fault{status: http.StatusUnauthorized, detail: detail, challenge: true}
}

func (h *Handler) admitAddress(r *http.Request) error {
	if wait, ok := h.byAddress.Allow(address(r.RemoteAddr)); !ok {
		return h.tooMany(wait)
	}
	return nil
}

func (h *Handler) tooMany(wait time.Duration) error {
	h.counters.limited.Add(1)
	return &fault{status: http.StatusTooManyRequests, detail: "too many requests", retry: int(wait / time.Second)}
}

// address is who shares a bucket: one IPv4 address, or one IPv6 network as
// providers give it to one customer.
func address(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
