package state

import (
	"context"
	"sync"
)

// Followers run one goroutine for each record, while the host runs. A record may have a value in
// memory, which is removed with its goroutine. It is safe for concurrent use.
type Followers[V any] struct {
	mu      sync.Mutex
	ctx     context.Context // of the run; nil before and after
	running map[Key]*follower
	values  map[Key]V
	all     sync.WaitGroup
}

// follower is the goroutine of one record. again is set when the record has changed while it
// ran.
type follower struct {
	stop  context.CancelFunc
	again bool
}

// NewFollowers returns followers that start nothing before [Followers.Open].
func NewFollowers[V any]() *Followers[V] {
	return &Followers[V]{running: map[Key]*follower{}, values: map[Key]V{}}
}

// Open lets goroutines start until ctx ends.
func (f *Followers[V]) Open(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx = ctx
}

// Wait starts no more goroutines, and waits until those that run have ended. The context of Open
// has ended before.
func (f *Followers[V]) Wait() {
	f.mu.Lock()
	f.ctx = nil
	f.mu.Unlock()
	f.all.Wait()
}

// Start calls follow for a record in its goroutine. Where one runs, it calls follow once more when
// that has returned. Before Open it does nothing: a run begins with all stored records.
func (f *Followers[V]) Start(key Key, follow func(context.Context, Key)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start(key, follow)
}

// StartWith is Start for a record with a value. The value is kept before Open, too.
func (f *Followers[V]) StartWith(key Key, value V, follow func(context.Context, Key)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[key] = value
	f.start(key, follow)
}

// Restart is Start that first ends the context of the call that runs.
func (f *Followers[V]) Restart(key Key, follow func(context.Context, Key)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own := f.running[key]; own != nil {
		own.stop()
	}
	f.start(key, follow)
}

// start starts the goroutine of a record, or has it run again. The mutex is held.
func (f *Followers[V]) start(key Key, follow func(context.Context, Key)) {
	if f.ctx == nil {
		return
	}
	if own := f.running[key]; own != nil {
		own.again = true
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
func (f *Followers[V]) begin(own *follower) (ctx context.Context) {
	ctx, own.stop = context.WithCancel(f.ctx)
	return ctx
}

// next returns a context for a follower whose record has changed, nil for one that ends.
func (f *Followers[V]) next(key Key, own *follower) context.Context {
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
	f.forget(key)
	return nil
}

// Stop ends the context of a record's goroutine, and removes its value.
func (f *Followers[V]) Stop(key Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own := f.running[key]; own != nil {
		own.stop()
		f.forget(key)
	}
}

// forget removes a follower with its value. The mutex is held.
func (f *Followers[V]) forget(key Key) {
	delete(f.running, key)
	delete(f.values, key)
}

// Value returns the value of a record, false without one.
func (f *Followers[V]) Value(key Key) (v V, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok = f.values[key]
	return v, ok
}
