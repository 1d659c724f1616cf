package registry

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// maxConcurrentChecks bounds the health checks in progress.
	maxConcurrentChecks = 32
	// describeEvery is how old a description may become.
	describeEvery = 10 * time.Minute
	// discoveredDelay is added to the interval of discovered swarms.
	discoveredDelay = 10 * time.Minute
	// writeEvery is the shortest interval of writes to the file.
	writeEvery = time.Minute
)

// unsaved is how much the file lacks. A changed state is worth a write; the time
// of the last answer alone is not.
type unsaved int

const (
	saved unsaved = iota
	timesChanged
	stateChanged
)

// changeLevel compares two states of an entry.
func changeLevel(was, is Entry) unsaved {
	same := was.Active == is.Active && was.Version == is.Version && was.Entrypoint == is.Entrypoint &&
		was.Description == is.Description && was.Public == is.Public && slices.Equal(was.Keywords, is.Keywords)
	if same {
		return timesChanged
	}
	return stateChanged
}

// Run checks the health of every swarm periodically, and its description now and
// then, until ctx ends. Checks are spread over the interval, at most 32 run at
// once, and none outlasts Run. A changed state is in the file after a minute, or
// when Run returns; the time of a last answer is written only then, or with the
// next change. Call it once.
func (r *Registry) Run(ctx context.Context) {
	defer r.write(timesChanged)
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	slots := make(chan struct{}, maxConcurrentChecks)
	var asked sync.WaitGroup
	defer asked.Wait()
	for ctx.Err() == nil {
		name, wait := r.schedule.next(time.Now(), r.names())
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-tick.C:
			r.write(stateChanged)
		case <-r.schedule.woken:
		case <-timer.C:
			if name != "" && acquireSlot(ctx, slots) {
				r.schedule.markBusy(name)
				asked.Go(func() {
					defer func() { <-slots }()
					r.checkOne(ctx, name)
				})
			}
		}
		timer.Stop()
	}
}

// acquireSlot waits for a slot or until ctx ends.
func acquireSlot(ctx context.Context, slots chan<- struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// checkOne checks one swarm, and its description if it was down, if its description
// is old, or if it forgets its tasks when it is started again.
func (r *Registry) checkOne(ctx context.Context, name string) {
	e, ok := r.Entry(name)
	var more time.Duration
	if e.Discovered {
		more = discoveredDelay
	}
	defer r.schedule.reschedule(name, more)
	if !ok {
		return
	}
	f := r.checkHealth(ctx, e, !e.Active || r.forgets(name) || r.schedule.descriptionStale(name))
	if ctx.Err() != nil {
		return
	}
	reported := true
	if _, ok := r.applyHealth(e, f); ok {
		reported = r.report(ctx, name, f)
	}
	if f.description != nil && reported { // else it is asked for at the next check
		r.schedule.markDescribed(name)
	}
}

func (r *Registry) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, len(r.entries))
	for i, e := range r.entries {
		names[i] = e.Name
	}
	return names
}

// write updates the file if it lacks at least that much. A failed write is tried again. A store has no health: each
// host checks for itself.
func (r *Registry) write(least unsaved) {
	if r.opt.Store != nil {
		return
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	if r.unsaved < least {
		return
	}
	if err := writeFile(r.opt.Path, r.Entries()); err != nil {
		r.opt.Logger.Warn("cannot write what is known of other swarms", "path", r.opt.Path, "err", err)
		return
	}
	r.unsaved = saved
}
