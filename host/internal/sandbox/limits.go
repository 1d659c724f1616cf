package sandbox

import (
	"cmp"
	"time"

	"skep/host/internal/wasmbin"
)

// Keys of an agent's limits in swarm.toml, as an [Exit] names them.
const (
	keyMemory    = "limits.memory"
	keyStack     = "limits.stack"
	keyFuel      = "limits.fuel"
	keyCPU       = "limits.cpu"
	keyTurn      = "limits.turn"
	keyOutput    = "limits.output"
	keyHostCalls = "limits.host_calls"
	keyHostBytes = "limits.host_bytes"
	keyGrace     = "limits.grace"
)

// Limits bound one turn. A zero field means the default. Wall time comes with
// the context.
type Limits struct {
	Memory    int64         // bytes of linear memory; a grow beyond it returns -1
	Stack     int64         // bytes of call stack, as the rewriter counts them
	Fuel      uint64        // units from skep_turn on
	CPU       time.Duration // computing time from skep_turn on
	Output    int64         // bytes written with output_write
	HostCalls int64         // call and submit; beyond it they answer LIMIT
	HostBytes int64         // requests and answers of these together, likewise
	// Grace is how long a turn may go on after it was called off.
	Grace time.Duration
	// Start is what _initialize and skep_warm, or skep_describe, may take: by
	// default half a billion units, or Fuel where that is more.
	Start uint64
}

// DefaultLimits returns what holds where nobody set anything.
func DefaultLimits() Limits {
	return Limits{
		Memory:    64 << 20,
		Stack:     wasmbin.DefaultStack,
		Fuel:      200_000_000_000,
		CPU:       10 * time.Second,
		Output:    1 << 20,
		HostCalls: 1000,
		HostBytes: 16 << 20,
		Grace:     250 * time.Millisecond,
		Start:     500_000_000,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	d.Start = max(d.Start, l.Fuel)
	return Limits{
		Memory:    cmp.Or(l.Memory, d.Memory),
		Stack:     cmp.Or(l.Stack, d.Stack),
		Fuel:      cmp.Or(l.Fuel, d.Fuel),
		CPU:       cmp.Or(l.CPU, d.CPU),
		Output:    cmp.Or(l.Output, d.Output),
		HostCalls: cmp.Or(l.HostCalls, d.HostCalls),
		HostBytes: cmp.Or(l.HostBytes, d.HostBytes),
		Grace:     cmp.Or(l.Grace, d.Grace),
		Start:     cmp.Or(l.Start, d.Start),
	}
}

// startLimits are the limits that decide what an instance is when its turn
// begins. Others hold from skep_turn on.
type startLimits struct {
	Memory, Stack int64
	Fuel          uint64
}

// atStart returns the limits that hold until skep_turn: an agent's bounds of
// output and host calls are those of its turns.
func (l Limits) atStart() Limits {
	d := DefaultLimits()
	l.Output, l.HostCalls, l.HostBytes = d.Output, d.HostCalls, d.HostBytes
	return l
}

// Fixed bounds of both levels of isolation.
const (
	MaxRequest = 4 << 20 // bytes of one op's request
	MaxHandles = 64      // open handles of a turn
	MaxWait    = 64      // handles in one wait
)

// Fixed bounds that no operator needs to raise.
const (
	maxLogLines   = 1000    // lines a turn writes to its descriptors 1 and 2
	maxLogLine    = 1 << 10 // bytes of one of them; longer lines are split
	maxWrite      = 64 << 10
	maxVectors    = 1024
	maxSubs       = 16
	randomChunk   = 64 << 10
	maxFailure    = 4 << 10 // bytes of a failed turn's message that are kept
	startCPU      = 5 * time.Second
	describeWall  = 10 * time.Second
	sliceUnits    = 100_000 // units between two ticks
	unseenUnits   = 10_000  // units of imports between two looks
	yieldAfter    = time.Millisecond
	importCost    = 64 // units of one import
	bytesPerUnit  = 16 // and what one unit moves
	maxGuestAbort = 4 << 10
)
