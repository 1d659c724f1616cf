package wasm

import (
	"context"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// latePort is a port whose answers come when a test says so: each time the guest
// would have to wait, the next step of the script is done first.
type latePort struct {
	t       *testing.T
	clock   *fakeClock
	cpu     *countingCPU
	call    func(ctx context.Context, op abi.Op) ([]byte, *abi.Error)
	refuse  *abi.Error // what submit answers
	script  []func()
	answers []*lateAnswer // in the order of submission
	waits   []int         // how many answers each Wait was about
	left    int           // answers of which something is left
	logs    int
}

// lateAnswer is one of them. Its goroutine stands for an op in flight.
type lateAnswer struct {
	port   *latePort
	unread []byte
	over   bool
	fault  *abi.Error
	ctx    context.Context
	cancel context.CancelFunc
	gone   chan struct{}
	closed int
}

func newLatePort(t *testing.T, script ...func(p *latePort)) *latePort {
	p := &latePort{t: t, clock: newClock(), cpu: &countingCPU{t: t}}
	for _, step := range script {
		p.script = append(p.script, func() { step(p) })
	}
	return p
}

// turn runs a turn on the port.
func (p *latePort) turn(wasm []byte, t turn.Turn) (turn.Result, *Module) {
	p.t.Helper()
	m := load(p.t, wasm)
	t.Ops, t.Clock, t.CPU = p, p.clock, p.cpu
	r := play(p.t, m, t)
	for n, a := range p.answers {
		if a.closed != 1 || p.left != 0 {
			p.t.Errorf("answer %d was closed %d times; %d are left", n, a.closed, p.left)
		}
	}
	return r, m
}

func (p *latePort) free() {
	if p.cpu.held {
		p.t.Error("the token is held during an op")
	}
}

func (p *latePort) Call(ctx context.Context, op abi.Op, _ []byte) ([]byte, *abi.Error) {
	p.free()
	if op == abi.OpLog {
		p.logs++
		return []byte("{}"), nil
	}
	if err := turn.CancelledError(ctx, op.String()); err != nil {
		return nil, err
	}
	return p.call(ctx, op)
}

func (p *latePort) Submit(ctx context.Context, op abi.Op, _ []byte) (turn.Answer, *abi.Error) {
	p.free()
	if err := turn.CancelledError(ctx, op.String()); err != nil {
		return nil, err
	}
	if p.refuse != nil {
		return nil, p.refuse
	}
	a := &lateAnswer{port: p, gone: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(ctx)
	go func() {
		defer close(a.gone)
		<-a.ctx.Done()
	}()
	p.answers = append(p.answers, a)
	p.left++
	return a, nil
}

// step does the next step of the script, or reports that there is none.
func (p *latePort) step() bool {
	if len(p.script) == 0 {
		return false
	}
	next := p.script[0]
	p.script = p.script[1:]
	next()
	return true
}

func (p *latePort) Wait(ctx context.Context, answers []turn.Answer, timeout time.Duration) (int, *abi.Error) {
	p.free()
	p.waits = append(p.waits, len(answers))
	for {
		if err := turn.CancelledError(ctx, abi.ImportWait); err != nil {
			return 0, err
		}
		for i, a := range answers {
			if a := a.(*lateAnswer); a.over || len(a.unread) > 0 {
				return i, nil
			}
		}
		switch {
		case timeout < 0 && p.step():
		case timeout < 0:
			<-ctx.Done()
		default:
			p.clock.Advance(p.clock.now.Add(timeout))
			return 0, turn.ImportError(abi.CodeDeadline, abi.ImportWait, "timeout", "nothing came")
		}
	}
}

func (a *lateAnswer) Read(ctx context.Context, b []byte) (int, *abi.Error) {
	a.port.free()
	for {
		if n := copy(b, a.unread); n > 0 {
			a.unread = a.unread[n:]
			return n, nil
		}
		if a.over {
			return 0, a.fault
		}
		if err := turn.CancelledError(ctx, abi.ImportRead); err != nil {
			return 0, err
		}
		if !a.port.step() {
			<-ctx.Done()
		}
	}
}

func (a *lateAnswer) Close() {
	a.port.free()
	a.cancel()
	<-a.gone
	a.closed++
	a.port.left--
}

// comes is a step: something comes for answer n.
func comes(n int, body string, over bool, err *abi.Error) func(p *latePort) {
	return func(p *latePort) {
		a := p.answers[n]
		a.unread, a.over, a.fault = append(a.unread, body...), over, err
	}
}

// importer are the imports that these guests use, and instructions that call
// them and trap at another result than the one given.
type importer struct{ call, submit, wait, read, close, write, poll, now int }

func importAll(b *builder) importer {
	return importer{
		call:   b.importFunc("skep_v1", "call", "iiiii", "I"),
		submit: b.importFunc("skep_v1", "submit", "iii", "I"),
		wait:   b.importFunc("skep_v1", "wait", "iii", "i"),
		read:   b.importFunc("skep_v1", "read", "iii", "I"),
		close:  b.importFunc("skep_v1", "close", "i", "i"),
		write:  b.importFunc("skep_v1", "output_write", "ii", "i"),
		poll:   b.importFunc(wasiModule, "poll_oneoff", "iiii", "i"),
		now:    b.importFunc(wasiModule, "clock_time_get", "iIi", "i"),
	}
}

// calls runs an op with a request of some bytes; its answer goes to 1024.
func (i importer) calls(op abi.Op, request, room, want int64) []byte {
	return join(i32c(int64(op)), i32c(0), i32c(request), i32c(1024), i32c(room), callf(i.call), expect64(want))
}

func (i importer) submits(op abi.Op, want int64) []byte {
	return join(i32c(int64(op)), i32c(0), i32c(2), callf(i.submit), expect64(want))
}

// waits waits for a list of handles, which it writes to 512.
func (i importer) waits(timeout, want int64, handles ...int64) []byte {
	var list []byte
	for n, h := range handles {
		list = join(list, i32c(int64(512+4*n)), i32c(h), store32(0))
	}
	return join(list, i32c(512), i32c(int64(len(handles))), i32c(timeout), callf(i.wait), expect32(want))
}

// reads reads to 1024.
func (i importer) reads(handle, room, want int64) []byte {
	return join(i32c(handle), i32c(1024), i32c(room), callf(i.read), expect64(want))
}

func (i importer) closes(handle, want int64) []byte {
	return join(i32c(handle), callf(i.close), expect32(want))
}

// sleeps sleeps on the monotonic clock; one event must be due after it.
func (i importer) sleeps(d time.Duration) []byte {
	return join(i32c(600), i64c(0), store64(0), i32c(608), i64c(0), store64(0), i32c(616), i32c(1), store32(0),
		i32c(624), i64c(int64(d)), store64(0), i32c(632), i64c(0), store64(0), i32c(640), i64c(0), store64(0),
		i32c(600), i32c(700), i32c(1), i32c(800), callf(i.poll), expect32(0), i32c(800), load32(0), expect32(1))
}

// fails ends the turn with the last error as its output. It needs a local 1 of 64 bits.
func (i importer) fails() []byte {
	return join(i32c(0), i32c(0), i32c(0), i32c(2048), i32c(8192), callf(i.call), set(1),
		i32c(2048), get(1), op(0xa7), callf(i.write), drop, i32c(1))
}
