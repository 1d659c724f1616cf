package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero/api"

	"skep/abi"
)

// run is one call on its way, in an instance. It serves one goroutine and is
// never used again.
type run struct {
	ctx    context.Context // the caller's, for waiting; a run lives within one call
	module *Module
	turn   Turn
	limits Limits
	log    *slog.Logger
	// deadline is ctx's, if it is timed: a timer may fire late beside guests.
	deadline time.Time
	timed    bool

	// starting is true until skep_turn begins: image clock, no ops.
	starting bool
	// started says that the module's start has run for this turn, and cost this.
	started   bool
	startFuel uint64
	startCPU  time.Duration
	clock     Clock
	random    *rand.ChaCha8

	inst   *instance // and of it:
	guest  api.Module
	memory api.Memory
	slice  api.MutableGlobal
	meter  meter
	token  token
	size   int64 // of the memory, at the end

	output  []byte
	spoiled bool // a write was refused
	status  abi.Status
	calls   int64
	moved   int64
	handles handles
	under   calls
	last    *abi.Error // what last_error tells
	lines   lines
	// inside names the host function that runs, so that its panic is not
	// taken for the guest's.
	inside string
	exit   *Exit
	// offSince is when the guest was first seen computing after its turn was
	// called off.
	offSince time.Time
}

func newRun(ctx context.Context, m *Module, t Turn) *run {
	r := &run{ctx: ctx, module: m, turn: t, limits: t.Limits.withDefaults().atStart(), log: m.engine.log, starting: true}
	r.deadline, r.timed = ctx.Deadline()
	r.clock = &imageClock{imageTime}
	r.random = rand.NewChaCha8(m.seed)
	r.meter = meter{limit: r.limits.Start}
	r.token = token{cpu: t.CPU, limit: max(startCPU, r.limits.CPU)}
	r.lines.write = r.logLine
	return r
}

// fence runs what happens in or for the guest, and is the one place where a
// panic is recovered. What becomes of the instance is decided behind it.
func (r *run) fence(body func() *Exit) (exit *Exit) {
	defer func() { r.drop(exit) }()
	defer func() {
		if v := recover(); v != nil {
			exit = &Exit{Kind: ExitHost, Message: fmt.Sprintf("panic in the host (%s): %v", r.inside, v)}
		}
	}()
	defer r.endOps()
	exit = body()
	r.lines.flush()
	return exit
}

// drop reads the counters and gives the instance back: to the pool where the
// turn ended well and the instance can be made as new, to nobody otherwise. The
// guest's code has been left, but after a trap, a kill or a panic nobody knows
// in which state; wazero does not close it.
func (r *run) drop(exit *Exit) {
	r.token.release()
	if r.inst == nil {
		return
	}
	r.size = int64(r.memory.Size())
	r.meter.settle(r.slice)
	i, pool := r.inst, r.module.engine.pool
	r.inst = nil
	if i.shelf != nil && exit == nil && r.ctx.Err() == nil && pool.park(i) {
		return
	}
	if i.shelf != nil {
		pool.count(func(s *PoolStats) { s.Dropped++ })
	}
	i.close()
}

// begin ends the start: from here on the turn's own clock, seed and fuel count.
func (r *run) begin() {
	r.token.count(time.Now())
	r.countStart()
	r.starting = false
	r.inst.linear.refused = false
	r.limits = r.turn.Limits.withDefaults()
	r.output, r.spoiled, r.last = nil, false, nil
	r.calls, r.moved, r.handles = 0, 0, handles{}
	r.lines.reset()
	r.clock = r.turn.Clock
	r.random = rand.NewChaCha8(r.turn.Seed)
	r.meter = meter{limit: r.limits.Fuel}
	r.slice.Set(0)
	r.token.limit = r.limits.CPU
	r.token.restart()
}

// countStart keeps what a start has used, if there was one.
func (r *run) countStart() {
	if r.started {
		r.startFuel, r.startCPU = r.meter.used, r.token.used
	}
}

func (r *run) startLimits() startLimits {
	return startLimits{r.limits.Memory, r.limits.Stack, r.limits.Start}
}

// guestContext is what wazero hands to every host function.
type guestContext struct {
	context.Context
	run *run
}

func (r *run) guestContext() context.Context { return &guestContext{context.Background(), r} }

// callVoid calls an export without result, if the guest has it. Texts for
// people call it by its label.
func (r *run) callVoid(name, label string) *Exit {
	f := r.guest.ExportedFunction(name)
	if f == nil {
		return nil
	}
	if err := f.CallWithStack(r.guestContext(), nil); err != nil {
		return r.failure(label, err)
	}
	return nil
}

// callStatus calls an export that returns a status. One the guest lacks is not
// implemented.
func (r *run) callStatus(name string, params ...uint64) (abi.Status, *Exit) {
	f := r.guest.ExportedFunction(name)
	if f == nil {
		return abi.StatusNotImplemented, nil
	}
	stack := [1]uint64{}
	copy(stack[:], params)
	if err := f.CallWithStack(r.guestContext(), stack[:]); err != nil {
		return 0, r.failure(name, err)
	}
	return abi.Status(int32(uint32(stack[0]))), nil
}

// kill ends the guest from inside a host function.
func (r *run) kill(exit *Exit) {
	if r.exit == nil {
		r.exit = exit
	}
	panic(errKilled)
}

// failure finds out why a call of the guest did not return.
func (r *run) failure(name string, err error) *Exit {
	switch {
	case r.exit != nil:
		return r.exit
	case r.inside != "":
		return &Exit{Kind: ExitHost, Message: fmt.Sprintf("the host function %s failed: %v", r.inside, err), Cause: err}
	case isStackOverflow(err):
		return stackExit(r.limits.Stack)
	}
	r.lines.flush()
	exit := &Exit{Kind: ExitTrap, Message: trapText(name, err, r.lines.words())}
	if r.inst != nil && r.inst.linear.refused {
		// Most guests trap when they get no memory; the limit is the reason.
		exit.Limit = keyMemory
		exit.Message += fmt.Sprintf("; it was refused more than %d bytes of memory", r.limits.Memory)
	}
	return exit
}

// finish looks at what a turn or an action left behind.
func (r *run) finish(name string, status abi.Status) *Exit {
	if r.spoiled {
		return OutputExit(r.limits)
	}
	r.status = status
	return Ending(name, status, r.output)
}

// failed is the exit of a guest that returned a status other than ok.
func (r *run) failed(name string, status abi.Status) *Exit {
	return failedExit(name, status, r.output)
}

// result gathers what the run used.
func (r *run) result(exit *Exit) Result {
	res := Result{Exit: exit, HostCalls: r.calls, Memory: r.size, Status: r.status}
	if exit == nil || exit.Kind == ExitFailed {
		res.Output = r.output
	}
	if r.starting {
		r.countStart()
	} else {
		res.Fuel, res.CPU = r.meter.used, r.token.used
	}
	res.StartFuel, res.StartCPU = r.startFuel, r.startCPU
	return res
}

// imageClock is the clock under which every image is made. A sleep moves it and
// waits for nothing.
type imageClock struct{ now time.Time }

var imageTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *imageClock) Now() time.Time { return c.now }

func (c *imageClock) Advance(to time.Time) { c.now = to }

func (c *imageClock) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}
