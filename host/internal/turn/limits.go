package turn

import (
	"cmp"
	"time"
)

// Keys of an agent's limits in swarm.toml, as an [Exit] names them.
const (
	KeyMemory    = "limits.memory"
	KeyStack     = "limits.stack"
	KeyFuel      = "limits.fuel"
	KeyCPU       = "limits.cpu"
	KeyTurn      = "limits.turn"
	KeyOutput    = "limits.output"
	KeyHostCalls = "limits.host_calls"
	KeyHostBytes = "limits.host_bytes"
	KeyGrace     = "limits.grace"
)

// Limits bound one turn. A zero field means the default. The context carries the
// limit on wall time.
type Limits struct {
	Memory    int64         // bytes of linear memory; a grow beyond it returns -1
	Stack     int64         // bytes of call stack, as the rewriter counts them
	Fuel      uint64        // units from skep_turn on
	CPU       time.Duration // computing time from skep_turn on
	Output    int64         // bytes written with output_write
	HostCalls int64         // call and submit; beyond it they answer LIMIT
	HostBytes int64         // bytes of their requests and answers; beyond it likewise
	// Grace is how long a turn may go on after it was cancelled.
	Grace time.Duration
	// Start is the fuel of _initialize and skep_warm, or of skep_describe: by
	// default half a billion units, or Fuel where that is more.
	Start uint64
}

// DefaultLimits returns the limits of an agent whose definition sets none.
func DefaultLimits() Limits {
	return Limits{
		Memory:    64 << 20,
		Stack:     8 << 20,
		Fuel:      200_000_000_000,
		CPU:       10 * time.Second,
		Output:    1 << 20,
		HostCalls: 1000,
		HostBytes: 16 << 20,
		Grace:     250 * time.Millisecond,
		Start:     500_000_000,
	}
}

// WithDefaults returns the limits with a default in every zero field.
func (l Limits) WithDefaults() Limits {
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
