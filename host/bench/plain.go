package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"skep/abi"
)

// plain runs a guest on wazero as it comes: no metering, no limit, nothing
// that could stop a loop. It is the physical limit of what the sandbox does.
type plain struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

// Ways of plain wazero. closing has its kill switch on.
var (
	asItComes = wazero.NewRuntimeConfig()
	closing   = wazero.NewRuntimeConfig().WithCloseOnContextDone(true)
)

// plainTurn is what the host functions need of one turn.
type plainTurn struct{ input []byte }

type plainKey struct{}

func newPlain(ctx context.Context, wasm []byte, config wazero.RuntimeConfig) (*plain, error) {
	p := &plain{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return nil, err
	}
	b := p.runtime.NewHostModuleBuilder(abi.ImportModule)
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	for _, f := range []struct {
		name    string
		params  []api.ValueType
		results []api.ValueType
		do      api.GoModuleFunc
	}{
		{abi.ImportInputRead, []api.ValueType{i32, i32, i32}, []api.ValueType{i32}, inputRead},
		{abi.ImportOutputWrite, []api.ValueType{i32, i32}, []api.ValueType{i32}, func(_ context.Context, _ api.Module, s []uint64) { s[0] = s[1] }},
		{abi.ImportCall, []api.ValueType{i32, i32, i32, i32, i32}, []api.ValueType{i64}, call},
		{abi.ImportSubmit, []api.ValueType{i32, i32, i32}, []api.ValueType{i64}, refuse},
		{abi.ImportWait, []api.ValueType{i32, i32, i32}, []api.ValueType{i32}, refuse},
		{abi.ImportRead, []api.ValueType{i32, i32, i32}, []api.ValueType{i64}, refuse},
		{abi.ImportClose, []api.ValueType{i32}, []api.ValueType{i32}, refuse},
		{abi.ImportAbort, []api.ValueType{i32, i32, i32}, nil, func(context.Context, api.Module, []uint64) { panic("abort") }},
	} {
		b.NewFunctionBuilder().WithGoModuleFunction(f.do, f.params, f.results).Export(f.name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return nil, err
	}
	var err error
	p.compiled, err = p.runtime.CompileModule(ctx, wasm)
	return p, err
}

func (p *plain) close(ctx context.Context) { _ = p.runtime.Close(ctx) }

// start makes an instance and initialises it.
func (p *plain) start(ctx context.Context) (api.Module, error) {
	return p.runtime.InstantiateModule(ctx, p.compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize))
}

// warmed measures turns in instances that are in the same state as a sandbox
// when a turn begins: initialised, warmed and unused. The time to make them does
// not count.
func (p *plain) warmed(ctx context.Context, input []byte) subject {
	return subject{"wazero", func(span time.Duration) (ops int, took time.Duration, err error) {
		// As a host would: with a context that can end.
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for begin := time.Now(); time.Since(begin) < span; ops++ {
			once, err := p.warmTurn(ctx, input)
			if err != nil {
				return 0, 0, err
			}
			took += once
		}
		return ops, took, nil
	}}
}

func (p *plain) warmTurn(ctx context.Context, input []byte) (time.Duration, error) {
	guest, err := p.start(ctx)
	if err != nil {
		return 0, err
	}
	defer guest.Close(ctx)
	if warm := guest.ExportedFunction(abi.ExportWarm); warm != nil {
		if _, err := warm.Call(context.WithValue(ctx, plainKey{}, &plainTurn{})); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err = plainTurnIn(ctx, guest, input)
	return time.Since(start), err
}

// turn runs one turn in a fresh instance.
func (p *plain) turn(ctx context.Context, input []byte) error {
	guest, err := p.start(ctx)
	if err != nil {
		return err
	}
	defer guest.Close(ctx)
	return plainTurnIn(ctx, guest, input)
}

// plainTurnIn runs one turn in an instance.
func plainTurnIn(ctx context.Context, guest api.Module, input []byte) error {
	ctx = context.WithValue(ctx, plainKey{}, &plainTurn{input})
	out, err := guest.ExportedFunction(abi.ExportTurn).Call(ctx, uint64(len(input)))
	if err != nil {
		return err
	}
	if out[0] != 0 {
		return fmt.Errorf("status %d", out[0])
	}
	return nil
}

func inputRead(ctx context.Context, m api.Module, s []uint64) {
	t := ctx.Value(plainKey{}).(*plainTurn)
	off, ptr, room := uint32(s[0]), uint32(s[1]), uint32(s[2])
	part := t.input[min(int(off), len(t.input)):]
	part = part[:min(len(part), int(room))]
	m.Memory().Write(ptr, part)
	s[0] = uint64(len(part))
}

func call(_ context.Context, m api.Module, s []uint64) {
	answer := cannedAnswer()
	m.Memory().Write(uint32(s[3]), answer)
	s[0] = uint64(len(answer))
}

func refuse(_ context.Context, _ api.Module, s []uint64) {
	code := -int64(abi.CodeUnsupported)
	s[0] = uint64(code)
}
