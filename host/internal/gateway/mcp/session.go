package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
)

// sessions are the open sessions of older clients. One caller may have a quarter of the
// places; a caller without a free one loses the session that he has not used for longest.
type sessions struct {
	max, each int
	idle      time.Duration

	mu     sync.Mutex
	byID   map[string]*session
	places map[string]int // by principal, with those that are being opened
	taken  int
	// closing are the ends of sessions that wait for running calls.
	closing sync.WaitGroup
}

// session belongs to the principal that opened it.
type session struct {
	id, owner string
	all       *sessions
	connected *mcp.ServerSession
	ctx       context.Context
	cancel    context.CancelCauseFunc
	// requests are running, used is when one began or ended. all.mu guards both.
	requests int
	used     time.Time
}

// slot is a place for a session that is being opened.
type slot struct {
	all    *sessions
	caller gateway.Caller
	opened *session
}

func newSessions(most int, idle time.Duration) *sessions {
	return &sessions{max: most, each: max(1, most/4), idle: idle, byID: map[string]*session{}, places: map[string]int{}}
}

func (all *sessions) count() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.byID)
}

// reserve takes a place for a new session. If there is none, an unused session of the
// same caller ends, or of the caller with the most.
func (all *sessions) reserve(c gateway.Caller) (*slot, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	owner := principal(c)
	switch {
	case all.places[owner] >= all.each:
		if !all.evict(owner) {
			return nil, false
		}
	case all.taken >= all.max:
		if !all.evict(all.greediest()) {
			return nil, false
		}
	}
	all.taken++
	all.places[owner]++
	return &slot{all: all, caller: c}, true
}

// greediest is the principal with the most places. all.mu is held.
func (all *sessions) greediest() (most string) {
	for owner, n := range all.places {
		if n > all.places[most] || n == all.places[most] && owner < most {
			most = owner
		}
	}
	return most
}

// evict ends the session of an owner that was not used for longest. all.mu is held.
func (all *sessions) evict(owner string) bool {
	var oldest *session
	for _, s := range all.byID {
		if s.owner == owner && s.requests == 0 && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	oldest.drop(errSessionOver)
	return true
}

// leave gives a place back. all.mu is held.
func (all *sessions) leave(owner string) {
	all.taken--
	if all.places[owner]--; all.places[owner] == 0 {
		delete(all.places, owner)
	}
}

// open makes the session that was initialized the caller's.
func (p *slot) open(connected *mcp.ServerSession) *session {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &session{
		id: connected.ID(), owner: principal(p.caller), all: p.all, connected: connected,
		ctx: ctx, cancel: cancel, requests: 1, used: time.Now(),
	}
	p.all.mu.Lock()
	p.opened = s
	p.all.byID[s.id] = s
	p.all.mu.Unlock()
	if p.caller.Ended != nil {
		p.all.closing.Go(func() {
			select {
			case <-p.caller.Ended:
				s.end(errRevoked)
			case <-ctx.Done():
			}
		})
	}
	return s
}

// release ends the request that took the slot, and gives the place back if no session
// was opened.
func (p *slot) release() {
	p.all.mu.Lock()
	s := p.opened
	if s == nil {
		p.all.leave(principal(p.caller))
	}
	p.all.mu.Unlock()
	if s != nil {
		s.release()
	}
}

// acquire finds a session of an owner for a request.
func (all *sessions) acquire(id, owner string) (*session, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s, ok := all.byID[id]
	if !ok || s.owner != owner {
		return nil, false
	}
	s.requests++
	s.used = time.Now()
	return s, true
}

func (s *session) release() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.requests--
	s.used = time.Now()
}

// end ends a session and its running calls.
func (s *session) end(cause error) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.drop(cause)
}

// drop forgets a session and closes it, which waits for its calls. all.mu is held.
func (s *session) drop(cause error) {
	if _, ok := s.all.byID[s.id]; !ok {
		return
	}
	delete(s.all.byID, s.id)
	s.all.leave(s.owner)
	s.cancel(cause)
	s.all.closing.Go(func() { _ = s.connected.Close() })
}

// reap ends the sessions that are unused since before.
func (all *sessions) reap(before time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.byID {
		if s.requests == 0 && s.used.Before(before) {
			s.drop(errSessionOver)
		}
	}
}

// run reaps until ctx ends, then ends all sessions.
func (all *sessions) run(ctx context.Context) {
	tick := time.NewTicker(max(all.idle/4, time.Millisecond))
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case now := <-tick.C:
			all.reap(now.Add(-all.idle))
		case <-ctx.Done():
		}
	}
	all.mu.Lock()
	all.max, all.each = 0, 0
	for _, s := range all.byID {
		s.drop(gateway.ErrDraining)
	}
	all.mu.Unlock()
	all.closing.Wait()
}
