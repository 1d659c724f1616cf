package main

import (
	"slices"
	"strings"
	"time"

	skep "skep/sdk/go"
)

// The states of a step, one character each in [flow.Steps].
const (
	waiting = '.' // for other steps
	ready   = 'q'
	running = 'r'
	done    = 'd'
	failed  = 'f'
	skipped = 's' // its condition was false
	cut     = 'x' // a step that it waits for has failed, or the workflow has ended before it
)

// stateNames are the states as people read them.
var stateNames = map[byte]string{
	waiting: "waiting", ready: "ready", running: "running", done: "done", failed: "failed", skipped: "skipped", cut: "not run",
}

// The phases of a workflow.
const (
	phaseRun   = "running"
	phaseDrain = "stopping" // steps under way end, no other begins
	phaseUndo  = "compensating"
	phaseEnd   = "" // none runs
)

// flow is the state of the workflow of a task. Plan and results lie in pages.
type flow struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	Phase string `json:"phase"`
	// Asker gets the answer; empty for a user, who gets it as the task's.
	Asker   string `json:"asker,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Steps has the state of each step, Open how many others each still waits for.
	Steps string `json:"steps"`
	Open  []int  `json:"open,omitempty"`
	Runs  []run  `json:"runs,omitempty"`
	// Undo are the steps that must be compensated if it comes to that, in the order
	// in which they ended.
	Undo []int `json:"undo,omitempty"`
	// Undone are those that were, Stuck those whose compensation has failed.
	Undone []string `json:"undone,omitempty"`
	Stuck  []string `json:"stuck,omitempty"`
	// Code and Why say why it ends early; cancelled is a code.
	Code string `json:"code,omitempty"`
	Why  string `json:"why,omitempty"`
	Due  int64  `json:"due,omitempty"` // of the whole, ms
	// Alarm is the one timer of a workflow: it comes when the first thing is due.
	Alarm alarm `json:"alarm"`
	// Labels describe the steps of a small workflow for its picture.
	Labels []label `json:"labels,omitempty"`
	// Last is how the workflow before has ended.
	Last string `json:"last,omitempty"`
}

// run is a request under way, or a step that waits to be tried again.
type run struct {
	Step    int    `json:"step"`
	ID      string `json:"id"`
	Request string `json:"request,omitempty"` // empty while it waits
	Message string `json:"message,omitempty"` // the id of the request's message, empty once it is withdrawn
	Try     int    `json:"try"`               // from 1
	Since   int64  `json:"since,omitempty"`   // ms, of the request or the pause
	Due     int64  `json:"due,omitempty"`     // ms; 0 for never
	Undo    bool   `json:"undo,omitempty"`
	// Doubt: it was withdrawn, or an earlier try was not answered in time, so it may have
	// been done.
	Doubt bool `json:"doubt,omitempty"`
}

type alarm struct {
	ID  string `json:"id,omitempty"`
	Due int64  `json:"due,omitempty"`
}

// end is the record of how a step ended.
type end struct {
	Status string `json:"status"` // done, failed, skipped or not run
	Result any    `json:"result,omitempty"`
	Error  *fault `json:"error,omitempty"`
	Undo   string `json:"compensation,omitempty"` // done, or failed and why
}

type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Bounds of one turn and of what is under way.
const (
	maxRuns      = 32
	maxActions   = 16 // in one turn
	maxTurnRead  = 8 << 20
	maxTurnSent  = 2 << 20 // a turn has 4 MiB of messages
	drainTimeout = time.Minute
	undoTimeout  = 10 * time.Minute // of a compensation without a timeout
)

// work is a workflow in a turn.
type work struct {
	*flow
	t     *skep.Turn
	plan  *pages
	ends  *pages
	calls int  // of actions in this turn
	read  int  // bytes of results that this turn has decoded for its requests
	sent  int  // bytes of requests of this turn
	soon  bool // another turn is needed at once
}

func newWork(t *skep.Turn, f *flow) *work {
	return &work{flow: f, t: t, plan: newPages(t, "plan", maxPlanRecord), ends: newPages(t, "end", maxEndRecord)}
}

func (w *work) now() int64 { return w.t.Now().UnixMilli() }

func (w *work) record(i int) (r record, err error) {
	err = w.plan.get(i, &r)
	return r, err
}

func (w *work) markStep(i int, state byte) {
	w.Steps = w.Steps[:i] + string(rune(state)) + w.Steps[i+1:]
}

// beginWorkflow takes a plan that has been checked.
func (w *work) beginWorkflow(p plan, asker, subject string) error {
	*w.flow = flow{ID: p.ID, Name: p.Name, Phase: phaseRun, Asker: asker, Subject: subject, Alarm: w.Alarm, Labels: labelsOf(p)}
	if p.Timeout > 0 {
		w.Due = w.now() + int64(p.Timeout*1000)
	}
	var states strings.Builder
	for i, r := range p.Steps {
		w.Open = append(w.Open, len(r.After))
		state := byte(waiting)
		if len(r.After) == 0 {
			state = ready
		}
		states.WriteByte(state)
		if err := w.plan.put(i, r); err != nil {
			return err
		}
	}
	w.Steps = states.String()
	return w.plan.flush()
}

// beginReady begins what is ready, and ends the workflow if nothing is left.
func (w *work) beginReady() error {
	for {
		switch {
		case w.Phase == phaseRun && w.canBegin():
			i := strings.IndexByte(w.Steps, ready)
			if i < 0 {
				if len(w.Runs) > 0 {
					return nil
				}
				return w.finish()
			}
			if err := w.start(i); err != nil {
				return err
			}
		case w.Phase == phaseDrain && len(w.Runs) == 0:
			w.Phase = phaseUndo
		case w.Phase == phaseUndo && len(w.Runs) == 0 && len(w.Undo) == 0:
			return w.finish()
		case w.Phase == phaseUndo && len(w.Runs) == 0 && w.canBegin():
			if err := w.undoNext(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// canBegin bounds what is under way, and the actions and bytes of a turn.
func (w *work) canBegin() bool {
	if w.calls >= maxActions || w.read >= maxTurnRead || w.sent >= maxTurnSent {
		w.soon = true
		return false
	}
	return len(w.Runs) < maxRuns
}

// settleStep ends a step, and makes those ready that waited for it alone.
func (w *work) settleStep(i int, state byte, e end) error {
	r, err := w.record(i)
	if err != nil {
		return err
	}
	w.markStep(i, state)
	e.Status = stateNames[state]
	if err := w.ends.put(i, e); err != nil {
		return err
	}
	if state == done {
		w.undoLater(i, r)
	}
	if state == failed && r.Step.OnFailure == "skip_dependents" {
		return w.cutOff(r.Next)
	}
	for _, j := range r.Next {
		if w.Open[j]--; w.Open[j] == 0 && w.Steps[j] == waiting {
			w.markStep(j, ready)
		}
	}
	return nil
}

// undoLater notes a step that was done, or may have been, for its compensation.
func (w *work) undoLater(i int, r record) {
	if r.Step.Compensate != nil {
		w.Undo = append(w.Undo, i)
	}
}

// cutOff marks steps that will not run, and all that wait for them.
func (w *work) cutOff(steps []int) error {
	for len(steps) > 0 {
		i := steps[0]
		steps = steps[1:]
		if w.Steps[i] != waiting {
			continue
		}
		r, err := w.record(i)
		if err != nil {
			return err
		}
		w.markStep(i, cut)
		steps = append(slices.Clone(steps), r.Next...)
	}
	return nil
}

// dropRun ends a run that waits to be tried again. What an earlier try may have done is
// undone.
func (w *work) dropRun(n run, r record) {
	w.markStep(n.Step, cut)
	if n.Doubt {
		w.undoLater(n.Step, r)
	}
}

// stopWorkflow ends the workflow early: no step begins any more, those under way are withdrawn,
// and what was done is undone once they have ended.
func (w *work) stopWorkflow(code, why string) error {
	if w.Phase != phaseRun {
		return nil
	}
	w.Phase, w.Code, w.Why, w.Due = phaseDrain, code, why, 0
	w.cutUnbegun()
	latest := w.now() + drainTimeout.Milliseconds()
	for i := range w.Runs {
		n := &w.Runs[i]
		r, err := w.record(n.Step)
		if err != nil {
			return err
		}
		if n.Request == "" {
			w.dropRun(*n, r)
			continue
		}
		if err := w.withdraw(n, r, why); err != nil {
			return err
		}
		n.Doubt = true
		if n.Due == 0 || n.Due > latest {
			n.Due = latest
		}
	}
	w.Runs = slices.DeleteFunc(w.Runs, func(r run) bool { return r.Request == "" })
	return nil
}

// cutUnbegun marks the steps that have not begun, as none of them will.
func (w *work) cutUnbegun() {
	w.Steps = strings.NewReplacer(string(rune(waiting)), string(rune(cut)), string(rune(ready)), string(rune(cut))).Replace(w.Steps)
}

// setAlarm has one timer pending, for what is due first.
func (w *work) setAlarm() error {
	due := w.Due
	for _, r := range w.Runs {
		if r.Due > 0 && (due == 0 || r.Due < due) {
			due = r.Due
		}
	}
	if w.soon {
		due = w.now()
	}
	if due == w.Alarm.Due && w.Alarm.ID != "" {
		return nil
	}
	if w.Alarm.ID != "" {
		if err := w.t.CancelTimer(w.Alarm.ID); err != nil && !isCode(err, skep.NotFound) {
			return err
		}
		w.Alarm = alarm{}
	}
	if due == 0 {
		return nil
	}
	const longest = 30 * 24 * time.Hour
	after := min(max(time.Duration(due-w.now())*time.Millisecond, time.Millisecond), longest)
	id, err := w.t.SetTimer(after, "workflow "+w.ID)
	w.Alarm = alarm{id, due}
	return err
}
