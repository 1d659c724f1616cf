package capability

import (
	"context"
	"encoding/json"
	"slices"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// indexBreakpoint marks the intent of a breakpoint call.
const indexBreakpoint = -2

// breakpointCall returns the call that a person must answer, or nil if the host answers
// it.
func (o *ops) breakpointCall(c call, req []byte) *swarm.BreakpointCall {
	if o.turn == nil || c.op != abi.OpMail && c.op != abi.OpAction {
		return nil
	}
	a, fault := readToolCall(c, req)
	switch {
	case fault != nil:
		return nil
	case o.action != nil:
		if c.op == abi.OpMail || !slices.Contains(o.action.Calls, a.Name) || !o.turn.ActionNeedsPerson(a.Name) {
			return nil
		}
	case !o.turn.NeedsPerson(c.op, a.Name):
		return nil
	}
	a.ID = o.turn.CallID(c.path)
	return a
}

// readToolCall decodes the call of a tool or an action. With an error it has neither name
// nor arguments.
func readToolCall(c call, req []byte) (*swarm.BreakpointCall, *abi.Error) {
	a := &swarm.BreakpointCall{Call: c.path, Op: c.op, Args: json.RawMessage("{}")}
	var ask abi.ActionRequest
	var fault *abi.Error
	if c.op == abi.OpMail {
		var mail abi.MailRequest
		fault = decode(c.op, req, &mail)
		ask = abi.ActionRequest{Name: mail.Tool, Args: mail.Args}
	} else {
		fault = decode(c.op, req, &ask)
	}
	if fault != nil {
		return a, fault
	}
	if a.Name = ask.Name; len(ask.Args) > 0 {
		a.Args = ask.Args
	}
	return a, nil
}

// startBreakpoint begins a call that a person answers.
func (o *ops) startBreakpoint(ctx context.Context, c call, a *swarm.BreakpointCall, req []byte) *reply {
	r := &reply{ops: o, call: c, turnDone: ctx.Done(), breakpoint: a}
	if fault := o.checkBreakpointArgs(c, a); fault != nil {
		o.j.recordCall(c, 0, nil, fault)
		o.stageRefusedAction(c, req, fault)
		return o.doneReply(c, nil, fault)
	}
	size := len(a.Args)
	for _, other := range o.j.breakpoints {
		size += len(other.breakpoint.Args)
	}
	if size > swarm.MaxBreakpointBytes {
		fault := abi.Errorf(abi.CodeLimit, c.op, "asked", "the calls of a turn that people answer may have %d bytes of arguments", swarm.MaxBreakpointBytes)
		o.j.recordCall(c, 0, nil, fault)
		o.stageRefusedAction(c, req, fault)
		return o.doneReply(c, nil, fault)
	}
	e := c.entryWithDigest(swarm.EntryIntent)
	e.Index = indexBreakpoint
	o.j.add(e)
	o.j.breakpoints = append(o.j.breakpoints, r)
	if fault := o.turn.CheckAnswerable(c.op); fault != nil {
		o.j.recordUnanswerable(c, fault)
	}
	return r
}

// checkBreakpointArgs checks the arguments of an action that a person answers.
func (o *ops) checkBreakpointArgs(c call, a *swarm.BreakpointCall) *abi.Error {
	check := o.argsChecks[a.Name]
	if coded := o.actions[a.Name]; coded != nil {
		check = coded.Check
	}
	if c.op != abi.OpAction || check == nil {
		return nil
	}
	if err := check(a.Args); err != nil {
		return abi.Errorf(abi.CodeInvalid, abi.OpAction, "args", "the arguments of action %q: %v", a.Name, err)
	}
	return nil
}

// recordUnanswerable records that a call will not be answered. The turn sees that in the
// place of the answer, as in a replay.
func (j *journal) recordUnanswerable(c call, fault *abi.Error) {
	e := c.entry(swarm.EntryAnswer)
	e.Err, e.Time = fault, j.clock.Now()
	j.add(e)
	if j.prior.answers == nil {
		j.prior.answers = map[string]*swarm.Entry{}
	}
	j.prior.entries = append(j.prior.entries, e)
}

// stageRefusedAction stages the refusal of an action that did not begin.
func (o *ops) stageRefusedAction(c call, req []byte, fault *abi.Error) {
	if c.op != abi.OpAction || o.turn == nil || o.action != nil || fault == nil {
		return
	}
	a, _ := readToolCall(c, req) // an invalid call has no name
	a.ID = o.turn.CallID(c.path)
	o.turn.StageRefusedAction(*a, fault)
}

// replayBreakpoint continues a recorded breakpoint call.
func (o *ops) replayBreakpoint(ctx context.Context, c call, req []byte) *reply {
	a, _ := readToolCall(c, req) // it is recorded, so it is valid
	r := &reply{ops: o, call: c, turnDone: ctx.Done(), breakpoint: a}
	if o.turn != nil {
		r.breakpoint.ID = o.turn.CallID(c.path)
	}
	o.j.breakpoints = append(o.j.breakpoints, r)
	return r
}

// pending reports whether the reply still waits for a person.
func (r *reply) pending() bool {
	r.loadRecorded()
	return r.breakpoint != nil && !r.known && r.unrecordedFault == nil
}

// suspend stops a turn that only waits for people. Running effects are finished first.
func (o *ops) suspend(ctx context.Context, c call) *abi.Error {
	if o.j.prior.offline {
		return o.j.recordEnded(c)
	}
	for _, r := range o.j.inFlight {
		if fault := o.finishAsync(ctx, r); fault != nil {
			return fault
		}
	}
	o.j.suspended = true
	o.j.fail("suspended", "", "the turn waits for a person")
	return o.j.stoppedError(c.op)
}

// finishAsync waits until an effect is over and its answer is durable.
func (o *ops) finishAsync(ctx context.Context, r *reply) *abi.Error {
	if r.known || r.closed {
		return nil
	}
	r.async.disableStreaming()
	for !r.async.finished() {
		select {
		case <-o.j.notifier():
		case <-ctx.Done():
			return turn.CancelledError(ctx, r.call.op.String())
		}
	}
	return r.settle()
}

// pendingBreakpoints returns the calls that a suspended turn waits for.
func (j *journal) pendingBreakpoints() (out []swarm.BreakpointCall) {
	for _, r := range j.breakpoints {
		if r.pending() {
			out = append(out, *r.breakpoint)
		}
	}
	return out
}
