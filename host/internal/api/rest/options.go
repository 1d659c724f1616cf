package rest

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
	"skep/host/internal/telemetry/loglevel"
	"skep/host/internal/telemetry/pulse"
)

// Options of [New]. Only Swarm is required.
type Options struct {
	// Tenant owns the swarm of the public routes. It is the default tenant of
	// principals.
	Tenant string
	Swarm  string
	// Version is the version of the program.
	Version string
	// PublicURL is the URL of this host for others, without a trailing slash.
	// Empty means the Host header of each request.
	PublicURL string

	// Registry holds the swarms that the host knows. Nil means none, and
	// registration is refused.
	Registry Registry
	// CheckPeer returns why mail for a known swarm cannot be sent, or nil. A nil
	// CheckPeer checks nothing.
	CheckPeer func(swarm string) error
	// Signatures verifies what other swarms have signed; nil accepts unsigned
	// messages.
	Signatures SignatureVerifier
	// Gateways are the gateways of the host; nil means none.
	Gateways Gateways
	// Definitions accepts definitions over the network; nil accepts none.
	Definitions Definitions
	// ConfigFile reloads the operator's file; nil refuses.
	ConfigFile ConfigFile
	// OtherHosts are the hosts that share the store; nil means none.
	OtherHosts *OtherHosts
	// Looks are how operators see what is said in tasks of others; nil means never.
	Looks *Looks
	// LogLevels are what the host logs; nil means the level info.
	LogLevels *loglevel.Levels
	// Cluster is what operators see of the hosts that share the store; nil means none.
	Cluster Cluster
	// Pulse has what happens on the host; nil means nothing.
	Pulse *pulse.Ring
	// Draining reports whether mounts take no requests because the host stops; nil means
	// never.
	Draining func() bool
	// Certificates are the callers of mounts that client certificates name; nil means none.
	Certificates *auth.Certificates
	// Debug enables the debug routes.
	Debug bool

	// MaxBody bounds a request's body in bytes, 1 MiB by default. MaxDepth bounds
	// the nesting of its JSON, 64 by default.
	MaxBody  int64
	MaxDepth int
	// MaxHeldBodies bounds the bytes of bodies that are being read at once; 0 is 256 MiB,
	// or four of the largest bodies.
	MaxHeldBodies int64
	// MaxWait bounds how long a post without a stream waits before it is answered
	// with 202. Zero means until its answer.
	MaxWait time.Duration
	// Ping is the longest silence on a stream, 15 s by default.
	Ping time.Duration
	// Stall bounds how long a caller may take to send its body, and to read one
	// write, 30 s by default.
	Stall time.Duration

	// Loopback means that the listener is bound to loopback. It then accepts only
	// loopback names, the host of PublicURL and Hosts, so that no web page can
	// reach it under another name (DNS rebinding).
	Loopback bool
	Hosts    []string
	// Origins are the web origins whose pages may call (CORS).
	Origins []string
	// TrustedProxies are the proxies whose X-Forwarded-For counts.
	TrustedProxies []netip.Prefix
	// MaxStreams bounds the open event streams, MaxStreamsPerPrincipal the open
	// streams of one principal. Zero means no limit.
	MaxStreams, MaxStreamsPerPrincipal int
	// SeveralTenants gives each tenant a share of the streams.
	SeveralTenants bool
	// TenantRate bounds the calls of all principals of one tenant.
	TenantRate auth.Rate
	// Rate bounds the calls of one principal, and the calls of one address
	// without valid credentials.
	Rate auth.Rate
	// AuthFailures bounds the invalid credentials of one address. Zero means no
	// limit.
	AuthFailures auth.Rate

	// Tokens issues and revokes tokens; nil refuses.
	Tokens Tokens
	// Tenants erases tenants; nil refuses.
	Tenants TenantEraser
	// Operators are the principals whose ids no admin may have.
	Operators auth.Operators
	// Audit records refusals and acts; nil drops them.
	Audit Audit

	Logger *slog.Logger
	Now    func() time.Time
}

func (o Options) withDefaults() Options {
	o.Tenant = cmp.Or(o.Tenant, swarm.DefaultTenant)
	o.MaxBody = cmp.Or(o.MaxBody, 1<<20)
	o.MaxDepth = cmp.Or(o.MaxDepth, 64)
	o.Ping = cmp.Or(o.Ping, 15*time.Second)
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.LogLevels == nil {
		o.LogLevels = loglevel.New(slog.LevelInfo, o.Now)
	}
	if o.Tokens == nil {
		o.Tokens = noTokens{}
	}
	if o.Tenants == nil {
		o.Tenants = noEraser{}
	}
	if o.Registry == nil {
		o.Registry = noRegistry{}
	}
	if o.Signatures == nil {
		o.Signatures = noSignatures{}
	}
	if o.Gateways == nil {
		o.Gateways = noGateways{}
	}
	if o.Definitions == nil {
		o.Definitions = noDefinitions{}
	}
	if o.ConfigFile == nil {
		o.ConfigFile = noConfigFile{}
	}
	if o.Pulse == nil {
		o.Pulse = pulse.NewRing("", 1)
	}
	if o.Audit == nil {
		o.Audit = noAudit{}
	}
	return o
}
