package sandbox

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// meter counts fuel. The guest takes its units from a slice that it holds as a
// global; the rest stays here:
//
//	used = granted - slice + host
type meter struct {
	limit   uint64
	granted int64 // handed to the guest's slice so far
	host    int64 // taken by imports
	unseen  int64 // of it, since the last look
	used    uint64
}

// settle reads what was used.
func (m *meter) settle(slice api.MutableGlobal) {
	m.used = uint64(m.granted + m.host - int64(slice.Get()))
}

// grant sets the guest's slice to what it may still use, at most a slice full.
// It reports false when more than the limit is used.
func (m *meter) grant(slice api.MutableGlobal) bool {
	m.settle(slice)
	if m.used > m.limit {
		return false
	}
	m.set(slice, int64(min(m.limit-m.used, sliceUnits)))
	return true
}

func (m *meter) set(slice api.MutableGlobal, want int64) {
	m.granted += want - int64(slice.Get())
	slice.Set(uint64(want))
}

// take charges an import. It reports false when more than the limit is used.
func (m *meter) take(slice api.MutableGlobal, units int64) bool {
	m.host += units
	if uint64(m.granted+m.host) <= m.limit {
		return true // even with the whole slice used up
	}
	m.settle(slice)
	if m.used > m.limit {
		return false
	}
	m.set(slice, min(int64(slice.Get()), int64(m.limit-m.used)))
	return true
}

// charge takes the cost of an import that moves some bytes.
func (r *run) charge(bytes uint64) { r.takeUnits(importCost + int64(bytes/bytesPerUnit)) }

// chargeBytes takes the cost of bytes that came after the import's own.
func (r *run) chargeBytes(n int) { r.takeUnits(int64(n) / bytesPerUnit) }

func (r *run) takeUnits(units int64) {
	if !r.meter.take(r.slice, units) {
		r.killFuel()
	}
	// A guest that computes in imports leaves its own slice as it is, and would
	// not tick for seconds.
	if r.meter.unseen += units; r.meter.unseen >= unseenUnits {
		r.look()
	}
}

func (r *run) killFuel() {
	r.kill(&Exit{Kind: ExitFuel, Limit: keyFuel,
		Message: fmt.Sprintf("used up its fuel%s of %d units", r.phase(), r.meter.limit)})
}

// phase names the phase whose limit was hit, where it is not the turn.
func (r *run) phase() string {
	if r.starting {
		return " of the start"
	}
	return ""
}

// tick is where a running guest meets its limits: it has used up its slice.
func (r *run) tick() {
	r.look()
	if !r.meter.grant(r.slice) {
		r.killFuel()
	}
}

// look checks the clock, the context and the computing time, and lets others
// compute when the guest has held its token long enough. Go cannot preempt the
// guest's code: unless it comes by here, timers do not fire and the garbage
// collector does not finish.
func (r *run) look() {
	r.meter.unseen = 0
	now := time.Now()
	if r.ctx.Err() != nil || r.timed && now.After(r.deadline) {
		r.kill(ContextExit(r.ctx))
	}
	if !r.token.count(now) {
		r.kill(&Exit{Kind: ExitCPU, Limit: keyCPU,
			Message: fmt.Sprintf("used up its computing time%s of %v", r.phase(), r.token.limit)})
	}
	r.checkGrace(now)
	if now.Sub(r.token.since) >= yieldAfter {
		r.wait(runtime.Gosched)
	}
}

// wait does something without the token.
func (r *run) wait(something func()) {
	r.token.release()
	something()
	r.resume()
}

// resume takes the token again after a wait.
func (r *run) resume() {
	if exit := r.acquire(); exit != nil {
		r.kill(exit)
	}
}

// acquire takes the token, unless the context ends first.
func (r *run) acquire() *Exit {
	err := r.token.acquire(r.ctx)
	switch {
	case r.ctx.Err() != nil:
		return ContextExit(r.ctx)
	case err != nil:
		return cancelled(err)
	}
	return nil
}
