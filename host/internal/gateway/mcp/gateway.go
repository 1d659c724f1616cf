package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
	"skep/host/internal/schema"
	"skep/host/internal/swarm"
)

// Name is the gateway's name in swarm.toml.
const Name = "mcp"

// Options configure a [Gateway]; a zero field is its default.
type Options struct {
	// Hold is how long a call waits for its answer, 30 s by default.
	Hold time.Duration
	// MaxBody is the size of a request in bytes, 1 MiB by default; MaxDepth how deeply its
	// JSON may be nested, 64 by default.
	MaxBody  int64
	MaxDepth int
	// Sessions may be open at once, 256 by default, of which one caller has a quarter at
	// most. Shared is set where several tenants share them. An idle one ends after
	// SessionIdle, 10 minutes by default.
	Sessions    int
	Shared      bool
	SessionIdle time.Duration
	// PublicURL is the host's address for clients, without a path.
	PublicURL string
	// AuthorizationServers are the issuers of the JSON Web Tokens that the host takes.
	AuthorizationServers []string
	// Origins are the origins of web pages that may send requests, besides the host's own.
	Origins []string
	// Version is the host's.
	Version string
	Logger  *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Hold = cmp.Or(o.Hold, 30*time.Second)
	o.MaxBody = cmp.Or(o.MaxBody, 1<<20)
	o.MaxDepth = cmp.Or(o.MaxDepth, 64)
	o.Sessions = cmp.Or(o.Sessions, 256)
	o.SessionIdle = cmp.Or(o.SessionIdle, 10*time.Minute)
	o.Version = cmp.Or(o.Version, "0")
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Gateway serves exposed agents to MCP clients. Make one with [New].
type Gateway struct {
	rt       gateway.Runtime
	opt      Options
	sessions *sessions
	schemas  schemas
	// newer serves requests without sessions, older requests of sessions.
	newer, older http.Handler
}

var _ gateway.Gateway = (*Gateway)(nil)

// New returns a gateway on a runtime.
func New(rt gateway.Runtime, opt Options) *Gateway {
	g := &Gateway{rt: rt, opt: opt.withDefaults(), schemas: schemas{kept: map[[sha256.Size]byte]*schema.Params{}}}
	g.sessions = newSessions(g.opt.Sessions, g.opt.Shared, g.opt.SessionIdle)
	server := mcp.NewServer(&mcp.Implementation{Name: "skep", Version: g.opt.Version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}, Prompts: &mcp.PromptCapabilities{},
			Experimental: map[string]any{idMember: map[string]any{}},
		},
	})
	server.AddTool(&mcp.Tool{Name: anyTool, InputSchema: map[string]any{"type": "object"}}, g.callTool)
	server.AddReceivingMiddleware(g.answerMethods)
	get := func(*http.Request) *mcp.Server { return server }
	g.newer = g.withRequest(mcp.NewStreamableHTTPHandler(get, g.transport(true)))
	g.older = g.withRequest(mcp.NewStreamableHTTPHandler(get, g.transport(false)))
	return g
}

// transport configures the SDK's handler. A host without a public URL is reached by its
// loopback address, and the SDK refuses other names for that one; else the listener's
// gate has the names.
func (g *Gateway) transport(stateless bool) *mcp.StreamableHTTPOptions {
	return &mcp.StreamableHTTPOptions{
		Stateless: stateless, MaxRequestBodyBytes: g.opt.MaxBody,
		DisableLocalhostProtection: g.opt.PublicURL != "", PropagateRequestCancellation: true,
	}
}

// withRequest hands the [request] in a context on to the SDK as its token's info, the one
// way by which the SDK gives something of an HTTP request to the handlers of its calls.
// The credential itself goes no further.
func (g *Gateway) withRequest(h http.Handler) http.Handler {
	info := func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{Extra: map[string]any{requestInfo: r.Context().Value(requestKey{})}}, nil
	}
	known := auth.RequireBearerToken(info, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header = r.Header.Clone()
		r.Header.Set("Authorization", "Bearer verified")
		known.ServeHTTP(w, r)
	})
}

// Name is gateway.Gateway's.
func (*Gateway) Name() string { return Name }

// Mounts is gateway.Gateway's.
func (g *Gateway) Mounts() []gateway.Mount {
	metadata := g.metadataURL()
	mounts := []gateway.Mount{
		{Pattern: "/mcp", Proof: gateway.Bearer, Metadata: metadata, MaxBody: g.opt.MaxBody, Streams: true, Handler: g},
		{Pattern: "/mcp/*rest", Proof: gateway.Bearer, Metadata: metadata, MaxBody: g.opt.MaxBody, Streams: true, Handler: g},
	}
	return append(mounts, g.metadata()...)
}

// Run ends idle sessions, and all when ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	g.sessions.run(ctx)
	return nil
}

// Carry is gateway.Carrier's. An MCP server is no realm: its tools are actions.
func (*Gateway) Carry(context.Context, gateway.Partner, swarm.Delivery) gateway.Carried {
	return gateway.Carried{State: gateway.Refused, Reason: "no mail is delivered over MCP; declare the server in [mcp.NAME], its tools are actions"}
}

// Discover is gateway.Gateway's; MCP has no partners.
func (*Gateway) Discover(context.Context, gateway.Partner) ([]gateway.ForeignAgent, error) {
	return nil, nil
}

// Health is gateway.Gateway's.
func (g *Gateway) Health() gateway.Health {
	return gateway.Health{OK: true, Sessions: g.sessions.count()}
}
