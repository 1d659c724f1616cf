package wasm

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero/api"
	"skep/host/internal/turn"
)

// meter counts fuel. The guest takes its units from a slice in one of its globals;
// the rest stays here:
//
//	used = granted - slice + host
type meter struct {
	limit     uint64
	granted   int64 // handed to the guest's slice so far
	host      int64 // taken by imports
	unchecked int64 // of it, since the last checkLimits
	used      uint64
}

// updateUsed updates the units used.
func (m *meter) updateUsed(slice api.MutableGlobal) {
	m.used = uint64(m.granted + m.host - int64(slice.Get()))
}

// refillSlice sets the guest's slice to the units it may still use, at most a slice full.
// It reports false when more than the limit is used.
func (m *meter) refillSlice(slice api.MutableGlobal) bool {
	m.updateUsed(slice)
	if m.used > m.limit {
		return false
	}
	m.setSlice(slice, int64(min(m.limit-m.used, sliceUnits)))
	return true
}

func (m *meter) setSlice(slice api.MutableGlobal, want int64) {
	m.granted += want - int64(slice.Get())
	slice.Set(uint64(want))
}

// charge charges an import. It reports false when more than the limit is used.
func (m *meter) charge(slice api.MutableGlobal, units int64) bool {
	m.host += units
	if uint64(m.granted+m.host) <= m.limit {
		return true // even with the whole slice used up
	}
	m.updateUsed(slice)
	if m.used > m.limit {
		return false
	}
	m.setSlice(slice, min(int64(slice.Get()), int64(m.limit-m.used)))
	return true
}

// charge takes the cost of an import that moves some bytes.
func (r *run) charge(bytes uint64) { r.chargeUnits(importCost + int64(bytes/bytesPerUnit)) }

// chargeBytes takes the cost of bytes that came after the import's own.
func (r *run) chargeBytes(n int) { r.chargeUnits(int64(n) / bytesPerUnit) }

func (r *run) chargeUnits(units int64) {
	if !r.meter.charge(r.slice, units) {
		r.killFuel()
	}
	// A guest that computes in imports does not use its slice, and would not tick
	// for seconds.
	if r.meter.unchecked += units; r.meter.unchecked >= uncheckedUnits {
		r.checkLimits()
	}
}

func (r *run) killFuel() {
	r.kill(&turn.Exit{Kind: turn.ExitFuel, Limit: turn.KeyFuel,
		Message: fmt.Sprintf("used up its fuel%s of %d units", r.phase(), r.meter.limit)})
}

// phase names the phase whose limit was hit, where it is not the turn.
func (r *run) phase() string {
	if r.starting {
		return " of the start"
	}
	return ""
}

// tick is called by a guest that has used up its slice.
func (r *run) tick() {
	r.checkLimits()
	if !r.meter.refillSlice(r.slice) {
		r.killFuel()
	}
}

// checkLimits checks the clock, the context and the computing time, and yields
// when the guest has held its token long enough. Go cannot preempt the guest's code:
// without this call timers do not fire and the garbage collector does not finish.
func (r *run) checkLimits() {
	r.meter.unchecked = 0
	now := time.Now()
	if r.ctx.Err() != nil || r.timed && now.After(r.deadline) {
		r.kill(turn.ContextExit(r.ctx))
	}
	if !r.token.countTime(now) {
		r.kill(&turn.Exit{Kind: turn.ExitCPU, Limit: turn.KeyCPU,
			Message: fmt.Sprintf("used up its computing time%s of %v", r.phase(), r.token.limit)})
	}
	r.checkGrace(now)
	if now.Sub(r.token.since) >= yieldAfter {
		r.withoutToken(runtime.Gosched)
	}
}

// withoutToken calls f without the token.
func (r *run) withoutToken(f func()) {
	r.token.release()
	f()
	r.reacquire()
}

// reacquire takes the token again, or kills the guest.
func (r *run) reacquire() {
	if exit := r.acquire(); exit != nil {
		r.kill(exit)
	}
}

// acquire takes the token, unless the context ends first.
func (r *run) acquire() *turn.Exit {
	err := r.token.acquire(r.ctx)
	switch {
	case r.ctx.Err() != nil:
		return turn.ContextExit(r.ctx)
	case err != nil:
		return turn.CancelledExit(err)
	}
	return nil
}
