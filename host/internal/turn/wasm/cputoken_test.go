package wasm

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// countingCPU checks that tokens are taken and given back in turn.
type countingCPU struct {
	t        *testing.T
	held     bool
	acquired int
}

func (c *countingCPU) Acquire(ctx context.Context) error {
	if c.held {
		c.t.Error("a token was taken twice")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.held = true
	c.acquired++
	return nil
}

func (c *countingCPU) Release() {
	if !c.held {
		c.t.Error("a token was given back twice")
	}
	c.held = false
}

func TestTokenIsHeldOnlyWhileComputing(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	call := b.importFunc("skep_v1", "call", "iiiii", "I")
	m := load(t, b.agent("", i32c(10), i32c(0), i32c(0), i32c(0), i32c(8), callf(call), drop, ok))
	cpu := &countingCPU{t: t}
	ops := &fakeOps{answer: func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) {
		if cpu.held {
			t.Error("the token is held during an op")
		}
		return nil, nil
	}}
	r := play(t, m, turn.Turn{CPU: cpu, Ops: ops})
	wantExit(t, r.Exit, "", "")
	if cpu.held || cpu.acquired < 2 { // more on a machine so slow that its slice ends
		t.Errorf("held %v after %d tokens, want 2: at the begin and after the op", cpu.held, cpu.acquired)
	}

	loop := load(t, newBuilder().agent("", forever(), ok))
	cpu = &countingCPU{t: t}
	r = play(t, loop, turn.Turn{CPU: cpu, Limits: turn.Limits{Fuel: 1 << 60, CPU: 30 * time.Millisecond}})
	wantExit(t, r.Exit, turn.ExitCPU, "limits.cpu")
	if cpu.held || cpu.acquired < 5 {
		t.Errorf("held %v; a loop of 30 ms took %d tokens", cpu.held, cpu.acquired)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantExit(t, loop.Turn(ctx, turn.Turn{CPU: cpu, Clock: newClock()}).Exit, turn.ExitCancelled, "")
	if cpu.held {
		t.Error("a turn that never began keeps its token")
	}
	for _, body := range [][]byte{unreachable, join(i32c(-8), load32(0))} {
		play(t, load(t, newBuilder().agent("", body)), turn.Turn{CPU: cpu})
		if cpu.held {
			t.Error("a trapped turn keeps its token")
		}
	}
}

// A guest that loops must not hold up the garbage collector: it cannot be
// preempted, so it must come by tick.
func TestGarbageCollectionRunsBesideALoop(t *testing.T) {
	t.Parallel()
	m := load(t, newBuilder().agent("", forever(), ok))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan turn.Result)
	go func() {
		done <- m.Turn(ctx, turn.Turn{Clock: newClock(), Limits: turn.Limits{Fuel: 1 << 62, CPU: time.Hour}})
	}()
	start := time.Now()
	for range 3 {
		runtime.GC()
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("three collections took %v", took)
	}
	cancel()
	wantExit(t, (<-done).Exit, turn.ExitCancelled, "")
}

// Guests that die in every place give their memory back.
func TestMemoryIsFreed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts mappings of linux")
	}
	b := newBuilder()
	b.startFunc = b.fn("", "", "", "", unreachable)
	b.mem(2)
	dead := load(t, b.agent("", ok))
	fine := load(t, newBuilder().agent("", ok))
	run := func() {
		for range 100 {
			play(t, dead, turn.Turn{})
			play(t, fine, turn.Turn{})
		}
	}
	run()
	before := mappings(t)
	run()
	if after := mappings(t); after > before+20 {
		t.Errorf("%d mappings before 200 turns, %d after", before, after)
	}
}

func mappings(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), "\n")
}
