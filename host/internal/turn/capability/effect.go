package capability

import (
	"context"

	"skep/abi"
	"skep/host/internal/swarm"
)

// startEffect starts an effect. Its intent is recorded, and durable before the request is
// sent. An error is the refusal of the request. It does not wait.
func (o *ops) startEffect(ctx context.Context, c call, h handler, req []byte, stream bool) (*reply, *abi.Error) {
	do, fault := h.effect(o, ctx, req, stream)
	if fault != nil {
		return nil, fault
	}
	intent := c.entryWithDigest(swarm.EntryIntent)
	if h.maxCost != (swarm.Spend{}) {
		day, fault := o.j.writer.ReserveSpend(c.op, h.model, h.maxCost)
		if fault != nil {
			return nil, fault
		}
		intent.Spend, intent.Model, intent.Day = h.maxCost, h.model, day
	}
	r := o.startAsync(ctx, c, h, stream, o.j.add(intent), do).withMailTool(req).withAction(req)
	r.reserved, r.reservedDay, r.model = intent.Spend, intent.Day, h.model
	return r, nil
}

// startAsync runs an effect once its intent, entry n, is durable. n is 0 for an intent
// that already is.
func (o *ops) startAsync(ctx context.Context, c call, h handler, stream bool, n int64, do effectFunc) *reply {
	f := &asyncOp{
		group: o.j.asyncGroup(), op: c.op, key: o.j.writer.EffectKey(c.path), retry: n == 0,
		done: make(chan struct{}), drained: make(notifier, 1), stream: stream && h.streams, outlives: h.outlives,
	}
	j := o.j
	f.ctx, f.cancel = context.WithCancel(j.parent)
	f.link(ctx)
	depart := func() *abi.Error {
		if j.ctx.Err() != nil || j.flush(n) != nil {
			return abi.Errorf(abi.CodeCancelled, c.op, "cancelled", "the turn is stopped")
		}
		return nil
	}
	go f.run(depart, do)
	r := &reply{ops: o, call: c, turnDone: ctx.Done(), async: f}
	j.inFlight = append(j.inFlight, r)
	return r
}

// restartEffect continues an effect whose intent is recorded. An answered or closed effect
// is not sent again. Any other is sent once more under the same key, unless the operator
// forbids that; its reservation still stands.
func (o *ops) restartEffect(ctx context.Context, c call, req []byte, stream bool, intent *swarm.Entry) *reply {
	r := (&reply{ops: o, call: c, turnDone: ctx.Done()}).withMailTool(req).withAction(req)
	recorded := o.j.prior.effects[c.path]
	if recorded.answered || recorded.closed || o.j.prior.offline {
		return r
	}
	if running := o.takeRunning(ctx, c); running != nil {
		return running
	}
	if o.endRecorded { // the action ended while the effect ran
		r.unrecordedFault = abi.Errorf(abi.CodeCancelled, c.op, "cancelled", "the action is over")
		return r
	}
	if recorded.read {
		r.unrecordedFault = abi.Errorf(abi.CodeUnavailable, c.op, "stream_lost", "the host stopped in the middle of the stream")
		return r
	}
	h, fault := o.lookup(ctx, c.op, req)
	var do effectFunc
	switch {
	case fault != nil:
	case h.noRetry != nil && h.noRetry(o, req):
		fault = abi.Errorf(abi.CodeUnavailable, c.op, "in_doubt",
			"the host stopped before the answer came, and the request must not be sent twice; it may have been carried out")
	case h.effect == nil:
		fault = abi.Errorf(abi.CodeUnavailable, c.op, "in_doubt", "the host stopped before the answer came, and cannot ask again")
	default:
		do, fault = h.effect(o, ctx, req, stream)
	}
	if fault != nil {
		r.unrecordedFault = fault
		return r
	}
	r = o.startAsync(ctx, c, h, stream, 0, do).withMailTool(req).withAction(req)
	r.reserved, r.reservedDay, r.model = intent.Spend, intent.SpendDay(), intent.Model
	return r
}
