package capability

import (
	"context"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
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
	return r.all(ctx)
}

// Submit does at once what needs no waiting, in the order of the calls, and
// launches the rest.
func (o *ops) Submit(ctx context.Context, op abi.Op, req []byte) (sandbox.Answer, *abi.Error) {
	r, fault := o.perform(ctx, op, req, true)
	if fault != nil {
		return nil, fault // not r, which would be an answer that is nil
	}
	return r, nil
}

// perform begins an op, or takes it from what is recorded. A fault says that it
// did not begin.
func (o *ops) perform(ctx context.Context, op abi.Op, req []byte, stream bool) (*reply, *abi.Error) {
	if off := o.j.off(op); off != nil {
		return nil, off
	}
	c := o.next(op, req)
	e, fault := o.j.again(c, swarm.EntryCall, swarm.EntryIntent)
	switch {
	case fault != nil:
		return nil, fault
	case e != nil:
		if off := o.j.see(c, e, req); off != nil {
			return nil, off
		}
		return o.performAgain(ctx, c, e, req, stream)
	}
	if a := o.asks(c, req); a != nil && ctx.Err() == nil && len(req) <= maxRequest {
		return o.put(ctx, c, a, req), nil
	}
	h, fault := o.find(ctx, op, req)
	switch {
	case fault != nil:
	case h.effect != nil:
		var r *reply
		if r, fault = o.launch(ctx, c, h, req, stream); fault == nil {
			return r, nil
		}
	default:
		return o.do(ctx, c, h, req), nil
	}
	o.j.told(c, refused, nil, fault)
	o.refusedAction(c, req, fault)
	return nil, fault
}

// do does at once what leaves the host alone.
func (o *ops) do(ctx context.Context, c call, h handler, req []byte) *reply {
	switch {
	case h.nested != nil:
		e := c.asked(swarm.EntryIntent)
		e.Ran = h.ran
		o.j.add(e)
		return o.nest(ctx, c, h, req)
	case h.immediate != nil:
		return o.decide(ctx, c, h, req)
	}
	body, fault := h.now(o, ctx, req)
	e := c.asked(swarm.EntryCall)
	e.Answer, e.Err = body, fault
	if fault == nil {
		e.Ran = o.kept(c, h, req)
	}
	o.j.add(e)
	return o.done(c, body, fault)
}

// decide replaces a value.
func (o *ops) decide(ctx context.Context, c call, h handler, req []byte) *reply {
	ch, fault := h.immediate(o, ctx, req)
	if fault != nil {
		o.j.told(c, 0, nil, fault)
		return o.done(c, nil, fault)
	}
	body, fault := o.j.decide(c, ch)
	return o.done(c, body, fault)
}

// performAgain begins an op whose beginning is recorded.
func (o *ops) performAgain(ctx context.Context, c call, e *swarm.Entry, req []byte, stream bool) (*reply, *abi.Error) {
	if e.Kind == swarm.EntryCall {
		o.refusedAction(c, req, e.Err)
		body, fault := o.repeat(ctx, e, req)
		if e.Index == refused {
			return nil, fault
		}
		return o.done(c, body, fault), o.j.off(c.op)
	}
	if e.Index == asked {
		return o.putAgain(ctx, c, req), nil
	}
	h := o.table[c.op]
	if len(e.Ran) > 0 {
		var off *abi.Error
		if h, off = o.runsAgain(e, req); off != nil {
			return nil, off
		}
	}
	if h.nested != nil {
		return o.nest(ctx, c, h, req), nil
	}
	return o.relaunch(ctx, c, req, stream, e.Spend), nil
}
