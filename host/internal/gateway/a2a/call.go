package a2a

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
)

// call is one request: who sends it, to which agent, in which version.
type call struct {
	caller gateway.Caller
	agent  *gateway.ExposedAgent // nil until callOf, for gRPC: the request's tenant names it
	// anyAgent is set when a request names no agent: some of gRPC have no place for it.
	anyAgent bool
	version  a2a.ProtocolVersion
	trace    string
	base     string // the address of this host in cards
	// fault is why the request is refused, found before its binding could tell.
	fault error
}

type callKey struct{}

// withCall hands a call through a binding of the library.
func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the call of a request. tenant is the agent of a gRPC request.
func (g *Gateway) callOf(ctx context.Context, tenant string) (*call, error) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return nil, errors.New("the request has no call")
	}
	if c.fault != nil {
		return nil, c.fault
	}
	if c.agent != nil {
		return c, nil
	}
	found := *c
	if tenant == "" {
		found.anyAgent, found.agent = true, g.entrypoint(c.caller)
		return &found, nil
	}
	swarm, name, _ := strings.Cut(tenant, "/")
	found.agent = g.agent(c.caller, swarm, name)
	return &found, found.checkAgent()
}

// checkAgent refuses a call without an agent.
func (c *call) checkAgent() error {
	if c.agent == nil {
		return status.Error(codes.NotFound, "no such agent")
	}
	return nil
}

// agent returns an agent that the caller may see, or nil.
func (g *Gateway) agent(c gateway.Caller, swarm, name string) *gateway.ExposedAgent {
	return g.firstAgent(c, func(a gateway.ExposedAgent) bool { return a.Swarm == swarm && a.Name == name })
}

// entrypoint returns the first entrypoint that the caller may see, or nil.
func (g *Gateway) entrypoint(c gateway.Caller) *gateway.ExposedAgent {
	return g.firstAgent(c, func(a gateway.ExposedAgent) bool { return a.Entrypoint })
}

func (g *Gateway) firstAgent(c gateway.Caller, fits func(gateway.ExposedAgent) bool) *gateway.ExposedAgent {
	list := g.Runtime.ExposedAgents(c)
	i := slices.IndexFunc(list, func(a gateway.ExposedAgent) bool {
		return fits(a) && (!c.IsUser() || a.Entrypoint)
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}
