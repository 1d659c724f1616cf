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
	Listen        string // HOST:PORT; an empty host is every address
	AdminListen   string
	PublicURL     string   // without a trailing slash; empty if not set
	Hosts         []string // accepted besides those of a loopback listener
	TLS           TLS
	CORSOrigins   []string
	MaxBody       Size
	MaxDepth      int // of a body's JSON
	ShutdownGrace time.Duration
	RateLimit     RateLimit
	Debug         bool
	RequireLock   bool // every module must be in skep.lock
}

// TLS names the files of a certificate and its key. Both are empty or neither.
type TLS struct{ Cert, Key string }

// RateLimit bounds the requests of one principal and of one address. Zero
// requests mean no limit.
type RateLimit struct {
	Requests int
	Per      time.Duration
}

// Loopback tells whether both listeners are reachable from this machine only.
func (s Server) Loopback() bool { return isLoopback(s.Listen) && isLoopback(s.AdminListen) }

func (d *decoder) server(t *table, keys bool) Server {
	s := Server{
		Listen:        t.address("listen", defaultListen),
		AdminListen:   t.address("admin_listen", "127.0.0.1:8001"),
		PublicURL:     t.url("public_url"),
		Hosts:         t.hosts("hosts"),
		TLS:           d.tls(t.table("tls")),
		CORSOrigins:   t.origins("cors_origins"),
		MaxBody:       t.size("max_body", MiB, bounds{min: int64(KiB), max: int64(GiB)}),
		MaxDepth:      t.count("max_depth", 64, bounds{min: 8, max: 1000}),
		ShutdownGrace: t.duration("shutdown_grace", 30*time.Second, within(0, time.Hour)),
		Debug:         t.boolean("debug", false),
		RequireLock:   t.boolean("require_lock", false),
	}
	s.RateLimit = d.rateLimit(t, s.Loopback())
	t.needs("lock", "require_lock")
	t.needs("debug", "debug")
	if t.has("tls") {
		d.needs("tls", t.child("tls"))
	}
	if s.Listen == s.AdminListen && !hasPort(s.Listen, "0") {
		d.atValue(t.child("admin_listen"), "listen and admin_listen are the same address")
	}
	if !isLoopback(s.Listen) && !keys {
		d.atValue(t.child("listen"),
			`a host without [[auth.keys]] listens on loopback only; add a key or set [server] listen = "`+defaultListen+`"`)
	}
	t.done()
	return s
}

func (d *decoder) tls(t *table) TLS {
	files := [2]string{}
	for i, key := range []string{"cert", "key"} {
		v, ok := t.value(key)
		if !ok {
			if t.values != nil && !t.has(key) {
				t.missing(key, "")
			}
			continue
		}
		files[i] = d.path(v.text)
		if err := isFile(files[i]); err != nil {
			d.atValue(v.spot, fmt.Sprintf("the file %s %s", v.shown, err))
		}
	}
	t.done()
	return TLS{Cert: files[0], Key: files[1]}
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
