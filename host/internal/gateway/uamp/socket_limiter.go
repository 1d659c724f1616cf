package uamp

import (
	"sync"

	"skep/host/internal/gateway"
)

// socketLimiter bounds the WebSockets of each realm.
type socketLimiter struct {
	each int

	mu      sync.Mutex
	byRealm map[socketOwner]int
	count   int
}

type socketOwner struct{ tenant, realm string }

func newSocketLimiter(each int) *socketLimiter {
	return &socketLimiter{each: each, byRealm: map[socketOwner]int{}}
}

// enter counts a socket, if its realm may have one more. leave must be called once.
func (l *socketLimiter) enter(c gateway.Caller) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := socketOwner{c.Principal.Tenant, c.Realm}
	if l.byRealm[of] >= l.each {
		return nil, false
	}
	l.byRealm[of]++
	l.count++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.count--
		if l.byRealm[of]--; l.byRealm[of] == 0 {
			delete(l.byRealm, of)
		}
	}, true
}

func (l *socketLimiter) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}
