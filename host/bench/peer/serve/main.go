// Command serve is the benchmark's agent as a go-plugin subprocess. The first
// byte of a turn's input is the command: E echoes the rest, J works on it, H
// dials the host under the broker number that follows, O calls the host as often
// as the rest demands, S does so with small questions.
package main

import (
	"context"
	"fmt"
	"strconv"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"skep/host/bench/guest/work"
	"skep/host/bench/peer/plugin"
)

func main() {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: plugin.Handshake,
		GRPCServer:      goplugin.DefaultGRPCServer,
		Plugins: goplugin.PluginSet{plugin.Name: &plugin.Plugin{New: func(b *goplugin.GRPCBroker) plugin.Agent {
			return &agent{broker: b}
		}}},
	})
}

type agent struct {
	broker *goplugin.GRPCBroker
	host   *plugin.Client
}

// Turn does one turn; the benchmark sends one at a time.
func (a *agent) Turn(ctx context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
	if len(in.Value) == 0 {
		return nil, fmt.Errorf("an input without a command")
	}
	rest := in.Value[1:]
	switch in.Value[0] {
	case 'E':
		return wrapperspb.Bytes(rest), nil
	case 'J':
		out, err := work.JSON(rest)
		return wrapperspb.Bytes(out), err
	case 'H':
		return wrapperspb.Bytes(nil), a.dial(string(rest))
	case 'O':
		return wrapperspb.Bytes(nil), a.ask(ctx, string(rest), 1024)
	case 'S':
		return wrapperspb.Bytes(nil), a.ask(ctx, string(rest), 64)
	}
	return nil, fmt.Errorf("no command %q", in.Value[0])
}

func (a *agent) dial(number string) error {
	id, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return err
	}
	conn, err := a.broker.Dial(uint32(id))
	if err != nil {
		return err
	}
	a.host = plugin.HostClient(conn)
	return nil
}

func (a *agent) ask(ctx context.Context, times string, size int) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	question := make([]byte, size)
	for range n {
		if _, err := a.host.Do(ctx, question); err != nil {
			return err
		}
	}
	return nil
}
