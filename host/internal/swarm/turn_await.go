package swarm

import (
	"fmt"
	"slices"

	"skep/abi"
)

// awaitMessage ends the turn's mail calls. It is refused when no message could arrive
// for this task any more.
func (t *Turn) awaitMessage(e *stagedCall, args toolArgs) (string, *abi.Error) {
	if t.replay == nil && !t.expectsMore() {
		return "", t.complain(e, abi.CodeConflict, "nothing_to_await",
			"no outstanding requests and message queue is empty")
	}
	e.ends = e.call.Name
	text, suffix := "waiting for a new message", ""
	e.extra = map[string]any{"caller": t.agent.Name}
	if args.Reason != nil && *args.Reason != "" {
		text += fmt.Sprintf(" (reason: '%s')", *args.Reason)
		suffix = ": " + *args.Reason
		e.extra["reason"] = *args.Reason
	}
	e.event, e.description = "await_message", "agent '"+t.agent.Name+"' is awaiting a new message"+suffix
	return text, nil
}

// expectsMore applies the stall rule to the running turn: would a row remain after its
// staged calls?
func (t *Turn) expectsMore() bool {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if t.rowsLeft() > 1 || t.expectsRemote() {
		return true
	}
	// In the grace turn sent messages go to the stash.
	return !t.task.rec.Grace && (len(t.timers) > 0 || slices.ContainsFunc(t.staged, func(e stagedCall) bool {
		return len(e.recipients) > 0 || e.complaint != ""
	}))
}

// expectsRemote reports whether other swarms may still make the task progress. An
// outbox message alone is no reason to wait: without a request it is not answered.
func (t *Turn) expectsRemote() bool {
	after := Task{Caller: t.task.rec.Caller, Grace: t.task.rec.Grace, Requests: slices.Clone(t.task.rec.Requests)}
	for _, e := range t.staged {
		after.Requests = append(after.Requests, e.opens...)
		after.Requests = slices.DeleteFunc(after.Requests, func(r OpenRequest) bool { return r.ID == e.closes })
	}
	return after.waitsForRemote()
}
