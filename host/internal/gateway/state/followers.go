package state

import (
	"context"
	"sync"
)

// Followers are goroutines that go on with records while a host runs, one for each, which may have
// a value that is forgotten with its goroutine. It is safe for concurrent use.
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

// Wait lets none start, and waits for the ends of those that run. Their context has ended.
func (f *Followers[V]) Wait() {
	f.mu.Lock()
	f.ctx = nil
	f.mu.Unlock()
	f.all.Wait()
}

// Start goes on with a record, and once more after that where it is done already. It starts
// nothing before Open: the run begins with all records that there are.
func (f *Followers[V]) Start(key Key, follow func(context.Context, Key)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start(key, follow)
}

// StartWith is Start for a record with a value, which stands before Open as well.
func (f *Followers[V]) StartWith(key Key, value V, follow func(context.Context, Key)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[key] = value
	f.start(key, follow)
}

// Restart is Start for a record with which is gone on from its begin: what goes on with it is
// ended first.
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

// Stop ends what goes on with a record.
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

// Value is the value of a record that is followed.
func (f *Followers[V]) Value(key Key) (v V, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok = f.values[key]
	return v, ok
}
