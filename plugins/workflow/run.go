package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"skep/plugins/internal/question"
	skep "skep/sdk/go"
)

// Codes of failures, beside those of the host and of the agents that answer.
const (
	codeTimeout   = "TIMEOUT"
	codeFormat    = "INVALID_FORMAT"
	codeCancelled = "CANCELLED"
	codeFailed    = "FAILED"
)

func isCode(err error, code skep.Code) bool { return errors.Is(err, code) }

// faultOf is an error as answers show it.
func faultOf(err error) *fault {
	var e *skep.Error
	if errors.As(err, &e) {
		return &fault{e.Code.String(), e.Message}
	}
	return &fault{codeFormat, err.Error()}
}

// start begins a step that is ready: its condition decides whether it runs at all.
func (w *work) start(i int) error {
	r, err := w.record(i)
	if err != nil {
		return err
	}
	if r.Step.When != "" {
		holds, err := w.holds(r)
		switch {
		case err != nil:
			return w.failRun(run{Step: i, ID: r.Step.ID, Try: 1 << 20}, r, faultOf(fmt.Errorf("when: %w", err)))
		case !holds:
			return w.settleStep(i, skipped, end{})
		}
	}
	w.markStep(i, running)
	return w.try(run{Step: i, ID: r.Step.ID, Try: 1}, r)
}

// holds evaluates the condition of a step.
func (w *work) holds(r record) (bool, error) {
	e, err := parseExpression(r.Step.When)
	if err != nil {
		return false, err
	}
	value, err := e.eval(w.newResults(r).lookUp)
	return truth(value), err
}

// stepOf is what a run does: a step, or what undoes it.
func (r record) stepOf(undo bool) step {
	if undo {
		return *r.Step.Compensate
	}
	return r.Step
}

// try asks the agent of a step, or runs its action in this turn.
func (w *work) try(n run, r record) error {
	s := r.stepOf(n.Undo)
	subject, body, err := w.request(s, r, n.Undo)
	if err != nil {
		n.Try = 1 << 20 // the same request fails again
		return w.failRun(n, r, faultOf(err))
	}
	if s.Agent == "" {
		return w.act(n, r, s, body)
	}
	w.sent += len(body)
	reply, err := w.t.Tool("send_request", map[string]string{"target": s.Agent, "subject": subject, "body": string(body)})
	if isCode(err, skep.Cancelled) {
		return err
	}
	if err != nil {
		return w.failRun(n, r, faultOf(err))
	}
	n.Request, n.Message, n.Since, n.Due = reply.RequestID, reply.ID, w.now(), 0
	switch {
	case s.Timeout > 0:
		n.Due = w.now() + int64(s.Timeout*1000)
	case n.Undo:
		n.Due = w.now() + undoTimeout.Milliseconds()
	}
	w.Runs = append(w.Runs, n)
	return nil
}

// act runs an action of this agent.
func (w *work) act(n run, r record, s step, parameters []byte) error {
	w.calls++
	var output json.RawMessage
	err := w.t.Action(s.Tool, json.RawMessage(parameters), &output)
	if isCode(err, skep.Cancelled) {
		return err
	}
	if err != nil {
		return w.failRun(n, r, faultOf(err))
	}
	result, err := decodeJSON(output)
	if len(output) == 0 || err != nil {
		result = nil
	}
	return w.completeRun(n, result)
}

// request makes the mail of a step. For an action of this agent it is the arguments.
func (w *work) request(s step, r record, undo bool) (subject string, body []byte, err error) {
	look := w.newResults(r).lookUp
	parameters := map[string]any{}
	if len(s.Parameters) > 0 {
		value, err := decodeJSON(s.Parameters)
		if err == nil {
			value, err = fill(value, look)
		}
		if err != nil {
			return "", nil, fmt.Errorf("parameters: %w", err)
		}
		parameters, _ = value.(map[string]any)
	}
	description, err := fillText(s.Description, look)
	if err != nil {
		return "", nil, fmt.Errorf("description: %w", err)
	}
	switch {
	case s.Tool != "" && s.Agent == "":
		body, err = encodeJSON(parameters)
		return "", body, err
	case s.Tool != "":
		body, err = encodeJSON(map[string]any{"tool_name": s.Tool, "parameters": parameters})
		return s.Tool, body, err
	case s.TaskType == "mail.message":
		subject, _ = parameters["subject"].(string)
		if subject == "" {
			subject = s.TaskType
		}
		text, isText := parameters["body"].(string)
		if !isText {
			body, err = encodeJSON(parameters["body"])
			return subject, body, err
		}
		return subject, []byte(text), nil
	}
	if err := w.addInputs(parameters, s, r, undo, look); err != nil {
		return "", nil, err
	}
	task := map[string]any{"task_type": s.TaskType, "parameters": parameters}
	if description != "" {
		task["description"] = description
	}
	body, err = encodeJSON(task)
	return s.TaskType, body, err
}

