//go:build !linux

package sandbox

import (
	"context"
	"runtime/debug"
)

// limitSelf asks the runtime to stay within memory; computing time is bounded
// by the parent's clock.
func limitSelf(memory, _ int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}

// watchMemory has nothing to look at on this system.
func watchMemory(context.Context, int, int64, context.CancelCauseFunc) {}
