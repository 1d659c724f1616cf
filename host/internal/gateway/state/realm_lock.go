package state

import (
	"context"
	"sync"
)

// RealmLocks let one caller of a realm at a time work with the realm's records. The zero value is
// ready, and safe for concurrent use.
type RealmLocks struct {
	mu    sync.Mutex
	locks map[Key]*realmLock
}

// realmLock is full while it is held.
type realmLock struct {
	held  chan struct{}
	users int // that hold it or wait
}

// Acquire waits until no other caller has the lock of a key's realm, or ctx ends.
func (l *RealmLocks) Acquire(ctx context.Context, of Key) (release func(), err error) {
	of.Kind, of.Name = "", ""
	l.mu.Lock()
	lock := l.locks[of]
	if lock == nil {
		if l.locks == nil {
			l.locks = map[Key]*realmLock{}
		}
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
func (l *RealmLocks) leave(of Key, lock *realmLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lock.users--; lock.users == 0 {
		delete(l.locks, of)
	}
}
