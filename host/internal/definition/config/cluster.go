package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"
)

// Cluster is the [cluster] table: the host shares its server with others.
type Cluster struct {
	// Advertise is the URL at which the other hosts reach this one, empty for a host that shares
	// nothing.
	Advertise string
	// Beat is the time between two signs of life, TTL that without one until the others take a
	// host's work. Handover is how long turns may go on whose task moves.
	Beat, TTL, Handover time.Duration
}

func (c *Cluster) Settings() []Setting {
	return []Setting{
		field(&c.Advertise, "advertise", "string", (*table).url, "Where the other hosts reach this one, a URL that leads to its `listen` address. `http` is for loopback alone. The table needs it."),
		span(&c.Beat, "beat", time.Second, 50*time.Millisecond, time.Minute, "The time between two signs of life."),
		span(&c.TTL, "ttl", 6*time.Second, 200*time.Millisecond, 10*time.Minute, "How long a host may give no sign of life before the others take its tasks; at least three times `beat`."),
		span(&c.Handover, "handover", 30*time.Second, time.Second, time.Hour, "How long turns may go on whose task moves to another host. Then they are stopped, and run again there."),
	}
}

// leastBeats is how many beats a TTL has at least: one that is late fences no host.
const leastBeats = 3

// cluster reads the table. It comes after all that it is checked against.
func (d *decoder) cluster(file *table, c *Config) Cluster {
	var k Cluster
	if !file.has("cluster") {
		return k
	}
	t := file.table("cluster")
	t.read(k.Settings())
	t.refuseUnknown()
	if c.Store.Driver != DriverPostgres {
		d.atKey(t.location, `cluster is for hosts that share a server; add driver = "postgres" to [store], or remove the table`)
	}
	if !t.has("advertise") {
		t.missing("advertise", `; it is where the other hosts reach this one, as in "https://10.0.0.4:8000"`)
	}
	if u, err := url.Parse(k.Advertise); err == nil && u.Scheme == "http" && !isLoopback(net.JoinHostPort(u.Hostname(), "80")) {
		d.atValue(t.child("advertise"), "cluster.advertise sends the tokens of callers over plain http; use https, which only a host on this machine may do without")
	}
	if k.TTL < leastBeats*k.Beat {
		d.atKey(t.location, "cluster.ttl must be at least three times cluster.beat: else one late sign of life ends a host")
	}
	if !knowsCallers(file.table("auth")) {
		d.atKey(t.location, "cluster needs callers that all hosts know; add [[auth.keys]], [auth.jwt] or [auth.endpoints]: a key that a host makes for itself is the host's own")
	}
	if c.Server.TLS.RequireClient {
		d.atValue(file.table("server").table("tls").child("client_auth"), `[server.tls] client_auth = "require" cannot be together with [cluster]: hosts show each other no certificate when they send requests on; write "request", and let a balancer ask for certificates`)
	}
	d.checkShared(file, c.Gateways)
	return k
}

// checkShared refuses the gateways that hosts which share a server cannot serve.
func (d *decoder) checkShared(file *table, gateways []Gateway) {
	names, subs := file.named("gateways")
	for _, g := range gateways {
		at := subs[slices.Index(names, g.Name)]
		kind, _ := d.protocol(g.Name)
		if kind.alone != "" {
			d.atKey(at.location, fmt.Sprintf("[gateways.%s] cannot be together with [cluster]: %s; remove one of the tables", g.Name, kind.alone))
		}
		if own, ok := g.Protocol.(*A2A); ok {
			own.checkShared(at)
		}
	}
}
