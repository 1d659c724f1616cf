package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"skep/host/internal/gateway/wire"
	"skep/spec/mail"
)

// Gateway is one [gateways.NAME] table: a protocol besides MAIL through which agents
// are reached.
type Gateway struct {
	Name           string
	Profile        string
	Admit          []string // patterns of the ids of strangers
	StrangerTenant string
	Hold, Keep     time.Duration
	MaxBody        Size
	MaxDepth       int
	RateLimit      RealmRate
	Asks, Sessions int
	KeepRaw        bool
	BehindProxy    bool
	Partners       []Partner
	// Protocol has the keys that only this gateway has, as *[A2A]; nil if there are none.
	Protocol Keys
	Pos      Pos
}

// Keys are settings of a table that not all gateways have.
type Keys interface{ Settings() []Setting }

// RealmRate bounds the messages of one realm or user. Zero requests mean no limit.
type RealmRate struct {
	Requests int
	Per      time.Duration
}

// Profiles of a [Gateway].
const (
	ProfileDefault = "default"
	ProfileStrict  = "strict"
)

// defaultStrangers is the tenant of strangers where the file names no other.
const defaultStrangers = "guests"

// protocol is what one gateway has besides what all have.
type protocol struct {
	// users is set where users come for themselves: they reach entrypoints alone.
	users bool
	// called is set where partners are called at a URL.
	called bool
	// signs is set where a shared key binds messages.
	signs bool
	// lacks are the keys that every gateway has and this protocol has no use for.
	lacks []string
	// rights are those for which a message of a partner may ask; nil for all.
	rights []string
	// maxBody and maxDepth bound what max_body and max_depth may be; 0 for no such bound.
	maxBody  Size
	maxDepth int
	// alone is why hosts that share a server cannot serve it, empty for one that they can.
	alone string
	// keys makes the keys of its own table, partner the keys of its partners; nil for none.
	keys, partner func() Keys
	// check looks at what was read; nil for nothing.
	check func(gatewayReader, Gateway)
}

// protocols are the gateways by their names. Those without functions are not built.
var protocols = map[string]protocol{
	"a2a":  a2aProtocol,
	"acp":  acpProtocol,
	"amp":  ampProtocol,
	"iacp": iacpProtocol,
	"mcp":  mcpProtocol,
	"uamp": uampProtocol,
}

// gatewayNames are the names of all protocols.
var gatewayNames = slices.Sorted(maps.Keys(protocols))

// GatewayNames lists the protocols that [gateways] may name, in their order.
func GatewayNames() []string { return slices.Clone(gatewayNames) }

// protocol returns a protocol of this package, or of the options: one that users and
// partners call, and that calls partners.
func (d *decoder) protocol(name string) (kind protocol, known bool) {
	if slices.Contains(d.opt.Gateways, name) {
		return protocol{users: true, called: true}, true
	}
	kind, known = protocols[name]
	return kind, known
}

// gatewayNames are the names of all gateways that a file may have.
func (d *decoder) gatewayNames() []string { return slices.Concat(gatewayNames, d.opt.Gateways) }

// Settings are the keys of the table, the keys of the protocol last.
func (g *Gateway) Settings() []Setting {
	if g.Protocol == nil {
		return g.common()
	}
	return append(g.common(), g.Protocol.Settings()...)
}

// common are the keys that every gateway has.
func (g *Gateway) common() []Setting {
	body, depth := Size(MiB), 64
	if own, ok := g.Protocol.(interface{ defaultLimits() (Size, int) }); ok {
		body, depth = own.defaultLimits()
	}
	return []Setting{
		choice(&g.Profile, "profile", ProfileDefault, []string{ProfileDefault, ProfileStrict}, "Messages that the protocol's documents leave open are taken (`default`) or refused (`strict`)."),
		field(&g.Admit, "admit", "list of ids", (*table).patterns, "Ids of strangers that are let in, as `did:web:*.example.org`; `*` is any text.").by(Grant),
		field(&g.StrangerTenant, "stranger_tenant", "string", func(t *table, key string) string { return t.text(key, defaultStrangers) }, "The tenant of strangers.").withDefaultText(defaultStrangers).by(Fixed),
		span(&g.Hold, "hold", 30*time.Second, time.Second, 10*time.Minute, "How long a caller that waits for its answer is held; then it has to ask again."),
		span(&g.Keep, "keep", day, time.Minute, 30*day, "How long an answer can be fetched."),
		size(&g.MaxBody, "max_body", body, KiB, maxGatewayBody, "Body of one message. Over IaCP 16MiB if it is left out, as its document has it."),
		count(&g.MaxDepth, "max_depth", depth, 8, 1000, "Levels of a message's JSON. Over IaCP 10 levels of a payload if it is left out, as its document has it."),
		section("rate_limit", g.RateLimit.Settings(), "Messages of one realm or one user, besides the requests of `[server]`. A list of messages counts as one."),
		count(&g.Asks, "asks", 256, 1, 10_000, "Tasks of one realm that run, besides `peer_tasks` of `[limits]`. One more is refused."),
		count(&g.Sessions, "sessions", 256, 1, 100_000, "Over MCP the sessions of all callers, of which one caller has a quarter; over ACP, AMP, IaCP and UAMP the connections of one realm that stay open."),
		boolean(&g.KeepRaw, "keep_raw", false, "Messages are also kept as they came."),
		boolean(&g.BehindProxy, "behind_proxy", false, "A proxy in front speaks TLS where the protocol asks for it; needs `trusted_proxies`.").planned("gateways.behind_proxy").by(Grant),
	}
}

