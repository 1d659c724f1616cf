package rest

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	"skep/host/internal/auth"
	"skep/host/internal/swarm"
)

// Options of [New]. Only Swarm is required.
type Options struct {
	// Tenant owns the swarm as the public routes show it, and the principals
	// that name no tenant.
	Tenant string
	Swarm  string
	// Version is that of this program.
	Version string
	// PublicURL is where others reach this host, without a trailing slash.
	// Empty means whatever name a request uses.
	PublicURL string

	// Registry is the swarms that the host knows; without one there are none,
	// and none can be registered.
	Registry Registry
	// Letters says why mail for a swarm of the registry cannot leave, or nil; without
	// it nothing is told.
	Letters func(swarm string) error
	// Seals looks at what other swarms have signed; without it nothing need be.
	Seals Seals
	// Definitions takes definitions over the network; without it none are.
	Definitions Definitions
	// File reads the operator's file again; without it nothing does.
	File File
	// Debug opens the routes that show how the swarm is made.
	Debug bool

	// MaxBody bounds a request's body in bytes, 1 MiB by default; MaxDepth
	// the nesting of its JSON, 64 by default.
	MaxBody  int64
	MaxDepth int
	// MaxWait bounds how long a post that is not streamed is held before it
	// is answered with 202 as if it had asked to. Zero means until it ends.
	MaxWait time.Duration
	// Ping is the longest silence on a stream, 15 s by default.
	Ping time.Duration
	// Stall bounds how long a caller may take to send its body, and to take
	// one write, 30 s by default: a reader that stops reading is cut off.
	Stall time.Duration

	// Loopback says that the listener is bound to loopback. It then takes
	// requests only under loopback names, that of PublicURL and Hosts, so that
	// a web page cannot reach it under a name of its own.
	Loopback bool
	Hosts    []string
	// Origins are the web origins whose pages may call.
	Origins []string
	// TrustedProxies are believed when they say in X-Forwarded-For for whom they
	// call. Without one nobody is.
	TrustedProxies []netip.Prefix
	// MaxStreams bounds the event streams that are open, MaxStreamsPerPrincipal
	// those of one principal. Zero means no limit.
	MaxStreams, MaxStreamsPerPrincipal int
	// Rate bounds the calls of one principal, and the calls of one address that
	// show no credentials.
	Rate auth.Rate
	// Guess bounds how often one address may show wrong credentials. Zero means
	// no limit.
	Guess auth.Rate

	// Tokens makes and revokes tokens. Without it there are none.
	Tokens Tokens
	// Tenants erases tenants. Without it none is erased while the host runs.
	Tenants Eraser
	// Operators are those whose ids no admin may have.
	Operators auth.Operators
	// Audit is told what was refused and done. Without it nobody is.
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
	if o.Tokens == nil {
		o.Tokens = noTokens{}
	}
	if o.Tenants == nil {
		o.Tenants = noEraser{}
	}
	if o.Registry == nil {
		o.Registry = noRegistry{}
	}
	if o.Seals == nil {
		o.Seals = noSeals{}
	}
	if o.Definitions == nil {
		o.Definitions = noDefinitions{}
	}
	if o.File == nil {
		o.File = noFile{}
	}
	if o.Audit == nil {
		o.Audit = unheard{}
	}
	return o
}
