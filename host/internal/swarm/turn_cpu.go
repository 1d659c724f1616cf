package swarm

import (
	"context"

	"skep/host/internal/swarm/scheduler"
)

// CPUToken is one turn's claim on the processor.
type CPUToken struct {
	cpu   *scheduler.CPU
	owner scheduler.Owner
	mark  *runMark
	slot  *scheduler.Slot[claim]
}

// Acquire waits for the right to compute; Release gives it back. Calls alternate,
// beginning with Acquire.
func (t CPUToken) Acquire(ctx context.Context) error {
	t.slot.SetWaiting(false)
	err := t.cpu.Acquire(ctx, t.owner)
	if err == nil {
		t.mark.markComputing()
	}
	return err
}

// Release gives the token back, for instance while the turn waits.
func (t CPUToken) Release() {
	t.mark.markWaiting()
	t.cpu.Release(t.owner)
	t.slot.SetWaiting(true)
}
