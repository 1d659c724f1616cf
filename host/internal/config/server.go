package config

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

const defaultListen = "127.0.0.1:8000"

// Server is the [server] table.
type Server struct {
	Listen      string // HOST:PORT; an empty host is every address
	AdminListen string
	PublicURL   string   // without a trailing slash; empty if not set
	Hosts       []string // accepted besides those of a loopback listener
	TLS         TLS
	PlainHTTP   bool // other machines may call without TLS
	// TrustedProxies are believed when they say for whom they call.
	TrustedProxies []netip.Prefix
	CORSOrigins    []string
	MaxBody        Size
	MaxDepth       int // of a body's JSON
	ShutdownGrace  time.Duration
	PeerHealth     time.Duration // how often peers are asked whether they are well; 0 is never
	SignLetters    bool          // for all peers, also those whose letters need no signature
	RateLimit      RateLimit
	// How many connections and event streams there may be; 0 is unlimited.
	MaxConnections           int
	MaxConnectionsPerAddress int
	MaxStreams               int
	MaxStreamsPerPrincipal   int
	Debug                    bool
	RequireLock              bool // every module must be in skep.lock
}

// RateLimit bounds the requests of one principal and of one address. Zero
// requests mean no limit.
type RateLimit struct {
	Requests int
	Per      time.Duration
}

// Loopback tells whether both listeners are reachable from this machine only.
func (s Server) Loopback() bool { return isLoopback(s.Listen) && isLoopback(s.AdminListen) }

// alone tells whether only this machine calls, with no proxy in front.
func (s Server) alone() bool {
	return isLoopback(s.Listen) && s.PublicURL == "" && len(s.TrustedProxies) == 0
}

func (d *decoder) server(t *table, keys bool) Server {
	s := Server{
		Listen:        t.address("listen", defaultListen),
		AdminListen:   t.address("admin_listen", "127.0.0.1:8001"),
		PublicURL:     t.url("public_url"),
		Hosts:         t.hosts("hosts"),
		TLS:           d.tls(t.table("tls")),
		PlainHTTP:     t.boolean("plain_http", false),
		CORSOrigins:   t.origins("cors_origins"),
		MaxBody:       t.size("max_body", MiB, bounds{min: int64(KiB), max: int64(GiB)}),
		MaxDepth:      t.count("max_depth", 64, bounds{min: 8, max: 1000}),
		ShutdownGrace: t.duration("shutdown_grace", 30*time.Second, within(0, time.Hour)),
		PeerHealth:    t.duration("peer_health", 30*time.Second, within(0, time.Hour)),
		SignLetters:   t.boolean("sign_letters", false),
		Debug:         t.boolean("debug", false),
		RequireLock:   t.boolean("require_lock", false),
	}
	s.TrustedProxies = t.networks("trusted_proxies")
	d.crowd(t, &s)
	t.needs("lock", "require_lock")
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
	t.done()
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

// crowd reads how many may call, and how often. Where only this machine can, one
// address is everybody's; behind a proxy it is the proxy's.
func (d *decoder) crowd(t *table, s *Server) {
	many := bounds{min: 1, max: 1_000_000, off: true}
	alone := s.Loopback() && len(s.TrustedProxies) == 0
	perAddress := 256
	if isLoopback(s.Listen) {
		perAddress = 0
	}
	s.MaxConnections = t.count("max_connections", 16_384, many)
	s.MaxConnectionsPerAddress = t.count("max_connections_per_address", perAddress, many)
	s.MaxStreams = t.count("max_streams", 10_000, many)
	s.MaxStreamsPerPrincipal = t.count("max_streams_per_principal", 1_000, many)
	s.RateLimit = d.rateLimit(t, alone)
}

// rateLimit is off by default where only this machine can call.
func (d *decoder) rateLimit(t *table, loopback bool) RateLimit {
	def := RateLimit{Requests: 600, Per: time.Minute}
	if !t.has("rate_limit") {
		if loopback {
			def.Requests = 0
		}
		return def
	}
	sub := t.table("rate_limit")
	if sub.values != nil && !sub.has("requests") {
		sub.missing("requests", `, as in { requests = 600, per = "1m" }`)
	}
	r := RateLimit{
		Requests: sub.count("requests", def.Requests, bounds{min: 1, max: 1_000_000_000, off: true}),
		Per:      sub.duration("per", def.Per, within(time.Second, 24*time.Hour)),
	}
	sub.done()
	return r
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