// addInputs puts the step's inputs into parameters.inputs; by default they are the
// results of the steps that it waits for.
func (w *work) addInputs(parameters map[string]any, s step, r record, undo bool, look func(reference) (any, error)) error {
	inputs := map[string]any{}
	for _, name := range sortedKeys(s.Inputs) {
		value, err := decodeJSON(s.Inputs[name])
		if err == nil {
			value, err = fill(value, look)
		}
		if err != nil {
			return fmt.Errorf("inputs.%s: %w", name, err)
		}
		inputs[name] = value
	}
	if s.Inputs == nil && !undo {
		for _, id := range sortedKeys(r.Steps) {
			if !slices.Contains(r.After, r.Steps[id]) {
				continue
			}
			value, err := look(reference{id, []string{"result"}})
			if err != nil {
				return err
			}
			inputs[id] = value
		}
	}
	if _, taken := parameters["inputs"]; !taken && len(inputs) > 0 {
		parameters["inputs"] = inputs
	}
	return nil
}

// completeRun ends a run with its result.
func (w *work) completeRun(n run, result any) error {
	if !n.Undo {
		return w.settleStep(n.Step, done, end{Result: result})
	}
	w.Undone = append(w.Undone, n.ID)
	return w.noteUndo(n.Step, "done")
}

// Bounds of an error that an agent has told, in bytes.
const (
	maxCode = 64
	maxWhy  = 1000
)

// failRun ends a run with a fault: the step is tried again, or has failed.
func (w *work) failRun(n run, r record, f *fault) error {
	f.Code, f.Message = question.Clip(f.Code, maxCode), question.Clip(f.Message, maxWhy)
	s := r.stepOf(n.Undo)
	if n.Try <= s.Retries && (w.Phase == phaseRun || n.Undo) {
		var delay float64
		if s.Retry != nil {
			delay = min(s.Retry.Delay*float64(uint64(1)<<min(n.Try-1, 30)), 1e6)
		}
		n.Request, n.Message, n.Since, n.Due = "", "", w.now(), w.now()+max(int64(delay*1000), 1)
		n.Try++
		w.Runs = append(w.Runs, n)
		return nil
	}
	if n.Undo {
		w.Stuck = append(w.Stuck, n.ID)
		return w.noteUndo(n.Step, "failed: "+f.Message)
	}
	if err := w.settleStep(n.Step, failed, end{Error: f}); err != nil {
		return err
	}
	if n.Doubt {
		w.undoLater(n.Step, r)
	}
	if s.OnFailure == "" || s.OnFailure == "abort" {
		return w.stopWorkflow(f.Code, fmt.Sprintf("step %q: %s", n.ID, f.Message))
	}
	return nil
}

// undoNext compensates the step that ended last.
func (w *work) undoNext() error {
	last := len(w.Undo) - 1
	i := w.Undo[last]
	w.Undo = w.Undo[:last]
	r, err := w.record(i)
	if err != nil {
		return err
	}
	return w.try(run{Step: i, ID: r.Step.ID, Try: 1, Undo: true}, r)
}

func (w *work) noteUndo(i int, how string) error {
	var e end
	if err := w.ends.get(i, &e); err != nil {
		return err
	}
	e.Undo = how
	return w.ends.put(i, e)
}

// answered takes the answer to a request; known is false for one that no run waits for.
func (w *work) answered(m *skep.Message) (known bool, err error) {
	i := slices.IndexFunc(w.Runs, func(r run) bool { return r.Request != "" && r.Request == m.RefID })
	if i < 0 {
		return false, nil
	}
	result, f, over := readAnswer(m)
	if !over {
		return true, nil
	}
	n := w.Runs[i]
	w.Runs = slices.Delete(w.Runs, i, i+1)
	if f == nil {
		return true, w.completeRun(n, result)
	}
	r, err := w.record(n.Step)
	if err != nil {
		return true, err
	}
	return true, w.failRun(n, r, f)
}

// handleTimer ends or repeats the runs that are due.
func (w *work) handleTimer() error {
	now := w.now()
	if w.Due > 0 && w.Due <= now && w.Phase == phaseRun {
		if err := w.stopWorkflow(codeTimeout, "the workflow took longer than its timeout"); err != nil {
			return err
		}
		for i := range w.Runs { // they are withdrawn, and not waited for
			w.Runs[i].Due = now
		}
	}
	var due []run
	w.Runs = slices.DeleteFunc(w.Runs, func(r run) bool {
		if r.Due == 0 || r.Due > now {
			return false
		}
		due = append(due, r)
		return true
	})
	for _, n := range due {
		r, err := w.record(n.Step)
		switch {
		case err != nil:
		case n.Request == "" && w.Phase == phaseDrain && !n.Undo: // an earlier one has stopped the workflow
			w.dropRun(n, r)
		case n.Request == "":
			err = w.try(n, r)
		default:
			n.Doubt = true
			if err = w.withdraw(&n, r, "no answer in time"); err == nil {
				err = w.failRun(n, r, &fault{codeTimeout, "no answer in time"})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
