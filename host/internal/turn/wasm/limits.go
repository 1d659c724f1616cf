package wasm

import (
	"time"

	"skep/host/internal/turn"
)

// startLimits are the limits that decide what an instance is when its turn
// begins. Others hold from skep_turn on.
type startLimits struct {
	Memory, Stack int64
	Fuel          uint64
}

// limitsAtStart returns the limits that hold until skep_turn. Output and host calls
// of the start have the default limits, whatever the agent has.
func limitsAtStart(l turn.Limits) turn.Limits {
	l, d := l.WithDefaults(), turn.DefaultLimits()
	l.Output, l.HostCalls, l.HostBytes = d.Output, d.HostCalls, d.HostBytes
	return l
}

// Fixed bounds that no operator needs to raise.
const (
	maxLogLines    = 1000    // lines a turn writes to its descriptors 1 and 2
	maxLogLine     = 1 << 10 // bytes of one of them; longer lines are split
	maxWrite       = 64 << 10
	maxVectors     = 1024
	maxSubs        = 16
	randomChunk    = 16 << 10
	seedBytes      = 256 // random bytes of one call at the price of moved ones; runtimes take them to start
	randomFactor   = 8   // price of further random bytes, in moved bytes, as measured
	startCPU       = 5 * time.Second
	describeWall   = 10 * time.Second
	sliceUnits     = 100_000 // units between two ticks
	uncheckedUnits = 10_000  // units of imports between two looks
	yieldAfter     = time.Millisecond
	importCost     = 64 // units of one import
	bytesPerUnit   = 16 // bytes that one unit moves
)
