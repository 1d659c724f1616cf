package registry

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// maxAsked is how many swarms are asked at once.
	maxAsked = 32
	// describeEvery is how old what a swarm says of itself becomes.
	describeEvery = 10 * time.Minute
	// foundLater is how much less often those are asked that nobody vouches for.
	foundLater = 10 * time.Minute
	// writeEvery is how often what was learnt is written, at most.
	writeEvery = time.Minute
)

// unsaved is how much the file lacks: a flip is worth a write of its own, the
// time of the last answer is not.
type unsaved int

const (
	saved unsaved = iota
	times
	flips
)

// change says how much of an entry has changed.
func change(was, is Entry) unsaved {
	same := was.Active == is.Active && was.Version == is.Version && was.Entrypoint == is.Entrypoint &&
		was.Description == is.Description && was.Public == is.Public && slices.Equal(was.Keywords, is.Keywords)
	if same {
		return times
	}
	return flips
}

// Run asks every swarm from time to time whether it is well, and at times what it
// is, until ctx ends. The questions are spread over the time, at most 32 are
// under way, and none outlasts Run. What it learns is in the file after a minute,
// at the latest when Run returns; when a swarm last answered only then, or with
// the next change. It is to be called once.
func (r *Registry) Run(ctx context.Context) {
	defer r.write(times)
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	slots := make(chan struct{}, maxAsked)
	var asked sync.WaitGroup
	defer asked.Wait()
	for ctx.Err() == nil {
		name, wait := r.due.next(time.Now(), r.names())
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-tick.C:
			r.write(flips)
		case <-r.due.woken:
		case <-timer.C:
			if name != "" && take(ctx, slots) {
				r.due.begin(name)
				asked.Go(func() {
					defer func() { <-slots }()
					r.visit(ctx, name)
				})
			}
		}
		timer.Stop()
	}
}

// take waits for a slot, unless ctx ends.
func take(ctx context.Context, slots chan<- struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// visit asks one swarm. One that has come back is asked what it is.
func (r *Registry) visit(ctx context.Context, name string) {
	e, ok := r.Entry(name)
	var more time.Duration
	if e.Found {
		more = foundLater
	}
	defer r.due.end(name, more)
	if !ok {
		return
	}
	f := r.ask(ctx, e, !e.Active || r.due.stale(name))
	if ctx.Err() != nil {
		return
	}
	r.note(e, f)
	if f.said != nil {
		r.due.described(name)
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

// write brings the file up to date if it lacks as much. What cannot be written is
// tried again.
func (r *Registry) write(least unsaved) {
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
