package wasm

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"skep/abi"
	"skep/host/internal/turn/wasm/binary"
)

// Value types, short.
const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// hostFunc is one function a guest may import. Its parameters are on the
// stack, and it leaves its result there.
type hostFunc struct {
	module, name string
	params       []api.ValueType
	results      []api.ValueType
	call         func(r *run, stack []uint64)
}

// hostFuncs are all functions that a guest can import.
func hostFuncs() []hostFunc {
	return append(skepFuncs(), wasiFuncs()...)
}

// signature renders a type as people write it: (i32, i64) -> (i32).
func signature(params, results []api.ValueType) string {
	return typeText(binary.FuncType{Params: valTypes(params), Results: valTypes(results)})
}

func valTypes(types []api.ValueType) []binary.ValType {
	list := make([]binary.ValType, len(types))
	for i, t := range types {
		list[i] = binary.ValType(t)
	}
	return list
}

// registerHostModules makes the host's functions importable in the runtime.
func registerHostModules(ctx context.Context, rt wazero.Runtime) error {
	modules := map[string][]hostFunc{
		binary.HostModule: {
			{name: binary.HostTick, call: func(r *run, _ []uint64) { r.tick() }},
			{name: binary.HostOverflow, call: func(r *run, _ []uint64) { r.kill(stackExit(r.limits.Stack)) }},
		},
	}
	for _, f := range hostFuncs() {
		modules[f.module] = append(modules[f.module], f)
	}
	for name, funcs := range modules {
		b := rt.NewHostModuleBuilder(name)
		for _, f := range funcs {
			b.NewFunctionBuilder().WithGoModuleFunction(adaptHostFunc(f), f.params, f.results).Export(f.name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("offer %s: %w", name, err)
		}
	}
	return nil
}

// adaptHostFunc adapts a host function to wazero: the run comes with the context.
func adaptHostFunc(f hostFunc) api.GoModuleFunc {
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		r := ctx.(*guestContext).run
		r.hostFunc = f.name
		f.call(r, stack)
		r.hostFunc = ""
	}
}

// skepFuncs are the functions of [abi.ImportModule].
func skepFuncs() []hostFunc {
	one := []api.ValueType{i32}
	wide := []api.ValueType{i64}
	in := func(n int) []api.ValueType { return []api.ValueType{i32, i32, i32, i32, i32}[:n] }
	return []hostFunc{
		{abi.ImportModule, abi.ImportInputRead, in(3), one, (*run).inputRead},
		{abi.ImportModule, abi.ImportOutputWrite, in(2), one, (*run).outputWrite},
		{abi.ImportModule, abi.ImportCall, in(5), wide, (*run).callOp},
		{abi.ImportModule, abi.ImportSubmit, in(3), wide, (*run).submitOp},
		{abi.ImportModule, abi.ImportWait, in(3), one, (*run).waitHandles},
		{abi.ImportModule, abi.ImportRead, in(3), wide, (*run).readHandle},
		{abi.ImportModule, abi.ImportClose, in(1), one, (*run).closeHandle},
		{abi.ImportModule, abi.ImportAbort, in(3), nil, (*run).abort},
	}
}
