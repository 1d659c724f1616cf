package mcpclient

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"skep/abi"
)

// Bounds of a tenant's use of one server.
const (
	maxCalls  = 16                     // at once
	firstRest = 100 * time.Millisecond // after a session that broke, doubled with each
	longRest  = time.Minute
	waitsRest = time.Second // a call waits for a rest that is no longer
)

// seat is where a tenant's session with a server is.
type seat struct {
	s      *Server
	tenant string
	// turnstile is held by who opens or checks the session.
	turnstile chan struct{}
	slots     chan struct{}

	mu       sync.Mutex
	closed   bool
	session  *session
	active   int // calls
	idle     *time.Timer
	failures int // in a row
	rest     time.Time
	because  string // of the last failure
}

// begin counts a call in.
func (st *seat) begin() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.active++
	if st.idle != nil {
		st.idle.Stop()
		st.idle = nil
	}
}

// end counts a call out.
func (st *seat) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.active--; st.active == 0 && st.session != nil {
		st.idle = time.AfterFunc(st.s.spec.Idle, func() { st.s.later(st.expire) })
	}
}

// expire closes a session that nobody uses.
func (st *seat) expire() {
	st.mu.Lock()
	ses := st.session
	if st.active > 0 {
		ses = nil
	}
	if ses != nil {
		st.session = nil
	}
	st.mu.Unlock()
	if ses != nil {
		ses.close()
		st.s.log.Debug("closed a session that nobody has used", "tenant", st.tenant)
	}
}

// slot waits until fewer calls run than may.
func (st *seat) slot(ctx context.Context, tool string) *abi.Error {
	select {
	case st.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return st.s.ended(ctx, tool)
	}
}

// ready returns a session that was checked not long ago.
func (st *seat) ready(ctx context.Context) (*session, *abi.Error) {
	select {
	case st.turnstile <- struct{}{}:
		defer func() { <-st.turnstile }()
	case <-ctx.Done():
		return nil, st.s.ended(ctx, "")
	}
	ses := st.living()
	if ses != nil && ses.stale() {
		if fault := ses.check(ctx); fault != nil {
			st.drop(ses)
			ses = nil
		}
	}
	if ses != nil {
		return ses, nil
	}
	if fault := st.rested(ctx); fault != nil {
		return nil, fault
	}
	ses, fault := st.s.open(ctx, st.tenant)
	if fault != nil {
		if ctx.Err() == nil {
			st.failed(strings.TrimPrefix(fault.Message, fmt.Sprintf("MCP server %q: ", st.s.spec.Name)))
		}
		return nil, fault
	}
	if !st.put(ses) {
		ses.close()
		return nil, st.s.fault(abi.CodeUnavailable, "closed", "it was closed meanwhile")
	}
	return ses, nil
}

// living is the session, if there is one that has not broken.
func (st *seat) living() *session {
	st.mu.Lock()
	ses := st.session
	st.mu.Unlock()
	if ses == nil || !ses.wire.broken() {
		return ses
	}
	st.drop(ses)
	return nil
}

func (st *seat) put(ses *session) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.closed {
		st.session = ses
	}
	return !st.closed
}

// drop ends a session that broke. Only the first who tells of it counts.
func (st *seat) drop(ses *session) {
	st.mu.Lock()
	had := st.session == ses
	if had {
		st.session = nil
	}
	st.mu.Unlock()
	if !had {
		return
	}
	st.failed(ses.wire.reason())
	st.s.log.Warn("a session broke", "tenant", st.tenant, "why", st.s.scrub.Text(ses.wire.reason()))
	st.s.later(ses.close)
}

// failed counts a failure, which lets the server rest.
func (st *seat) failed(because string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	pause := min(longRest, firstRest<<min(st.failures, 16))
	st.failures++
	st.rest, st.because = time.Now().Add(pause), because
}

// well ends the failures in a row: the server has answered.
func (st *seat) well() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.failures = 0
}

// rested waits for the end of a short rest, and refuses during a long one.
func (st *seat) rested(ctx context.Context) *abi.Error {
	st.mu.Lock()
	left, because, n := time.Until(st.rest), st.because, st.failures
	st.mu.Unlock()
	switch {
	case left <= 0:
		return nil
	case left > waitsRest:
		f := st.s.fault(abi.CodeUnavailable, "resting", "it has failed %d times in a row and is tried again in %v; the last failure: %s",
			n, left.Round(time.Second), because)
		f.RetryAfterMS = left.Milliseconds()
		return f
	}
	late := time.NewTimer(left)
	defer late.Stop()
	select {
	case <-late.C:
		return nil
	case <-ctx.Done():
		return st.s.ended(ctx, "")
	}
}

func (st *seat) close() {
	st.mu.Lock()
	ses := st.session
	st.session, st.closed = nil, true
	if st.idle != nil {
		st.idle.Stop()
	}
	st.mu.Unlock()
	if ses != nil {
		ses.close()
	}
}

// ended is the error of a call whose time is over.
func (s *Server) ended(ctx context.Context, tool string) *abi.Error {
	code, reason := abi.CodeCancelled, "cancelled"
	text := "the call was called off"
	if context.Cause(ctx) == context.DeadlineExceeded || ctx.Err() == context.DeadlineExceeded {
		code, reason, text = abi.CodeDeadline, "timeout", "no answer came in time; [actions.NAME] timeout says how long a call may take"
	}
	if tool == "" {
		return s.fault(code, reason, "%s", text)
	}
	return s.toolFault(code, reason, tool, "%s", text)
}
