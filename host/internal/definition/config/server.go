package config

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

const (
	defaultListen      = "127.0.0.1:8000"
	defaultAdminListen = "127.0.0.1:8001"
)

// Server is the [server] table.
type Server struct {
	Listen         string // HOST:PORT; an empty host is every address
	AdminListen    string
	PublicURL      string   // without a trailing slash; empty if not set
	Hosts          []string // accepted besides the names of a loopback listener
	TLS            TLS
	PlainHTTP      bool // other machines may call without TLS
	TrustedProxies []netip.Prefix
	CORSOrigins    []string
	MaxBody        Size
	MaxDepth       int
	ShutdownGrace  time.Duration
	PeerHealth     time.Duration // 0 is never
	SignLetters    bool          // for all peers
	RateLimit      RateLimit
	// How many connections and event streams there may be; 0 is unlimited.
	MaxConnections           int
	MaxConnectionsPerAddress int
	MaxStreams               int
	MaxStreamsPerPrincipal   int
	Debug                    bool
	RequireLock              bool
}

// RateLimit bounds the requests of one principal and of one address. Zero
// requests mean no limit.
type RateLimit struct {
	Requests int
	Tenant   int // of all principals of one tenant, where there are several
	Per      time.Duration
}

// settings have defaults that go by Listen, AdminListen and TrustedProxies: these
// are read first.
func (s *Server) Settings() []Setting {
	return []Setting{
		field(&s.Listen, "listen", "address", func(t *table, key string) string { return t.address(key, defaultListen) }, "Where callers connect, HOST:PORT; an empty host is every address.").withDefaultText(defaultListen),
		field(&s.AdminListen, "admin_listen", "address", func(t *table, key string) string { return t.address(key, defaultAdminListen) }, "Where operators' tools connect: health, metrics, version.").withDefaultText(defaultAdminListen),
		field(&s.PublicURL, "public_url", "URL", (*table).url, "Where others reach the host."),
		field(&s.Hosts, "hosts", "list of host names", (*table).hosts, "Host names that a loopback listener accepts besides its own."),
		section("tls", s.TLS.Settings(), "The certificate of both listeners."),
		boolean(&s.PlainHTTP, "plain_http", false, "Other machines may call without TLS: a proxy in front speaks it."),
		field(&s.TrustedProxies, "trusted_proxies", "list of networks", (*table).networks, "Proxies that are believed for whom they call."),
		field(&s.CORSOrigins, "cors_origins", "list of origins", (*table).origins, "Origins whose pages may call from a browser."),
		size(&s.MaxBody, "max_body", MiB, KiB, GiB, "Body of one request."),
		count(&s.MaxDepth, "max_depth", 64, 8, 1000, "Levels of a body's JSON."),
		span(&s.ShutdownGrace, "shutdown_grace", 30*time.Second, 0, time.Hour, "What running turns have when the host is told to stop."),
		span(&s.PeerHealth, "peer_health", 30*time.Second, 0, time.Hour, "How often peers are asked whether they are well; at least 1s, 0s is never.").noLimit(),
		boolean(&s.SignLetters, "sign_letters", false, "What goes to peers is signed, also for peers that need no signature."),
		section("rate_limit", s.RateLimit.Settings(), "Requests of one principal, and of one address; without the table none where only this machine can call."),
		count(&s.MaxConnections, "max_connections", 16_384, 1, 1_000_000, "Connections at once.").unlimited(),
		count(&s.MaxConnectionsPerAddress, "max_connections_per_address", 256, 1, 1_000_000, "Connections of one address.").unlimited().
			zero(func() bool { return isLoopback(s.Listen) }, "unlimited where `listen` is a loopback address"),
		count(&s.MaxStreams, "max_streams", 10_000, 1, 1_000_000, "Event streams at once.").unlimited(),
		count(&s.MaxStreamsPerPrincipal, "max_streams_per_principal", 1_000, 1, 1_000_000, "Event streams of one principal.").unlimited(),
		boolean(&s.Debug, "debug", false, "More is said of faults to callers."),
		boolean(&s.RequireLock, "require_lock", false, "Every module must be in skep.lock.").planned("lock"),
	}
}

func (r *RateLimit) Settings() []Setting {
	return []Setting{
		count(&r.Requests, "requests", 600, 1, 1_000_000_000, "Requests in the time `per`.").unlimited().needed(`, as in { requests = 600, per = "1m" }`),
		count(&r.Tenant, "tenant", 6000, 1, 1_000_000_000, "Requests of all principals of one tenant in the time `per`, on a host with several tenants.").unlimited(),
		span(&r.Per, "per", time.Minute, time.Second, day, "The time of `requests`."),
	}
}

// Loopback reports whether both listeners are reachable from this machine only.
func (s Server) Loopback() bool { return isLoopback(s.Listen) && isLoopback(s.AdminListen) }

// alone reports whether only this machine calls, with no proxy in front.
func (s Server) alone() bool {
	return isLoopback(s.Listen) && s.PublicURL == "" && len(s.TrustedProxies) == 0
}

func (d *decoder) server(t *table, keys bool) Server {
	var s Server
	t.read(s.Settings())
	d.tls(t.table("tls"), &s.TLS)
	if !t.has("rate_limit") && s.Loopback() && len(s.TrustedProxies) == 0 {
		s.RateLimit.Requests = 0 // one address is everybody's
	}
	if s.PeerHealth > 0 && s.PeerHealth < time.Second {
		d.atValue(t.child("peer_health"), `server.peer_health must be 0s, which is never, or at least 1s`)
	}
	if s.Listen == s.AdminListen && !hasPort(s.Listen, "0") {
		d.atValue(t.child("admin_listen"), "listen and admin_listen are the same address")
	}
	if !isLoopback(s.Listen) && !keys {
		d.atValue(t.child("listen"),
			`a host without [[auth.keys]] listens on loopback only; add a key or set [server] listen = "`+defaultListen+`"`)
	}
	d.checkOpen(t, s)
	t.refuseUnknown()
	return s
}

// checkOpen refuses listeners that others reach without TLS, unless that is meant.
func (d *decoder) checkOpen(t *table, s Server) {
	if s.PlainHTTP || d.opt.PlainHTTP || t.has("tls") {
		return
	}
	for key, address := range map[string]string{"listen": s.Listen, "admin_listen": s.AdminListen} {
		if !isLoopback(address) {
			d.atValue(t.child(key), fmt.Sprintf("%s is reached from other machines, and has no TLS; add [server.tls] with cert and key, "+
				"or set [server] plain_http = true (--plain-http) if a proxy in front speaks TLS", t.child(key).path))
		}
	}
}

// Loopback reports whether HOST:PORT is reached from this machine only.
func Loopback(address string) bool { return isLoopback(address) }

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func hasPort(address, port string) bool {
	_, p, err := net.SplitHostPort(address)
	return err == nil && p == port
}
