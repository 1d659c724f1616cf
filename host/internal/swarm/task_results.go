package swarm

import (
	"slices"

	"skep/abi"
)

// Results answer the calls that a paused task waits for.
type Results struct {
	// Caller names the waiting agent; empty for any.
	Caller string
	// One answers a single call. Each answers several, by their ids.
	One  *string
	Each []CallResult
}

// CallResult is the answer to one call.
type CallResult struct {
	Call, Content string
	// Missing marks a call that gets no result.
	Missing bool `json:",omitempty"`
}

// pendingCall is a call that waits for a person, here or at another swarm.
type pendingCall struct{ id, agent string }

// pendingCalls are the calls that wait for an answer.
func (t Task) pendingCalls() (calls []pendingCall) {
	for _, b := range t.Breakpoints {
		for _, a := range b.Calls {
			if a.Result == nil {
				calls = append(calls, pendingCall{a.ID, b.Agent})
			}
		}
	}
	for _, a := range t.PeerCalls {
		calls = append(calls, pendingCall{a.ID, a.Agent})
	}
	return calls
}

// answersAny reports whether one of the results is for one of the calls.
func (p Results) answersAny(calls []pendingCall) bool {
	return slices.ContainsFunc(calls, func(c pendingCall) bool { return p.covers(c.id) })
}

// checkTask refuses results that do not fit the task's pending calls.
func (p Results) checkTask(t Task) error {
	calls := t.pendingCalls()
	size := 0
	if p.One != nil {
		size = len(*p.One)
	}
	for _, one := range p.Each {
		size += len(one.Content)
	}
	waits := func(c pendingCall) bool { return c.agent == p.Caller }
	switch {
	case t.State != StatePaused || len(calls) == 0:
		return refuse(ErrInvalid, "task '%s' has no pending breakpoint tool calls", t.Key.Task)
	case p.Caller != "" && !slices.ContainsFunc(calls, waits):
		return refuse(ErrInvalid, "agent '%s' has no pending breakpoint tool calls in task '%s'", p.Caller, t.Key.Task)
	case p.One != nil && len(calls) > 1:
		return refuse(ErrInvalid, "task '%s' waits for %d breakpoint tool calls; give an array of objects with call_id and content", t.Key.Task, len(calls))
	case !p.answersAny(calls):
		return refuse(ErrInvalid, "none of the results is for a pending breakpoint tool call of task '%s'", t.Key.Task)
	case size > MaxBreakpointBytes:
		return refuse(ErrInvalid, "the results have %d bytes, at most %d", size, MaxBreakpointBytes)
	}
	return nil
}

// covers reports whether the results decide a call.
func (p Results) covers(id string) bool {
	return p.One != nil || slices.ContainsFunc(p.Each, func(r CallResult) bool { return r.Call == id })
}

// contentOf returns the answer to a call.
func (p Results) contentOf(id string) (string, bool) {
	if p.One != nil {
		return *p.One, true
	}
	i := slices.IndexFunc(p.Each, func(r CallResult) bool { return r.Call == id })
	if i < 0 || p.Each[i].Missing {
		return "", false
	}
	return p.Each[i].Content, true
}

// resumeTask lets a paused task run on with a person's answers; a call without one
// fails. It returns the row of the turn that goes on, or a new number when the turn is
// another swarm's.
func (mut *mutationBuilder) resumeTask(results Results) (row int64) {
	if len(mut.Task.Breakpoints) > 0 {
		row = mut.Task.Breakpoints[0].Row
	} else {
		row = mut.nextNumber()
	}
	mut.applyResults(results, func(string) bool { return true })
	mut.Task.State = StateRunning
	mut.restoreStash()
	return row
}

// applyResults gives results to the pending calls that which selects.
func (mut *mutationBuilder) applyResults(results Results, which func(id string) bool) {
	for i := range mut.Task.Breakpoints {
		b := &mut.Task.Breakpoints[i]
		b.Calls = slices.Clone(b.Calls)
		for k := range b.Calls {
			if b.Calls[k].Result == nil && which(b.Calls[k].ID) {
				b.Calls[k].Result = mut.resultOf(b.Agent, b.Calls[k], results)
			}
		}
	}
	mut.sendPeerResults(results, which)
}

// answerCalls gives results to the calls that they are for. The task runs on when no call
// waits any more.
func (mut *mutationBuilder) answerCalls(results Results) {
	mut.applyResults(results, results.covers)
	if len(mut.Task.pendingCalls()) > 0 {
		return
	}
	mut.Task.State = StateRunning
	mut.restoreStash()
	mut.resetDeadline()
}

func (mut *mutationBuilder) resultOf(agent string, a BreakpointCall, results Results) *BreakpointResult {
	text, ok := results.contentOf(a.ID)
	if !ok {
		return &BreakpointResult{Code: abi.CodeUnavailable, Reason: "no_result", Message: "the task was resumed without a result of this call", Time: mut.now}
	}
	mut.logResult(agent, a.ID, text)
	return &BreakpointResult{Text: text, Time: mut.now}
}

// logResult logs a person's answer to a call.
func (mut *mutationBuilder) logResult(agent, id, text string) {
	mut.logEvent("breakpoint_action_complete", "breakpoint action complete (caller = "+agent+"):\n"+text,
		map[string]any{"caller": agent, "tool_call_id": id})
}