// Settings are the keys of a gateway's rate_limit.
func (r *RealmRate) Settings() []Setting {
	return []Setting{
		count(&r.Requests, "requests", 600, 1, 1_000_000_000, "Messages in the time `per`.").unlimited(),
		span(&r.Per, "per", time.Minute, time.Second, day, "The time of `requests`."),
	}
}

// gateways reads the [gateways] tables, against what was read before.
func (d *decoder) gateways(t *table, c *Config, tenants []string) (out []Gateway) {
	realms, certificates := map[string]string{c.Swarm.Name: "this swarm"}, map[string]string{}
	for _, p := range c.Peers {
		realms[p.Name] = "a peer"
	}
	names, subs := t.named("gateways")
	for i, sub := range subs {
		kind, known := d.protocol(names[i])
		d.needs(gatewayCapability(names[i]), sub.location)
		if !known {
			d.atKey(sub.location, fmt.Sprintf("unknown gateway %q", names[i])).near(names[i], d.gatewayNames())
			continue
		}
		r := gatewayReader{d: d, t: sub, kind: kind, server: c.Server, tenants: tenants, realms: realms, certificates: certificates}
		out = append(out, r.gateway(names[i]))
	}
	return out
}

// gatewayCapability is the row of [unimplemented] for a gateway that is not built.
func gatewayCapability(name string) string { return "gateways." + name }

// gatewayReader reads one gateway's table.
type gatewayReader struct {
	d       *decoder
	t       *table
	kind    protocol
	server  Server
	tenants []string
	// realms are the names that are taken, and by whom; certificates are the partners of
	// the names in certificates.
	realms, certificates map[string]string
}

func (r gatewayReader) gateway(name string) Gateway {
	g := Gateway{Name: name, Pos: r.d.pos(r.t.location)}
	if r.kind.keys != nil {
		g.Protocol = r.kind.keys()
	}
	r.t.read(g.Settings())
	r.checkLacks(g)
	r.checkBounds(g)
	r.checkStrangers(g)
	if g.BehindProxy && len(r.server.TrustedProxies) == 0 {
		at := r.t.child("behind_proxy")
		r.d.atKey(at, at.path+" needs trusted_proxies in [server], which says whose word is taken")
	}
	names, subs := r.t.named("partners")
	for i, sub := range subs {
		g.Partners = append(g.Partners, r.partner(name, names[i], sub))
	}
	if own, ok := g.Protocol.(interface{ checkPartners(gatewayReader, Gateway) }); ok {
		own.checkPartners(r, g)
	}
	r.checkCertificates(g)
	if r.kind.check != nil {
		r.kind.check(r, g)
	}
	r.t.refuseUnknown()
	return g
}

// checkLacks refuses settings that would have no effect.
func (r gatewayReader) checkLacks(g Gateway) {
	for _, key := range r.kind.lacks {
		if key != "profile" || g.Profile == ProfileStrict {
			r.t.needs("gateways."+key, key)
		}
	}
}

// maxGatewayBody is what max_body of a protocol without a bound of its own may be.
const maxGatewayBody = 64 * MiB

// BodyRemedy ends the refusal of a message above max_body: what to raise, or that nothing
// can be raised.
func (g *Gateway) BodyRemedy() string {
	return wire.Remedy(g.Name, "max_body", int64(g.MaxBody), int64(cmp.Or(protocols[g.Name].maxBody, maxGatewayBody)))
}

// checkBounds refuses limits that the protocol's own codec does not reach.
func (r gatewayReader) checkBounds(g Gateway) {
	if most := r.kind.maxBody; most > 0 && g.MaxBody > most {
		at := r.t.child("max_body")
		r.d.atValue(at, fmt.Sprintf("%s must be at most %s: a message of this protocol has no more", at.path, sizes.print(int64(most))))
	}
	if most := r.kind.maxDepth; most > 0 && g.MaxDepth > most {
		at := r.t.child("max_depth")
		r.d.atValue(at, fmt.Sprintf("%s must be at most %d: a message of this protocol has no more levels", at.path, most))
	}
}

// checkStrangers keeps strangers out of the operator's own tenant.
func (r gatewayReader) checkStrangers(g Gateway) {
	at := r.t.child("stranger_tenant")
	switch {
	case len(g.Admit) == 0:
	case g.StrangerTenant == mail.DefaultTenant:
		r.d.atKey(r.t.child("admit"), fmt.Sprintf("%s.admit lets strangers in and stranger_tenant is %q; give them a tenant of their own", r.t.path, mail.DefaultTenant))
	case !slices.Contains(r.tenants, g.StrangerTenant):
		r.d.atKey(at, fmt.Sprintf("%s is %q, and there is no [tenants.%s]", at.path, g.StrangerTenant, g.StrangerTenant)).near(g.StrangerTenant, r.tenants)
	}
}

// maxPattern is the longest pattern of foreign ids, in bytes.
const maxPattern = 512

// patterns reads patterns of foreign ids.
func (t *table) patterns(key string) []string {
	items := t.list(key)
	for _, v := range items {
		if v.text == "" || len(v.text) > maxPattern {
			t.d.atValue(v.location, fmt.Sprintf("%s must have 1 to %d bytes; * is any text", v.path, maxPattern))
		}
	}
	return textsOf(items)
}
