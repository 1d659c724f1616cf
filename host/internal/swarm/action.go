package swarm

import (
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// Actions return inside the turn. Only an agent whose turn ends right behind one,
// without mail, is told by a message that it may go on.

// maxRefusedActions bounds what is kept of calls of actions that were refused, and
// maxActionName a name that no action has.
const (
	maxRefusedActions = 16
	maxActionName     = 64
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
