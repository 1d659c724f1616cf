package mcp

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
)

// sessions are the open sessions of older clients. One caller may have a quarter of the
// places, and neither he nor, where there are several, his tenant more than are left for
// all others. Who may have no more loses the session that was not used for longest.
type sessions struct {
	max, each int
	// shared is set where there are several tenants.
	shared bool
	idle   time.Duration

	mu   sync.Mutex
	byID map[string]*session
	// places count the sessions, with those that are being opened, by principal and by
	// tenant.
	places, tenants map[string]int
	taken           int
	// closing are the ends of sessions that wait for running calls.
	closing sync.WaitGroup
}

// maxCalls bounds the calls of a session that run at once: in older versions of the
// protocol a call goes on when the request that brought it ends.
const maxCalls = 32

// session belongs to the principal that opened it.
type session struct {
	id, owner, tenant string
	all               *sessions
	connected         *mcp.ServerSession
	ctx               context.Context
	cancel            context.CancelCauseFunc
	// requests and calls are running, used is when a request began or ended, recheck is of
	// the newest request's credential, the renewals-th after the first. all.mu guards them.
	requests, calls int
	used            time.Time
	recheck         func(context.Context) bool
	renewals        int
}

// slot is a place for a session that is being opened. Its request may end before.
type slot struct {
	all      *sessions
	caller   gateway.Caller
	opened   *session
	released bool
}

func newSessions(most int, shared bool, idle time.Duration) *sessions {
	return &sessions{
		max: most, each: max(1, most/4), shared: shared, idle: idle,
		byID: map[string]*session{}, places: map[string]int{}, tenants: map[string]int{},
	}
}

func (all *sessions) count() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.byID)
}

// reserve takes a place for a new session. If the caller may have no more, an unused one
// of his ends; if his tenant may not, or none is left, one of the principal who has the most.
func (all *sessions) reserve(c gateway.Caller) (*slot, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	owner, tenant, free := principal(c), c.Principal.Tenant, all.max-all.taken
	own, ofTenant := all.places[owner], all.tenants[tenant]
	ok := all.max > 0
	switch {
	case own > 0 && own >= min(all.each, free):
		ok = all.evict(func(s *session) bool { return s.owner == owner })
	case all.shared && ofTenant > 0 && ofTenant >= free:
		ok = all.evict(func(s *session) bool { return s.tenant == tenant })
	case free == 0:
		ok = ok && all.evict(func(*session) bool { return true })
	}
	if !ok {
		return nil, false
	}
	all.taken++
	all.places[owner]++
	all.tenants[tenant]++
	return &slot{all: all, caller: c}, true
}

// evict ends an unused session among some: of the tenant with the most, there of the
// principal with the most, and of his the one that was not used for longest. all.mu is held.
func (all *sessions) evict(among func(*session) bool) bool {
	var worst *session
	for _, s := range all.byID {
		if among(s) && s.requests+s.calls == 0 && (worst == nil || all.goesBefore(s, worst)) {
			worst = s
		}
	}
	if worst == nil {
		return false
	}
	worst.drop(errSessionOver)
	return true
}

func (all *sessions) goesBefore(s, other *session) bool {
	return cmp.Or(
		cmp.Compare(all.tenants[other.tenant], all.tenants[s.tenant]), cmp.Compare(all.places[other.owner], all.places[s.owner]), s.used.Compare(other.used),
	) < 0
}

// leave gives a place back. all.mu is held.
func (all *sessions) leave(owner, tenant string) {
	all.taken--
	if all.places[owner]--; all.places[owner] == 0 {
		delete(all.places, owner)
	}
	if all.tenants[tenant]--; all.tenants[tenant] == 0 {
		delete(all.tenants, tenant)
	}
}

// open makes the session that was initialized the caller's. One whose request has ended
// before is closed: its client does not learn its id.
func (p *slot) open(connected *mcp.ServerSession) (*session, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &session{
		id: connected.ID(), owner: principal(p.caller), tenant: p.caller.Principal.Tenant, all: p.all, connected: connected,
		ctx: ctx, cancel: cancel, requests: 1, used: time.Now(), recheck: p.caller.Recheck,
	}
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	if p.released {
		cancel(errSessionOver)
		go func() { _ = connected.Close() }() // it waits for this call
		return nil, errSessionOver
	}
	p.opened = s
	p.all.byID[s.id] = s
	return s, nil
}

// release ends the request that took the slot, and gives the place back if no session
// was opened.
func (p *slot) release() {
	p.all.mu.Lock()
	s := p.opened
	p.released = true
	if s == nil {
		p.all.leave(principal(p.caller), p.caller.Principal.Tenant)
	}
	p.all.mu.Unlock()
	if s != nil {
		s.release()
	}
}

// acquire finds a session of a caller for a request. From now on the session ends with
// his newest credential: clients renew theirs.
func (all *sessions) acquire(id string, c gateway.Caller) (*session, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s, ok := all.byID[id]
	if !ok || s.owner != principal(c) {
		return nil, false
	}
	s.requests++
	s.renewals++
	s.used, s.recheck = time.Now(), c.Recheck
	return s, true
}

// beginCall counts a call in; ok is false when too many run.
func (s *session) beginCall() (end func(), ok bool) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.calls >= maxCalls {
		return nil, false
	}
	s.calls++
	return func() {
		s.all.mu.Lock()
		defer s.all.mu.Unlock()
		s.calls--
		s.used = time.Now()
	}, true
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
	s.all.leave(s.owner, s.tenant)
	s.cancel(cause)
	s.all.closing.Go(func() { _ = s.connected.Close() })
}

// reap ends the sessions that are unused since before.
func (all *sessions) reap(before time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.byID {
		if s.requests+s.calls == 0 && s.used.Before(before) {
			s.drop(errSessionOver)
		}
	}
}

// recheckPause is the pause between two looks whether the credentials of sessions hold.
const recheckPause = 15 * time.Second

// recheck ends the sessions whose credentials hold no more.
func (all *sessions) recheck(ctx context.Context) {
	for _, c := range all.checks() {
		if !c.holds(ctx) {
			all.endUnrenewed(c)
		}
	}
}

// check is of a session's credential as it was after so many renewals.
type check struct {
	of       *session
	renewals int
	holds    func(context.Context) bool
}

// checks are the checks of all sessions that have one: some ask a server, and run
// without the lock.
func (all *sessions) checks() (checks []check) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.byID {
		if s.recheck != nil {
			checks = append(checks, check{s, s.renewals, s.recheck})
		}
	}
	return checks
}

// endUnrenewed ends the session of a check that failed, unless a request has brought
// another credential meanwhile.
func (all *sessions) endUnrenewed(c check) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if c.of.renewals == c.renewals {
		c.of.drop(errRevoked)
	}
}

// run reaps and rechecks until ctx ends, then ends all sessions.
func (all *sessions) run(ctx context.Context) {
	var rechecking sync.WaitGroup
	rechecking.Go(func() { each(ctx, recheckPause, func(time.Time) { all.recheck(ctx) }) })
	each(ctx, max(all.idle/4, time.Millisecond), func(now time.Time) { all.reap(now.Add(-all.idle)) })
	rechecking.Wait()
	all.mu.Lock()
	all.max, all.each = 0, 0
	for _, s := range all.byID {
		s.drop(gateway.ErrDraining)
	}
	all.mu.Unlock()
	all.closing.Wait()
}

// each calls f after each pause until ctx ends.
func each(ctx context.Context, pause time.Duration, f func(now time.Time)) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			f(now)
		case <-ctx.Done():
			return
		}
	}
}
