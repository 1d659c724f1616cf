package capability

import (
	"context"

	"skep/abi"
	"skep/host/internal/swarm"
)

// launch starts an effect: what it asks is recorded, and durable before it
// leaves. An error is the refusal of the request itself. It does not wait.
func (o *ops) launch(ctx context.Context, c call, h handler, req []byte, stream bool) (*reply, *abi.Error) {
	do, fault := h.effect(o, ctx, req, stream)
	if fault != nil {
		return nil, fault
	}
	intent := c.asked(swarm.EntryIntent)
	if h.most != (swarm.Spend{}) {
		if fault := o.j.book.Reserve(c.op, h.most); fault != nil {
			return nil, fault
		}
		intent.Spend = h.most
	}
	r := o.send(ctx, c, stream && h.streams, o.j.add(intent), do).searched(req).acting(req)
	r.reserved = intent.Spend
	return r, nil
}

// send lets an effect fly, once its intent, the n-th entry, is durable. With an n
// of 0 it is so already.
func (o *ops) send(ctx context.Context, c call, stream bool, n int64, do work) *reply {
	f := &flight{
		air: o.j.air(), op: c.op, key: o.j.book.EffectKey(c.path), again: n == 0,
		done: make(chan struct{}), room: make(bell, 1), stream: stream,
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	j := o.j
	depart := func() *abi.Error {
		if j.life.Err() != nil || j.flush(n) != nil {
			return abi.Errorf(abi.CodeCancelled, c.op, "cancelled", "the turn is stopped")
		}
		return nil
	}
	go f.fly(depart, do)
	r := &reply{o: o, call: c, off: ctx.Done(), flight: f}
	j.aloft = append(j.aloft, r)
	return r
}

// relaunch takes up an effect whose intent is recorded. What was answered or
// closed is not sent again; what was not goes out once more under the same key,
// unless the operator forbids that. What was reserved for it then still is.
func (o *ops) relaunch(ctx context.Context, c call, req []byte, stream bool, reserved swarm.Spend) *reply {
	r := (&reply{o: o, call: c, off: ctx.Done()}).searched(req).acting(req)
	was := o.j.past.outcomes[c.path]
	if was.answered || was.closed || o.j.past.offline {
		return r
	}
	if o.decided { // the action ended while it flew
		r.late = abi.Errorf(abi.CodeCancelled, c.op, "cancelled", "the action is over")
		return r
	}
	if was.read {
		r.late = abi.Errorf(abi.CodeUnavailable, c.op, "stream_lost", "the host stopped in the middle of the stream")
		return r
	}
	h, fault := o.find(ctx, c.op, req)
	var do work
	switch {
	case fault != nil:
	case h.once != nil && h.once(o, req):
		fault = abi.Errorf(abi.CodeUnavailable, c.op, "in_doubt",
			"the host stopped before the answer came, and the request must not be sent twice; it may have been carried out")
	case h.effect == nil:
		fault = abi.Errorf(abi.CodeUnavailable, c.op, "in_doubt", "the host stopped before the answer came, and cannot ask again")
	default:
		do, fault = h.effect(o, ctx, req, stream)
	}
	if fault != nil {
		r.late = fault
		return r
	}
	r = o.send(ctx, c, stream && h.streams, 0, do).searched(req).acting(req)
	r.reserved = reserved
	return r
}
