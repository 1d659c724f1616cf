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
	key     string
	granted int64 // handed to the guest's slice so far
	host    int64 // taken by imports
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
func (r *run) charge(bytes uint64) {
	if !r.meter.take(r.slice, importCost+int64(bytes/bytesPerUnit)) {
		r.killFuel()
	}
}

func (r *run) killFuel() {
	what := "fuel"
	if r.starting {
		what = "fuel of the start"
	}
	r.kill(&Exit{Kind: ExitFuel, Limit: r.meter.key,
		Message: fmt.Sprintf("used up its %s of %d units", what, r.meter.limit)})
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
	now := time.Now()
	if r.ctx.Err() != nil || r.timed && now.After(r.deadline) {
		r.kill(contextExit(r.ctx))
	}
	if !r.token.count(now) {
		r.kill(&Exit{Kind: ExitCPU, Limit: r.token.key,
			Message: fmt.Sprintf("used up its computing time of %v", r.token.limit)})
	}
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
		return contextExit(r.ctx)
	case err != nil:
		return cancelled(err)
	}
	return nil
}
