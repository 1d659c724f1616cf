package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
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

// attempt makes a call once. After one that may have been carried out c is in doubt.
func (st *tenantSession) attempt(ctx context.Context, c *Call) (json.RawMessage, *callFailure) {
	ses, end := st.checkedSession(ctx, c.Wait)
	if end != nil {
		end.again = end.again && c.Wait
		return nil, end
	}
	if fault := ses.checkPin(*c); fault != nil {
		return nil, &callFailure{fault: fault}
	}
	repeatable := c.Repeatable || c.RepeatableByID && ses.findsRepeats
	if c.InDoubt && !repeatable {
		return nil, &callFailure{fault: st.server.toolFault(abi.CodeUnavailable, "in_doubt", c.Tool, "the host stopped before the answer came, and the request must not be sent twice; it may have been carried out; %s", c.whyOnce())}
	}
	answer, end := ses.call(ctx, *c)
	if end == nil {
		st.resetFailures()
		return answer, nil
	}
	switch {
	case end.broken:
		st.dropSession(ses)
	case end.lost, end.again:
		st.recordFailure(end.fault.Message, end.wait)
	}
	if end.fault.Code != abi.CodeUnavailable && !end.again {
		st.resetFailures()
	}
	end.again = end.again && repeatable || end.unsent || end.lost && repeatable
	if end.lost && !end.again {
		end.fault.Message += "; " + c.whyOnce()
	}
	c.InDoubt = c.InDoubt || end.lost && !end.unsent
	return nil, end
}

// whyOnce is why a call without an answer is not made again.
func (c *Call) whyOnce() string {
	if c.RepeatableByID {
		return "it is not made again: the server does not declare the capability " + IDMember + ", by which it would find the repeat, and [actions.NAME] does not have allow = { retry_in_doubt = true }"
	}
	return "it is not made again: no retry_in_doubt allows it"
}

// checkedSession returns an open session with a fresh list of tools. wait is [Call].Wait.
func (st *tenantSession) checkedSession(ctx context.Context, wait bool) (*session, *callFailure) {
	for {
		ses, end := st.refreshOrOpen(ctx)
		if ses != nil || end != nil {
			return ses, end
		}
		if fault := st.waitBackoff(ctx, wait); fault != nil {
			return nil, &callFailure{fault: fault}
		}
	}
}

// refreshOrOpen is checkedSession of one attempt, without a result during a backoff.
func (st *tenantSession) refreshOrOpen(ctx context.Context) (*session, *callFailure) {
	select {
	case st.opening <- struct{}{}:
		defer func() { <-st.opening }()
	case <-ctx.Done():
		return nil, &callFailure{fault: st.server.contextError(ctx, "")}
	}
	ses := st.liveSession()
	if ses != nil && ses.stale() {
		if fault := ses.refreshTools(ctx); fault != nil {
			st.dropSession(ses)
			ses = nil
		}
	}
	if left, _, _ := st.backoff(); ses != nil || left > 0 {
		return ses, nil
	}
	ses, end := st.server.openSession(ctx, st.tenant)
	if end != nil {
		if ctx.Err() == nil {
			st.recordFailure(strings.TrimPrefix(end.fault.Message, fmt.Sprintf("MCP server %q: ", st.server.spec.Name)), end.wait)
		}
		return nil, end
	}
	if !st.setSession(ses) {
		ses.close()
		return nil, &callFailure{fault: st.server.fault(abi.CodeUnavailable, "closed", "it was closed meanwhile")}
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
	st.recordFailure(ses.conn.failureReason(), 0)
	st.server.log.Warn("a session broke", "tenant", st.tenant, "why", turn.Output(st.server.scrub.Text(ses.conn.failureReason())))
	st.server.runBackground(ses.close)
}

// recordFailure counts a failure and starts a backoff of at least wait. Failures of calls that
// ran beside each other count once.
func (st *tenantSession) recordFailure(because string, wait time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lastFailure = because
	if time.Now().Before(st.backoffUntil) {
		return
	}
	pause := max(firstBackoff<<min(st.failures, 16), wait)
	st.failures++
	st.backoffUntil = time.Now().Add(min(pause, maxBackoff))
}

// resetFailures ends the series of failures.
func (st *tenantSession) resetFailures() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.failures = 0
}

// backoff returns how long it lasts, and after which failures.
func (st *tenantSession) backoff() (left time.Duration, because string, failures int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return time.Until(st.backoffUntil), st.lastFailure, st.failures
}

// waitBackoff waits for the end of a short backoff, and fails during a long one: one of more than
// maxBackoffWait, for a call that waits one that does not end in its time.
func (st *tenantSession) waitBackoff(ctx context.Context, wait bool) *abi.Error {
	left, because, n := st.backoff()
	most := maxBackoffWait
	if wait {
		most = maxBackoff
		if end, ok := ctx.Deadline(); ok {
			most = time.Until(end)
		}
	}
	if left > most {
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
