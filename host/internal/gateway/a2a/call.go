package a2a

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// call is one request: who sends it, to which agent, in which version.
type call struct {
	caller gateway.Caller
	agent  *gateway.ExposedAgent // nil until callOf, for gRPC: the request's tenant names it
	// visible has the paths of the caller's agents when a request names none of them: some
	// of gRPC have no place for it. Else it is nil.
	visible map[string]bool
	// depth bounds the levels of a message's JSON where the binding has not: over gRPC it
	// comes as values. Else it is 0.
	depth   int
	version a2a.ProtocolVersion
	trace   swarm.Trace
	base    string // the address of this host in cards
	text    []byte // the request; nil over gRPC
	// fault is why the request is refused; it is found before the binding reads the request.
	fault error
	// read is set when a binding has read the request and nothing is wrong with its bytes.
	read *atomic.Bool
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
	c.read.Store(true)
	if c.agent != nil {
		return c, nil
	}
	found := *c
	if tenant == "" {
		found.visible, found.agent = g.visible(c.caller), g.entrypoint(c.caller)
		return &found, nil
	}
	if found.agent = g.agentAt(c.caller, tenant); found.agent == nil {
		return &found, g.unknownAgent(c.caller, tenant)
	}
	return &found, nil
}

// unknownAgent refuses a call that names an agent which its caller may not see.
func (g *Gateway) unknownAgent(c gateway.Caller, path string) error {
	paths := slices.Sorted(maps.Keys(g.visible(c)))
	return status.Errorf(codes.NotFound, "there is no agent %.200q%s", path, gateway.SuggestAgent(path, nil, paths...))
}

// agentAt returns the agent of a path, or nil; see agentPath.
func (g *Gateway) agentAt(c gateway.Caller, path string) *gateway.ExposedAgent {
	return g.firstAgent(c, func(a gateway.ExposedAgent) bool { return agentPath(a) == path })
}

// visible are the paths of the agents that the caller may see.
func (g *Gateway) visible(c gateway.Caller) map[string]bool {
	paths := map[string]bool{}
	for _, a := range g.Runtime.ExposedAgents(c) {
		if a.Entrypoint || !c.IsUser() {
			paths[agentPath(a)] = true
		}
	}
	return paths
}

// checkAgent refuses a call that names no agent where there is no entrypoint for its caller.
func (c *call) checkAgent() error {
	if c.agent == nil {
		return status.Error(codes.NotFound, "tenant names no agent, and no entrypoint is served to the caller: set tenant to SWARM/AGENT")
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
