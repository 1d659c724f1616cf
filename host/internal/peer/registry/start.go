package registry

import (
	"context"
	"time"
)

// Bounds of the start that a swarm reports: maxUptime of the uptime, and startJitter of
// its error, which comes from the time of the request and both clocks.
const (
	maxUptime   = 10 * 365 * 24 * time.Hour
	startJitter = 5 * time.Second
)

// report calls the hooks of the registry with the result of a health check. It returns
// false for a start that has to be reported again.
func (r *Registry) report(ctx context.Context, name string, f healthResult) (done bool) {
	if f.err != nil {
		return true
	}
	if r.opt.OnUp != nil {
		r.opt.OnUp(name)
	}
	at, ok := f.started()
	if !ok || r.opt.OnStart == nil || !at.After(r.startOf(name).Add(startJitter)) {
		return true
	}
	if err := r.opt.OnStart(ctx, name, at); err != nil {
		r.opt.Logger.Error("a swarm was started again, and tasks that wait for it are not told", "swarm", name, "err", err)
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts[name] = at
	return true
}

// started returns when a swarm that keeps its tasks in memory was started, by its
// uptime: not after that. ok is false for any other, and for one that was not asked.
func (f healthResult) started() (at time.Time, ok bool) {
	d := f.description
	if d == nil || d.Published != "" || d.Uptime <= 0 || d.Uptime > maxUptime.Seconds() {
		return time.Time{}, false
	}
	return f.began.Add(-time.Duration(d.Uptime * float64(time.Second))), true
}

func (r *Registry) startOf(name string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts[name]
}

// forgets reports whether a swarm keeps its tasks in memory.
func (r *Registry) forgets(name string) bool { return !r.startOf(name).IsZero() }
