package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"skep/abi"
)

// Limits of a tenant's use of one server.
const (
	maxCalls       = 16                     // concurrent
	firstBackoff   = 100 * time.Millisecond // after the first failure; doubles with each further one
	maxBackoff     = time.Minute
	maxBackoffWait = time.Second // a call waits this long at most for the end of a backoff
)

// tenantSession holds the session of one tenant with a server.
type tenantSession struct {
	server *Server
	tenant string
	// opening is a lock for opening or checking the session; a channel, so that a wait can
	// be cancelled.
	opening chan struct{}
	slots   chan struct{}

	mu           sync.Mutex
	closed       bool
	session      *session
	active       int // calls
	idleTimer    *time.Timer
	failures     int // in a row
	backoffUntil time.Time
	lastFailure  string // text of the last failure
}

// beginCall counts a call and stops the idle timer.
func (st *tenantSession) beginCall() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.active++
	if st.idleTimer != nil {
		st.idleTimer.Stop()
		st.idleTimer = nil
	}
}

// endCall counts a call as ended and starts the idle timer after the last one.
func (st *tenantSession) endCall() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.active--; st.active == 0 && st.session != nil {
		st.idleTimer = time.AfterFunc(st.server.spec.IdleTimeout, func() { st.server.runBackground(st.expire) })
	}
}

// expire closes an idle session.
func (st *tenantSession) expire() {
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
		st.server.log.Debug("closed a session that nobody has used", "tenant", st.tenant)
	}
}

// acquireSlot waits until fewer than maxCalls calls run.
func (st *tenantSession) acquireSlot(ctx context.Context, tool string) *abi.Error {
	select {
	case st.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return st.server.contextError(ctx, tool)
	}
}

// checkedSession returns an open session with a fresh list of tools.
func (st *tenantSession) checkedSession(ctx context.Context) (*session, *abi.Error) {
	select {
	case st.opening <- struct{}{}:
		defer func() { <-st.opening }()
	case <-ctx.Done():
		return nil, st.server.contextError(ctx, "")
	}
	ses := st.liveSession()
	if ses != nil && ses.stale() {
		if fault := ses.refreshTools(ctx); fault != nil {
			st.dropSession(ses)
			ses = nil
		}
	}
	if ses != nil {
		return ses, nil
	}
	if fault := st.waitBackoff(ctx); fault != nil {
		return nil, fault
	}
	ses, fault := st.server.openSession(ctx, st.tenant)
	if fault != nil {
		if ctx.Err() == nil {
			st.recordFailure(strings.TrimPrefix(fault.Message, fmt.Sprintf("MCP server %q: ", st.server.spec.Name)))
		}
		return nil, fault
	}
	if !st.setSession(ses) {
		ses.close()
		return nil, st.server.fault(abi.CodeUnavailable, "closed", "it was closed meanwhile")
	}
	return ses, nil
}

// liveSession returns the session, unless there is none or it is broken.
func (st *tenantSession) liveSession() *session {
	st.mu.Lock()
	ses := st.session
	st.mu.Unlock()
	if ses == nil || !ses.conn.broken() {
		return ses
	}
	st.dropSession(ses)
	return nil
}

func (st *tenantSession) setSession(ses *session) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.closed {
		st.session = ses
	}
	return !st.closed
}

// dropSession ends a broken session. Only the first call for a session counts as a
// failure.
func (st *tenantSession) dropSession(ses *session) {
	st.mu.Lock()
	had := st.session == ses
	if had {
		st.session = nil
	}
	st.mu.Unlock()
	if !had {
		return
	}
	st.recordFailure(ses.conn.failureReason())
	st.server.log.Warn("a session broke", "tenant", st.tenant, "why", st.server.scrub.Text(ses.conn.failureReason()))
	st.server.runBackground(ses.close)
}

// recordFailure counts a failure and starts a backoff.
func (st *tenantSession) recordFailure(because string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	pause := min(maxBackoff, firstBackoff<<min(st.failures, 16))
	st.failures++
	st.backoffUntil, st.lastFailure = time.Now().Add(pause), because
}

// resetFailures ends the series of failures.
func (st *tenantSession) resetFailures() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.failures = 0
}

// waitBackoff waits for the end of a short backoff, and fails during a long one.
func (st *tenantSession) waitBackoff(ctx context.Context) *abi.Error {
	st.mu.Lock()
	left, because, n := time.Until(st.backoffUntil), st.lastFailure, st.failures
	st.mu.Unlock()
	switch {
	case left <= 0:
		return nil
	case left > maxBackoffWait:
		f := st.server.fault(abi.CodeUnavailable, "resting", "it has failed %d times in a row and is tried again in %v; the last failure: %s",
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
		return st.server.contextError(ctx, "")
	}
}

func (st *tenantSession) close() {
	st.mu.Lock()
	ses := st.session
	st.session, st.closed = nil, true
	if st.idleTimer != nil {
		st.idleTimer.Stop()
	}
	st.mu.Unlock()
	if ses != nil {
		ses.close()
	}
}

// contextError is the error of a call whose context is done.
func (s *Server) contextError(ctx context.Context, tool string) *abi.Error {
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
