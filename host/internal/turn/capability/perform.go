package capability

import (
	"context"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// Call performs one op.
func (o *ops) Call(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
	r, fault := o.perform(ctx, op, req, false)
	switch {
	case fault != nil:
		return nil, fault
	case r.known:
		return r.rest, r.fault
	}
	defer r.Close()
	return r.readAll(ctx)
}

// Submit runs ops that wait for nothing at once, in call order, and starts the others.
func (o *ops) Submit(ctx context.Context, op abi.Op, req []byte) (turn.Answer, *abi.Error) {
	r, fault := o.perform(ctx, op, req, true)
	if fault != nil {
		return nil, fault // not r, which would be a non-nil interface
	}
	return r, nil
}

// perform begins an op, or replays it from the record. An error means that it did not
// begin.
func (o *ops) perform(ctx context.Context, op abi.Op, req []byte, stream bool) (*reply, *abi.Error) {
	if fault := o.j.stoppedError(op); fault != nil {
		return nil, fault
	}
	c := o.newCall(op, req)
	o.j.shapes.begin(o, c, req)
	e, fault := o.j.replayEntry(c, swarm.EntryCall, swarm.EntryIntent)
	switch {
	case fault != nil:
		return nil, fault
	case e != nil:
		if fault := o.j.observeCall(c, e, req); fault != nil {
			return nil, fault
		}
		return o.replayCall(ctx, c, e, req, stream)
	}
	if a := o.breakpointCall(c, req); a != nil && ctx.Err() == nil && len(req) <= maxRequest {
		return o.startBreakpoint(ctx, c, a, req), nil
	}
	h, fault := o.lookup(ctx, op, req)
	switch {
	case fault != nil:
	case h.effect != nil:
		var r *reply
		if r, fault = o.startEffect(ctx, c, h, req, stream); fault == nil {
			return r, nil
		}
	default:
		return o.runDirect(ctx, c, h, req), nil
	}
	o.j.recordCall(c, indexRefused, nil, fault)
	o.stageRefusedAction(c, req, fault)
	return nil, fault
}

// runDirect runs an op that does not leave the host.
func (o *ops) runDirect(ctx context.Context, c call, h handler, req []byte) *reply {
	switch {
	case h.nested != nil:
		e := c.entryWithDigest(swarm.EntryIntent)
		e.Ran = h.record
		o.j.add(e)
		return o.runNested(ctx, c, h, req)
	case h.immediate != nil:
		return o.runImmediate(ctx, c, h, req)
	}
	body, fault := h.direct(o, ctx, req)
	e := c.entryWithDigest(swarm.EntryCall)
	e.Answer, e.Err = body, fault
	e.Ran = h.record
	switch {
	case fault != nil || len(e.Ran) > 0:
	case c.op == abi.OpMail && o.turn != nil:
		e.Ran = o.turn.MailRecord()
	default:
		e.Ran = o.stagingRecord(c, h, req)
	}
	o.j.add(e)
	return o.doneReply(c, body, fault)
}

// runImmediate runs a compare-and-set.
func (o *ops) runImmediate(ctx context.Context, c call, h handler, req []byte) *reply {
	ch, fault := h.immediate(o, ctx, req)
	if fault != nil {
		o.j.recordCall(c, 0, nil, fault)
		return o.doneReply(c, nil, fault)
	}
	body, fault := o.j.compareAndSwap(c, ch)
	return o.doneReply(c, body, fault)
}

// replayCall begins an op whose beginning is recorded.
func (o *ops) replayCall(ctx context.Context, c call, e *swarm.Entry, req []byte, stream bool) (*reply, *abi.Error) {
	if e.Kind == swarm.EntryCall {
		if e.Index == indexRefused {
			o.stageRefusedAction(c, req, e.Err)
		}
		body, fault := o.repeatCall(ctx, e, req)
		if e.Index == indexRefused {
			return nil, fault
		}
		return o.doneReply(c, body, fault), o.j.stoppedError(c.op)
	}
	if e.Index == indexBreakpoint {
		return o.replayBreakpoint(ctx, c, req), nil
	}
	h := o.table[c.op]
	if len(e.Ran) > 0 {
		var fault *abi.Error
		if h, fault = o.recordedRunner(e, req); fault != nil {
			return nil, fault
		}
	}
	if h.nested != nil {
		return o.runNested(ctx, c, h, req), nil
	}
	return o.restartEffect(ctx, c, req, stream, e), nil
}
