package main

import (
	"context"
	"fmt"
	"os"

	"skep/host/internal/turn"
	"skep/host/internal/turn/process"
	"skep/host/internal/turn/wasm"
)

// level is one of the two that isolate an agent of one source.
type level struct {
	name, source string
	url          string // of a host with the agent
	// turn runs one in the sandbox or process alone, with ops that answer at once.
	turn func(input []byte) error
}

// levels compares the agent's two levels with each other, and with go-plugin as it
// comes: ops through the SDK that the host really does and records, and turns.
func levels(b *bench) {
	computing, restore := hostProcess()
	defer restore()
	plugin := must(startBarePlugin(b.ctx))
	defer plugin.close()
	module, program := must2(sdkPrograms())
	both := []*level{{name: "module", source: sourceOf("file", module)}, {name: "process", source: sourceOf("exec", program)}}
	for _, l := range both {
		var stop func()
		// Nothing listens there; these agents ask no model.
		l.url, stop = must2(runTemporaryHost(b.ctx, modelSwarm(l.source, "openai", "http://127.0.0.1:1/v1"), computing))
		defer stop()
	}
	realOps(b, both, plugin)
	end := must(alone(b.ctx, both, module, program))
	defer end()
	levelTurns(b, both, plugin)
}

// alone makes what runs the turns of both levels without a host.
func alone(ctx context.Context, both []*level, module, program string) (end func(), err error) {
	wasmBytes, err := os.ReadFile(module)
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	engine, err := newEngine(ctx, wasm.Options{})
	if err != nil {
		return nil, err
	}
	m, err := engine.Load(ctx, wasm.Source{Name: "sdk", Wasm: wasmBytes, Trusted: true})
	if err != nil {
		engine.Close(ctx)
		return nil, err
	}
	self := process.Options{Command: []string{"/proc/self/exe", process.Command}}
	p, err := process.Open(ctx, self, process.Source{Name: "sdk", Program: binary})
	if err != nil {
		engine.Close(ctx)
		return nil, err
	}
	both[0].turn = func(input []byte) error { return metered(ctx, m, input) }
	both[1].turn = func(input []byte) error {
		res := p.Turn(ctx, turn.Turn{Input: input, Clock: &clock{}, Ops: answers(cannedAnswer()), CPU: free{}})
		if res.Exit != nil {
			return res.Exit
		}
		return nil
	}
	return func() { engine.Close(ctx); _ = p.Close() }, nil
}

// opsOfTurn is how many ops a turn calls from which the cost of one is taken: fewer
// than it may log lines, or call the host by default.
const opsOfTurn = 900

// realOps takes an op's cost from a turn with many and a turn with none.
func realOps(b *bench, both []*level, plugin *barePlugin) {
	cl := clientOf(2)
	defer cl.CloseIdleConnections()
	through := func(input []byte) error { _, err := plugin.turn(b.ctx, input); return err }
	ops := []struct {
		name, command string
		peer          int
	}{{"clock.now", "clock", 0}, {"log", "log", 0}, {"log of 1 KiB", "logkib", 1}, {"kv.get of 1 KiB", "get", 1}}
	subjects := []subject{many("broker", 'S', callsInRPC, through), many("broker", 'O', callsInRPC, through)}
	for _, l := range both {
		do := func(text string) error { return message(l.url, bodyOf(text)).expect(cl, "") }
		check(do("put 1"))
		for _, op := range ops {
			subjects = append(subjects, difference(op.name, opsOfTurn, wall(),
				func() error { return do(op.command + " 0") }, func() error { return do(fmt.Sprintf("%s %d", op.command, opsOfTurn)) }))
		}
	}
	cost := must(b.costs(subjects...))
	for i, l := range both {
		for k, op := range ops {
			own := cost[2+i*len(ops)+k]
			peer := []string{"go-plugin, GRPCBroker, 64 bytes", "go-plugin, GRPCBroker, 1 KiB"}[op.peer]
			b.report.compare(l.name+", "+op.name, own, seconds, peer, cost[op.peer], none())
		}
	}
}

// levelTurns compares whole turns: alone, and as durable tasks.
func levelTurns(b *bench, both []*level, plugin *barePlugin) {
	cl := clientOf(2)
	defer cl.CloseIdleConnections()
	input := turnInput("echo 0")
	bare := command('E', input)
	subjects := []subject{repeated("go-plugin", func() error { _, err := plugin.turn(b.ctx, bare); return err })}
	for _, l := range both {
		subjects = append(subjects,
			repeated(l.name, func() error { return l.turn(input) }),
			repeated(l.name+" task", func() error { return message(l.url, bodyOf("echo 0")).expect(cl, "") }))
	}
	cost := must(b.costs(subjects...))
	for i, l := range both {
		turn, task := cost[1+2*i], cost[2+2*i]
		b.report.compare(l.name+", a turn of the SDK's agent", turn, seconds, "go-plugin, an echo of its input", cost[0], none())
		b.report.compare(l.name+", a durable task of such a turn", task, seconds, "the turn alone", turn, none())
	}
	b.report.compare("process, the turn", cost[3], seconds, "module", cost[1], none())
	b.report.compare("process, the task", cost[4], seconds, "module", cost[2], none())
}
