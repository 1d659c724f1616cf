//go:build !wasip1

// Package goproc owns how an agent in Go runs as a process of its own: it serves
// what the agent has registered with package skep to the host that started the
// process. It must not know how a host confines a process, nor what an agent does.
//
//	var agent = skep.Run(skep.Descriptor{Name: "greeter", Version: "1.0.0"}, Greeter{})
//
//	func main() { goproc.Serve(agent) }
//
// Built with go build it is the program of an exec: source; built for wasip1, the
// module of a file: source, where Serve does nothing.
//
// Unlike a module, a process lives on between turns, and several turns of a tenant
// may run in it at once: the agent must be safe for concurrent use, and what must
// last goes into the turn's state all the same, since a process may end at any time.
package goproc

import (
	"context"
	"errors"
	"math"
	"os"
	"sync"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	skep "skep/sdk/go"
	"skep/sdk/goproc/internal/pluginpb"
)

// Serve serves the agent until the host ends the process. In a process that no host
// has started it says so and ends the process.
func Serve(agent skep.Registered) { serve(agent, func(p skep.Process) skep.Process { return p }) }

// ServeThrough is Serve with something between every call of the agent and its host,
// for instance to watch what crosses.
func ServeThrough(agent skep.Registered, through func(skep.Process) skep.Process) {
	serve(agent, through)
}

func serve(agent skep.Registered, through func(skep.Process) skep.Process) {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: pluginpb.ProtocolVersion, MagicCookieKey: pluginpb.CookieKey, MagicCookieValue: pluginpb.CookieValue,
		},
		// What it says otherwise goes to the operator's log.
		Logger:  hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr}),
		Plugins: goplugin.PluginSet{pluginpb.Name: &plugin{agent: agent, through: through}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			// The host bounds what it sends.
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(math.MaxInt32))...)
		},
	})
}

// plugin is the process's side of the connection.
type plugin struct {
	goplugin.NetRPCUnsupportedPlugin
	agent   skep.Registered
	through func(skep.Process) skep.Process
}

// GRPCServer implements goplugin.GRPCPlugin.
func (p *plugin) GRPCServer(b *goplugin.GRPCBroker, s *grpc.Server) error {
	pluginpb.RegisterAgentServer(s, &server{plugin: p, broker: b})
	return nil
}

// GRPCClient is the host's side, which is not here.
func (p *plugin) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("an agent is no host")
}

// server answers the host.
type server struct {
	pluginpb.UnimplementedAgentServer
	*plugin
	broker *goplugin.GRPCBroker

	mu   sync.Mutex
	host pluginpb.HostClient
}

// dial connects to the host, once.
func (s *server) dial(id uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.host != nil {
		return nil
	}
	conn, err := s.broker.Dial(id)
	if err == nil {
		s.host = pluginpb.NewHostClient(conn)
	}
	return err
}

// begin runs what comes before any turn.
func (s *server) begin(part skep.Part, req *pluginpb.StartRequest) (*pluginpb.Outcome, error) {
	if err := s.dial(req.BrokerId); err != nil {
		return nil, err
	}
	return s.run(part, &process{host: s.host, session: req.Session}), nil
}

func (s *server) run(part skep.Part, p *process) *pluginpb.Outcome {
	out := &pluginpb.Outcome{}
	out.Status = s.agent.Serve(part, s.through(p), func(code skep.Code, message string) {
		out.Abort = &pluginpb.Abort{Code: int32(code), Message: message}
	})
	out.Output = p.output
	return out
}

// Describe implements the service.
func (s *server) Describe(_ context.Context, req *pluginpb.StartRequest) (*pluginpb.Outcome, error) {
	return s.begin(skep.PartDescribe, req)
}

// Warm implements the service.
func (s *server) Warm(_ context.Context, req *pluginpb.StartRequest) (*pluginpb.Outcome, error) {
	return s.begin(skep.PartWarm, req)
}

// Turn implements the service.
func (s *server) Turn(_ context.Context, req *pluginpb.CallRequest) (*pluginpb.Outcome, error) {
	return s.call(skep.PartTurn, req)
}

// Action implements the service.
func (s *server) Action(_ context.Context, req *pluginpb.CallRequest) (*pluginpb.Outcome, error) {
	return s.call(skep.PartAction, req)
}

func (s *server) call(part skep.Part, req *pluginpb.CallRequest) (*pluginpb.Outcome, error) {
	s.mu.Lock()
	host := s.host
	s.mu.Unlock()
	if host == nil {
		return nil, errors.New("a turn before the start")
	}
	return s.run(part, &process{host: host, session: req.Session, input: req.Input, clock: req.Clock}), nil
}
