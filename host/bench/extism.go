package main

import (
	"context"
	"fmt"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
)

// extismPeer is a plugin compiled by extism's SDK.
type extismPeer struct{ plugin *extism.CompiledPlugin }

// extismTimeout is what makes a call stoppable there, in milliseconds: it turns
// wazero's kill switch on.
const extismTimeout = 30_000

func newExtism(ctx context.Context, wasm []byte) (*extismPeer, error) {
	p, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}, Timeout: extismTimeout},
		extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		return nil, fmt.Errorf("extism: %w", err)
	}
	return &extismPeer{p}, nil
}

func (e *extismPeer) close(ctx context.Context) { _ = e.plugin.Close(ctx) }

// call runs one export in an instance of its own, so that it starts as clean as
// a turn does.
func (e *extismPeer) call(ctx context.Context, name string, input []byte) ([]byte, error) {
	p, err := e.plugin.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig()})
	if err != nil {
		return nil, err
	}
	defer p.CloseWithContext(ctx)
	status, out, err := p.CallWithContext(ctx, name, input)
	if err != nil {
		return nil, err
	}
	if status != 0 {
		return nil, fmt.Errorf("status %d", status)
	}
	return out, nil
}
