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
	err := t.mark.waitForSuspects(ctx)
	t.slot.SetWaiting(false)
	if err != nil {
		return err
	}
	if err = t.cpu.Acquire(ctx, t.owner); err != nil {
		t.mark.yieldToSuspects()
		return err
	}
	t.mark.markComputing()
	return nil
}

// Release gives the token back, for instance while the turn waits.
func (t CPUToken) Release() {
	t.mark.markWaiting()
	t.cpu.Release(t.owner)
	t.slot.SetWaiting(true)
	t.mark.yieldToSuspects()
}
