package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero/api"

	"skep/abi"
	"skep/host/internal/turn"
)

// run is one call of a guest, in an instance. It serves one goroutine and is
// never used again.
type run struct {
	ctx    context.Context // the caller's, for waiting; a run lives within one call
	module *Module
	turn   turn.Turn
	// inspect, where it is set, sees the instance before and after skep_turn.
	inspect func(memory []byte, globals []uint64)
	limits  turn.Limits
	log     *slog.Logger
	// deadline is ctx's, if it is timed: a timer may fire late beside guests.
	deadline time.Time
	timed    bool

	// starting is true until skep_turn begins: image clock, no ops.
	starting bool
	// started is true when the module's start has run for this turn, at this cost.
	started   bool
	startFuel uint64
	startCPU  time.Duration
	clock     turn.Clock
	random    *rand.ChaCha8

	runInstance
	meter meter
	token cpuToken
	size  int64 // bytes of the memory at the end

	output        []byte
	outputRefused bool // a write was refused
	status        abi.Status
	hostCalls     int64
	hostBytes     int64
	handles       handles
	opScope       opScope
	lastErr       *abi.Error // the answer of last_error
	guestLog      guestLog
	// hostFunc is the name of the running host function, so that its panic is not
	// taken for the guest's.
	hostFunc string
	exit     *turn.Exit
	// cancelledSince is when the guest was first seen computing after its turn was
	// cancelled.
	cancelledSince time.Time
}

// runInstance is the instance of a run, and the parts of it that every host call needs.
// inst is nil before the start and after the end.
type runInstance struct {
	inst   *instance
	guest  api.Module
	memory api.Memory
	slice  api.MutableGlobal
}

func newRun(ctx context.Context, m *Module, t turn.Turn) *run {
	r := &run{ctx: ctx, module: m, turn: t, limits: limitsAtStart(t.Limits), log: m.engine.log, starting: true}
	r.deadline, r.timed = ctx.Deadline()
	r.clock = &imageClock{imageTime}
	r.random = rand.NewChaCha8(m.seed)
	r.meter = meter{limit: r.limits.Start}
	r.token = cpuToken{cpu: t.CPU, limit: max(startCPU, r.limits.CPU)}
	r.guestLog.emit = r.logLine
	return r
}

// guard runs the code in and for the guest. It is the only place where a panic is
// recovered. Afterwards the instance is recycled or closed.
func (r *run) guard(body func() *turn.Exit) (exit *turn.Exit) {
	defer func() { r.returnInstance(exit) }()
	defer func() {
		if v := recover(); v != nil {
			exit = &turn.Exit{Kind: turn.ExitHost, Message: fmt.Sprintf("panic in the host (%s): %v", r.hostFunc, v)}
		}
	}()
	defer r.endOps()
	exit = body()
	r.guestLog.flush()
	return exit
}

// returnInstance reads the counters and recycles the instance where the turn ended
// well and the instance can be reset; otherwise it closes it. After a trap, a kill or
// a panic the state of the guest is unknown; wazero does not close it.
func (r *run) returnInstance(exit *turn.Exit) {
	r.token.release()
	if r.inst == nil {
		return
	}
	r.size = int64(r.memory.Size())
	r.meter.updateUsed(r.slice)
	i, pool := r.inst, r.module.engine.pools
	r.inst = nil
	if i.pool != nil && exit == nil && r.ctx.Err() == nil && pool.recycle(i) {
		return
	}
	if i.pool != nil {
		pool.updateStats(func(s *PoolStats) { s.Dropped++ })
	}
	i.close()
}

// beginTurn ends the start: from here on the turn's own clock, seed and fuel count.
func (r *run) beginTurn() {
	r.token.countTime(time.Now())
	r.recordStart()
	r.starting = false
	r.inst.linear.growRefused = false
	r.limits = r.turn.Limits.WithDefaults()
	r.output, r.outputRefused, r.lastErr = nil, false, nil
	r.hostCalls, r.hostBytes, r.handles = 0, 0, handles{}
	r.guestLog.reset()
	r.clock = r.turn.Clock
	r.random = rand.NewChaCha8(r.turn.Seed)
	r.meter = meter{limit: r.limits.Fuel}
	r.slice.Set(0)
	r.token.limit = r.limits.CPU
	r.token.resetUsed()
}

// recordStart records the fuel and time of the start, if there was one.
func (r *run) recordStart() {
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

// callVoid calls an export without result, if the guest has it. Messages name it by
// its label.
func (r *run) callVoid(name, label string) *turn.Exit {
	f := r.guest.ExportedFunction(name)
	if f == nil {
		return nil
	}
	if err := f.CallWithStack(r.guestContext(), nil); err != nil {
		return r.exitOf(label, err)
	}
	return nil
}

// callStatus calls an export that returns a status. One the guest lacks is not
// implemented.
func (r *run) callStatus(name string, params ...uint64) (abi.Status, *turn.Exit) {
	f := r.guest.ExportedFunction(name)
	if f == nil {
		return abi.StatusNotImplemented, nil
	}
	stack := [1]uint64{}
	copy(stack[:], params)
	if err := f.CallWithStack(r.guestContext(), stack[:]); err != nil {
		return 0, r.exitOf(name, err)
	}
	return abi.Status(int32(uint32(stack[0]))), nil
}

// errKilled is the panic that ends a guest. It never leaves the package.
var errKilled = errors.New("sandbox: killed")

// kill ends the guest from inside a host function.
func (r *run) kill(exit *turn.Exit) {
	if r.exit == nil {
		r.exit = exit
	}
	panic(errKilled)
}

// exitOf returns the exit for a call of the guest that did not return.
func (r *run) exitOf(name string, err error) *turn.Exit {
	switch {
	case r.exit != nil:
		return r.exit
	case r.hostFunc != "":
		return &turn.Exit{Kind: turn.ExitHost, Message: fmt.Sprintf("the host function %s failed: %v", r.hostFunc, err), Cause: err}
	case isStackOverflow(err):
		return stackExit(r.limits.Stack)
	}
	r.guestLog.flush()
	exit := &turn.Exit{Kind: turn.ExitTrap, Message: trapText(name, err, r.guestLog.lastWords())}
	if r.inst != nil && r.inst.linear.growRefused {
		// Most guests trap when they get no memory; the limit is the reason.
		exit.Limit = turn.KeyMemory
		exit.Message += fmt.Sprintf("; it was refused more than %d bytes of memory", r.limits.Memory)
	}
	return exit
}

// turnExit returns the exit of a turn or an action that returned a status.
func (r *run) turnExit(name string, status abi.Status) *turn.Exit {
	if r.outputRefused {
		return turn.OutputExit(r.limits)
	}
	r.status = status
	return turn.StatusExit(name, status, r.output)
}

// result returns the run's result and usage.
func (r *run) result(exit *turn.Exit) turn.Result {
	res := turn.Result{Exit: exit, HostCalls: r.hostCalls, Memory: r.size, Status: r.status}
	if exit == nil || exit.Kind == turn.ExitFailed {
		res.Output = r.output
	}
	if r.starting {
		r.recordStart()
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
