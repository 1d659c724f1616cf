//go:build !linux

package wasm

import (
	"context"
	"runtime/debug"
)

// limitSelf sets the memory limit of the runtime; computing time is bounded
// by the parent's clock.
func limitSelf(memory, _ int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}

// watchMemory has nothing to look at on this system.
func watchMemory(context.Context, int, int64, context.CancelCauseFunc) {}
