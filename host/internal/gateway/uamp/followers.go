package uamp

import (
	"context"
	"sync"

	"skep/host/internal/gateway/state"
)

// followers are goroutines that go on with records while the host runs, one for each. It is
// safe for concurrent use.
type followers struct {
	mu      sync.Mutex
	ctx     context.Context // of Run; nil before and after
	running map[state.Key]*follower
	all     sync.WaitGroup
}

// follower is the goroutine of one record. again is set when the record has changed while it
// ran.
type follower struct {
	stop  context.CancelFunc
	again bool
}

func newFollowers() *followers { return &followers{running: map[state.Key]*follower{}} }

// open lets goroutines start until ctx ends.
func (f *followers) open(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx = ctx
}

// wait lets none start, and waits for the ends of those that run. Their context has ended.
func (f *followers) wait() {
	f.mu.Lock()
	f.ctx = nil
	f.mu.Unlock()
	f.all.Wait()
}

// start goes on with a record, from its begin where that is done already. Before Run it starts
// nothing: Run begins with all records that there are.
func (f *followers) start(key state.Key, follow func(context.Context, state.Key)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx == nil {
		return
	}
	if own := f.running[key]; own != nil {
		own.again = true
		own.stop()
		return
	}
	own := &follower{}
	ctx := f.begin(own)
	f.running[key] = own
	f.all.Go(func() {
		for ctx != nil {
			follow(ctx, key)
			ctx = f.next(key, own)
		}
	})
}

// begin returns a context for a follower. The mutex is held.
func (f *followers) begin(own *follower) (ctx context.Context) {
	ctx, own.stop = context.WithCancel(f.ctx)
	return ctx
}

// next returns a context for a follower whose record has changed, nil for one that ends.
func (f *followers) next(key state.Key, own *follower) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	own.stop()
	switch {
	case f.running[key] != own:
		return nil
	case own.again && f.ctx != nil:
		own.again = false
		return f.begin(own)
	}
	delete(f.running, key)
	return nil
}

// stop ends what goes on with a record.
func (f *followers) stop(key state.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own := f.running[key]; own != nil {
		own.stop()
		delete(f.running, key)
	}
}
