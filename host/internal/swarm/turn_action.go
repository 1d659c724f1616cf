package swarm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// Actions return inside the turn. Only an agent whose turn ends right after an action,
// without mail, gets a message to go on.

// Bounds of the refused action calls that are kept, of an unknown action's name, and of
// a result in the log.
const (
	maxRefusedActions = 16
	maxActionName     = 64
	maxShownResult    = 4 << 10
)

// StageBreakpointResult stages a person's answer, which goes into the agent's history.
func (t *Turn) StageBreakpointResult(a BreakpointCall, text string, fault *abi.Error) {
	e := stagedCall{at: t.clock.Now(), call: abi.Call{ID: a.ID, Name: a.Name, Args: a.Args}}
	e.result = abi.Result{ID: a.ID, OK: fault == nil, Text: text}
	e.silent = fault == nil || fault.Code != abi.CodeCancelled || t.wasSuspendedOn(a.ID)
	if a.Op == abi.OpAction {
		e.action = &actionEnd{fault}
	}
	if fault != nil {
		e.result.Text = "ERROR: " + fault.Message
	}
	t.staged = append(t.staged, e)
}

// ActionFailedPrefix begins the fault of an action whose code has failed.
const ActionFailedPrefix = "failed to execute action tool: "

// StageActionResult stages the result or the fault of an action with code. Both go into
// the agent's history.
func (t *Turn) StageActionResult(a BreakpointCall, text string, fault *abi.Error) {
	e := stagedCall{
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

// shownResult is a result as the log shows it; the history has it whole.
func shownResult(text string) string {
	if len(text) <= maxShownResult {
		return text
	}
	return text[:runeStart(text, maxShownResult)] + "…"
}

// actionOwner prefixes the name under which an action stores values. No agent's name
// contains a slash.
const actionOwner = "action/"

// EnterAction marks an action as running until the returned function is called. What a
// failed action has staged is dropped.
func (t *Turn) EnterAction(action string) (leave func(failed bool)) {
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

// wasSuspendedOn reports whether the turn was suspended on a call, which the log then
// has.
func (t *Turn) wasSuspendedOn(id string) bool {
	b, _ := t.rec.findBreakpoint(t.row.N)
	return slices.ContainsFunc(b.Calls, func(a BreakpointCall) bool { return a.ID == id })
}

// StageRefusedAction stages an action call that was refused before it began. Only the
// first ones of a turn are kept, so that refused calls cannot fill the log.
func (t *Turn) StageRefusedAction(a BreakpointCall, fault *abi.Error) {
	if fault.Code == abi.CodeCancelled || t.refusedActions >= maxRefusedActions {
		return
	}
	t.refusedActions++
	if len(a.Args) > maxRefusedArgs {
		a.Args = []byte("{}")
	}
	name := a.Name[:runeStart(a.Name, min(len(a.Name), maxActionName))]
	t.staged = append(t.staged, stagedCall{
		at: t.clock.Now(), call: abi.Call{ID: a.ID, Name: name, Args: a.Args}, action: &actionEnd{fault},
		result: abi.Result{ID: a.ID, Text: "ERROR: " + fault.Message},
		event:  "action_error", description: "agent " + t.agent.Name + ": " + fault.Message,
		extra: map[string]any{"caller": t.agent.Name, "tool_name": name},
	})
}

// actionEnd is how an action ended.
type actionEnd struct{ fault *abi.Error }

const actionsDone = "The actions of your last turn have returned; their results are in your history. Go on from there."

// sendFollowUp sends the results of a turn's actions to its agent, if the turn made no
// mail call after its last action. A cancelled action has no result, and an interrupt
// is the next turn in any case.
func (mut *mutationBuilder) sendFollowUp(t *Turn) {
	n := len(t.staged)
	if n == 0 || t.endedBy != "" || t.run.preempted || t.staged[n-1].action == nil || t.staged[n-1].action.wasCancelled() {
		return
	}
	var faults []string
	for _, e := range t.staged {
		if e.action != nil && e.action.fault != nil && !e.action.wasCancelled() {
			faults = append(faults, fmt.Sprintf("action %q: %s", e.call.Name, e.action.fault.Message))
		}
	}
	if len(faults) > 0 {
		mut.sendSystem(mail.Response, t.agent.Name, mail.SubjectActionError, strings.Join(faults, "\n"), t.id())
		return
	}
	mut.sendSystem(mail.Broadcast, t.agent.Name, mail.SubjectActionComplete, actionsDone, t.id())
}

func (a *actionEnd) wasCancelled() bool { return a.fault != nil && a.fault.Code == abi.CodeCancelled }
