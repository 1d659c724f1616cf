package amp

import (
	"context"
	"sync"

	"skep/host/internal/gateway/state"
)

// realmLocks let one caller of a realm at a time work with the realm's records. They are safe for
// concurrent use.
type realmLocks struct {
	mu    sync.Mutex
	locks map[state.Key]*realmLock
}

// realmLock is full while it is held.
type realmLock struct {
	held  chan struct{}
	users int // that hold it or wait
}

func newRealmLocks() *realmLocks { return &realmLocks{locks: map[state.Key]*realmLock{}} }

// acquire waits until no other caller has the lock of a key's realm, or ctx ends.
func (l *realmLocks) acquire(ctx context.Context, of state.Key) (release func(), err error) {
	of.Kind, of.Name = "", ""
	l.mu.Lock()
	lock := l.locks[of]
	if lock == nil {
		lock = &realmLock{held: make(chan struct{}, 1)}
		l.locks[of] = lock
	}
	lock.users++
	l.mu.Unlock()
	select {
	case lock.held <- struct{}{}:
		return func() {
			<-lock.held
			l.leave(of, lock)
		}, nil
	case <-ctx.Done():
		l.leave(of, lock)
		return nil, context.Cause(ctx)
	}
}

// leave forgets a lock that is neither held nor waited for.
func (l *realmLocks) leave(of state.Key, lock *realmLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lock.users--; lock.users == 0 {
		delete(l.locks, of)
	}
}
