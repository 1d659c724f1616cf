package swarm

import (
	"slices"

	"skep/abi"
)

// Results answer the calls for which a paused task waits.
type Results struct {
	// Caller names the agent that waits; empty for whichever it is.
	Caller string
	// One answers the only call there is. Each answers several, by their ids.
	One  *string
	Each []CallResult
}

// CallResult is the answer to one call.
type CallResult struct {
	Call, Content string
	// Missing says that nobody gives the call a result.
	Missing bool `json:",omitempty"`
}

// pendingCall is a call that waits for a person, here or at another swarm.
type pendingCall struct{ id, agent string }

// pendingCalls are the calls that wait for an answer.
func (t Task) pendingCalls() (calls []pendingCall) {
	for _, b := range t.Breakpoints {
		for _, a := range b.Asks {
			if a.Told == nil {
				calls = append(calls, pendingCall{a.ID, b.Agent})
			}
		}
	}
	for _, a := range t.PeerAsks {
		calls = append(calls, pendingCall{a.ID, a.Agent})
	}
	return calls
}

// answers reports whether one of the results is for one of the calls.
func (p Results) answers(calls []pendingCall) bool {
	return slices.ContainsFunc(calls, func(c pendingCall) bool { return p.named(c.id) })
}

// check says why results do not fit what the task waits for.
func (p Results) check(t Task) error {
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
	case !p.answers(calls):
		return refuse(ErrInvalid, "none of the results is for a pending breakpoint tool call of task '%s'", t.Key.Task)
	case size > MaxAsked:
		return refuse(ErrInvalid, "the results have %d bytes, at most %d", size, MaxAsked)
	}
	return nil
}

// named reports whether the results say what becomes of a call.
func (p Results) named(id string) bool {
	return p.One != nil || slices.ContainsFunc(p.Each, func(r CallResult) bool { return r.Call == id })
}

// find returns the answer to a call.
func (p Results) find(id string) (string, bool) {
	if p.One != nil {
		return *p.One, true
	}
	i := slices.IndexFunc(p.Each, func(r CallResult) bool { return r.Call == id })
	if i < 0 || p.Each[i].Missing {
		return "", false
	}
	return p.Each[i].Content, true
}

// resume makes a paused task run on with a person's answers; a call that got none
// fails. It returns the row of the turn that goes on, or a number of its own when
// that is another swarm's.
func (s *step) resume(results Results) (row int64) {
	if len(s.Task.Breakpoints) > 0 {
		row = s.Task.Breakpoints[0].Row
	} else {
		row = s.number()
	}
	s.settleCalls(results, func(string) bool { return true })
	s.Task.State = StateRunning
	s.restore()
	return row
}

// settleCalls gives results to the pending calls that which names.
func (s *step) settleCalls(results Results, which func(id string) bool) {
	for i := range s.Task.Breakpoints {
		b := &s.Task.Breakpoints[i]
		b.Asks = slices.Clone(b.Asks)
		for k := range b.Asks {
			if b.Asks[k].Told == nil && which(b.Asks[k].ID) {
				b.Asks[k].Told = s.tell(b.Agent, b.Asks[k], results)
			}
		}
	}
	s.answerPeers(results, which)
}

func (s *step) tell(agent string, a Ask, results Results) *Told {
	text, ok := results.find(a.ID)
	if !ok {
		return &Told{Code: abi.CodeUnavailable, Reason: "no_result", Message: "the task was resumed without a result of this call", Time: s.now}
	}
	s.told(agent, a.ID, text)
	return &Told{Text: text, Time: s.now}
}

// told logs what a person has answered to a call.
func (s *step) told(agent, id, text string) {
	s.event("breakpoint_action_complete", "breakpoint action complete (caller = "+agent+"):\n"+text,
		map[string]any{"caller": agent, "tool_call_id": id})
}
