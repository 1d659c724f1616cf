package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"skep/host/bench/peer/plugin"
)

// barePlugin is an agent behind go-plugin, as that comes: gRPC over a Unix
// socket, without TLS.
type barePlugin struct {
	client *goplugin.Client
	agent  *plugin.Client
}

func startBarePlugin(ctx context.Context) (_ *barePlugin, err error) {
	program, err := build("./peer/serve", "serve", false)
	if err != nil {
		return nil, err
	}
	s := &barePlugin{client: goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: plugin.Handshake, Plugins: goplugin.PluginSet{plugin.Name: &plugin.Plugin{}},
		Cmd: exec.Command(program), AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
	})}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	conn, err := s.client.Client()
	if err != nil {
		return nil, fmt.Errorf("go-plugin: %w", err)
	}
	raw, err := conn.Dispense(plugin.Name)
	if err != nil {
		return nil, fmt.Errorf("go-plugin: %w", err)
	}
	s.agent = raw.(*plugin.Client)
	id := s.agent.Broker.NextId()
	go s.agent.Broker.AcceptAndServe(id, plugin.HostServer(answeringHost{})) // ends with the client
	if _, err := s.turn(ctx, command('H', []byte(strconv.Itoa(int(id))))); err != nil {
		return nil, fmt.Errorf("go-plugin: broker: %w", err)
	}
	return s, nil
}

func (s *barePlugin) close() { s.client.Kill() }

func (s *barePlugin) turn(ctx context.Context, input []byte) ([]byte, error) {
	return s.agent.Do(ctx, input)
}

// answeringHost answers the plugin's calls at once, with as much as it is sent.
type answeringHost struct{}

func (answeringHost) Call(_ context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
	return wrapperspb.Bytes(make([]byte, len(in.Value))), nil
}
