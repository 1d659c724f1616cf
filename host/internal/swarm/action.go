package swarm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// Actions return inside the turn. Only an agent whose turn ends right behind one,
// without mail, is told by a message that it may go on.

// Bounds of what is kept of calls of actions that were refused, of a name that no
// action has, and of what the log shows of a result.
const (
	maxRefusedActions = 16
	maxActionName     = 64
	maxShownResult    = 4 << 10
)

// Told stages what a person has answered: it goes into the agent's history as it
// is.
func (t *Turn) Told(a Ask, text string, fault *abi.Error) {
	e := effect{at: t.clock.Now(), call: abi.Call{ID: a.ID, Name: a.Name, Args: a.Args}}
	e.result = abi.Result{ID: a.ID, OK: fault == nil, Text: text}
	e.silent = fault == nil || fault.Code != abi.CodeCancelled || t.asked(a.ID)
	if a.Op == abi.OpAction {
		e.action = &actionEnd{fault}
	}
	if fault != nil {
		e.result.Text = "ERROR: " + fault.Message
	}
	t.staged = append(t.staged, e)
}

// ActionFailed begins the fault of an action whose code has failed.
const ActionFailed = "failed to execute action tool: "

// Acted stages how the code of an action has ended: what it answered, or why it
// failed. Both go into the agent's history.
func (t *Turn) Acted(a Ask, text string, fault *abi.Error) {
	e := effect{
		at: t.clock.Now(), call: abi.Call{ID: a.ID, Name: a.Name, Args: a.Args}, action: &actionEnd{fault}, ran: true, silent: true,
		result: abi.Result{ID: a.ID, OK: fault == nil, Text: success + text},
		event:  "action_complete", description: "action complete (caller = " + t.agent.Name + "):\n" + shownResult(text),
	}
	if fault != nil {
		e.event, e.result.Text = "action_error", "ERROR: "+fault.Message
		e.description = "agent " + t.agent.Name + ": " + fault.Message
	}
	e.extra = map[string]any{
		"caller": t.agent.Name, "tool_name": a.Name, "tool_call_id": a.ID, "result": shownResult(e.result.Text),
	}
	t.staged = append(t.staged, e)
}

// shownResult is what the log shows of a result, which the history has whole.
func shownResult(text string) string {
	if len(text) <= maxShownResult {
		return text
	}
	return text[:runeStart(text, maxShownResult)] + "…"
}

// actionOwner begins the name under which an action keeps values. No agent has a
// name like it.
const actionOwner = "action/"

// Enter says that an action runs until the function returned is called. What one
// that failed has staged is dropped.
func (t *Turn) Enter(action string) (leave func(failed bool)) {
	before, kv, put, spans := t.acting, maps.Clone(t.kv), t.blobs, len(t.spans.list)
	t.acting = action
	return func(failed bool) {
		t.cutSpans(spans)
		t.acting = before
		if failed {
			t.kv, t.blobs = kv, put
		}
	}
}

// asked reports whether the turn was suspended with a call, which stands in the log
// then.
func (t *Turn) asked(id string) bool {
	b, _ := t.rec.breakpoint(t.row.N)
	return slices.ContainsFunc(b.Asks, func(a Ask) bool { return a.ID == id })
}

// RefusedAction stages that a call of an action did not begin. Only the first of a
// turn are kept: whoever is refused must not fill the log.
func (t *Turn) RefusedAction(a Ask, fault *abi.Error) {
	if fault.Code == abi.CodeCancelled || t.refusedActions >= maxRefusedActions {
		return
	}
	t.refusedActions++
	if len(a.Args) > maxRefusedArgs {
		a.Args = []byte("{}")
	}
	name := a.Name[:runeStart(a.Name, min(len(a.Name), maxActionName))]
	t.staged = append(t.staged, effect{
		at: t.clock.Now(), call: abi.Call{ID: a.ID, Name: name, Args: a.Args}, action: &actionEnd{fault},
		result: abi.Result{ID: a.ID, Text: "ERROR: " + fault.Message},
		event:  "action_error", description: "agent " + t.agent.Name + ": " + fault.Message,
		extra: map[string]any{"caller": t.agent.Name, "tool_name": name},
	})
}

// actionEnd is how an action ended.
type actionEnd struct{ fault *abi.Error }

const actionsDone = "The actions of your last turn have returned; their results are in your history. Go on from there."

// followUp tells the agent of a turn that made no mail call behind its last action
// what came of its actions (design §4). What was called off came to nothing, and an
// interrupt is the next turn in any case.
func (s *step) followUp(t *Turn) {
	n := len(t.staged)
	if n == 0 || t.over != "" || t.run.preempted || t.staged[n-1].action == nil || t.staged[n-1].action.off() {
		return
	}
	var faults []string
	for _, e := range t.staged {
		if e.action != nil && e.action.fault != nil && !e.action.off() {
			faults = append(faults, fmt.Sprintf("action %q: %s", e.call.Name, e.action.fault.Message))
		}
	}
	if len(faults) > 0 {
		s.sendSystem(mail.Response, t.agent.Name, mail.SubjectActionError, strings.Join(faults, "\n"), t.id())
		return
	}
	s.sendSystem(mail.Broadcast, t.agent.Name, mail.SubjectActionComplete, actionsDone, t.id())
}

func (a *actionEnd) off() bool { return a.fault != nil && a.fault.Code == abi.CodeCancelled }
