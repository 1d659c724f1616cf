package swarm

import (
	"fmt"
	"slices"

	"skep/abi"
)

// await ends the turn's mail calls; it is refused when nothing could arrive
// for this task any more.
func (t *Turn) await(e *effect, args toolArgs) (string, *abi.Error) {
	if t.again == nil && !t.moreToCome() {
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

// moreToCome is the stall rule seen from inside the turn: would a row remain
// after this turn's staged effects?
func (t *Turn) moreToCome() bool {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if t.rowsLeft() > 1 || t.owedAbroad() {
		return true
	}
	// In the grace turn what is sent goes to the stash.
	return !t.task.rec.Grace && (len(t.timers) > 0 || slices.ContainsFunc(t.staged, func(e effect) bool {
		return len(e.recipients) > 0 || e.complaint != ""
	}))
}

// owedAbroad reports whether other swarms may still make the task go on. A letter
// alone is no reason to wait: one that asks nothing is not answered.
func (t *Turn) owedAbroad() bool {
	after := Task{Caller: t.task.rec.Caller, Grace: t.task.rec.Grace, Requests: slices.Clone(t.task.rec.Requests)}
	for _, e := range t.staged {
		after.Requests = append(after.Requests, e.opens...)
		after.Requests = slices.DeleteFunc(after.Requests, func(r OpenRequest) bool { return r.ID == e.closes })
	}
	return after.waitsAbroad()
}
