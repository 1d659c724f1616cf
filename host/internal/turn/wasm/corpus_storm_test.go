package wasm

import (
	"context"
	"testing"

	"skep/abi"
	"skep/host/internal/turn"
)

// A guest that does nothing but call imports uses little of its own slice; the
// end of its turn must reach it all the same, within the units of a few imports.
func TestStormIsInterrupted(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	write := b.importFunc(wasiModule, "fd_write", "iiii", "i")
	now := b.importFunc(wasiModule, "clock_time_get", "iIi", "i")
	b.mem(1)
	b.segment(0, "\x10\x00\x00\x00\x01\x00\x00\x00")
	b.segment(16, "\n")
	m := load(t, b.agent("", i32c(1), i32c(0), i32c(1), i32c(8), callf(write), drop,
		loop(join(i32c(0), i64c(0), i32c(24), callf(now), drop, br(0))), ok))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := m.Turn(ctx, turn.Turn{Clock: newClock(), Ops: turn.OpsFunc(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) {
		cancel() // the log line has come
		return nil, nil
	})})
	wantExit(t, r.Exit, turn.ExitCancelled, "")
	if r.Fuel > 2*uncheckedUnits {
		t.Errorf("it went on for %d units", r.Fuel)
	}
}
