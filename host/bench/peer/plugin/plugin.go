// Package plugin owns the service that the go-plugin peer speaks: an agent in a
// subprocess that takes turns, and the host it calls through the broker. It must
// not know what is measured. The messages are the bytes that the other guests get.
package plugin

import (
	"context"
	"errors"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Handshake is what both sides must agree on.
var Handshake = goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "SKEP_BENCH", MagicCookieValue: "peer"}

// Name is the plugin's name in a plugin set.
const Name = "agent"

// Agent takes turns; Host answers its calls.
type (
	Agent interface {
		Turn(ctx context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error)
	}
	Host interface {
		Call(ctx context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error)
	}
)

// method describes the one method of a service.
func method[S any](service, name string, call func(S, context.Context, *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error)) *grpc.ServiceDesc {
	handle := func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(wrapperspb.BytesValue)
		if err := decode(in); err != nil {
			return nil, err
		}
		return call(srv.(S), ctx, in)
	}
	return &grpc.ServiceDesc{ServiceName: service, HandlerType: (*S)(nil), Methods: []grpc.MethodDesc{{MethodName: name, Handler: handle}}}
}

var (
	agentService = method("bench.Agent", "Turn", Agent.Turn)
	hostService  = method("bench.Host", "Call", Host.Call)
)

// HostServer returns a server of the host's side, for the broker.
func HostServer(h Host) func([]grpc.ServerOption) *grpc.Server {
	return func(opts []grpc.ServerOption) *grpc.Server {
		s := grpc.NewServer(opts...)
		s.RegisterService(hostService, h)
		return s
	}
}

// Client calls an agent, or a host, over a connection. It is safe for
// concurrent use.
type Client struct {
	conn   *grpc.ClientConn
	method string
	// Broker leads back to the host.
	Broker *goplugin.GRPCBroker
}

// HostClient calls the host from the plugin.
func HostClient(conn *grpc.ClientConn) *Client {
	return &Client{conn: conn, method: "/bench.Host/Call"}
}

// Do calls the one method there is.
func (c *Client) Do(ctx context.Context, in []byte) ([]byte, error) {
	out := new(wrapperspb.BytesValue)
	if err := c.conn.Invoke(ctx, c.method, wrapperspb.Bytes(in), out); err != nil {
		return nil, err
	}
	return out.Value, nil
}

// Plugin is the go-plugin side of it.
type Plugin struct {
	goplugin.NetRPCUnsupportedPlugin
	// New makes the agent; only the plugin's side needs it.
	New func(*goplugin.GRPCBroker) Agent
}

// GRPCServer implements goplugin.GRPCPlugin.
func (p *Plugin) GRPCServer(broker *goplugin.GRPCBroker, s *grpc.Server) error {
	if p.New == nil {
		return errors.New("a plugin without an agent")
	}
	s.RegisterService(agentService, p.New(broker))
	return nil
}

// GRPCClient implements goplugin.GRPCPlugin.
func (p *Plugin) GRPCClient(_ context.Context, broker *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &Client{conn: conn, method: "/bench.Agent/Turn", Broker: broker}, nil
}
