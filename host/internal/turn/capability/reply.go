package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// reply is the answer to a submitted op, as its guest reads it.
type reply struct {
	ops  *ops
	call call
	// turnDone is closed when the turn ends or is cancelled.
	turnDone <-chan struct{}
	// async is the running effect; nil for an op that ran at once, or is only recorded.
	async *asyncOp
	// known is set if rest and fault are all that is left to read.
	known bool
	rest  []byte
	fault *abi.Error
	// reserved is the reserved cost of the effect, a call of model, in the budget of reservedDay.
	reserved    swarm.Spend
	reservedDay int64
	model       string
	// unrecordedFault is an error that is not in the journal yet.
	unrecordedFault *abi.Error
	// breakpoint is the call that a person answers, or nil.
	breakpoint *swarm.BreakpointCall
	// actionRequest is the request of a host action, nil for any other op.
	actionRequest []byte
	// mailTool is the call of a MAIL tool that leaves the host, nil for any other op.
	mailTool *abi.MailRequest
	// closed is set once the guest has closed the reply.
	closed bool
}

var _ turn.Answer = (*reply)(nil)

// doneReply is the reply of an op that ran at once.
func (o *ops) doneReply(c call, body []byte, fault *abi.Error) *reply {
	return &reply{ops: o, call: c, known: true, rest: body, fault: fault}
}

// loadRecorded takes the recorded answer of an earlier attempt, if there is one.
func (r *reply) loadRecorded() {
	if e := r.ops.j.prior.answers[r.call.path]; e != nil && !r.known {
		r.setAnswer(e.Answer, e.Err)
	}
}

func (r *reply) setAnswer(rest []byte, fault *abi.Error) {
	r.known, r.rest, r.fault = true, rest, fault
	if r.actionRequest != nil {
		r.ops.stageAction(r.call, r.actionRequest, rest, fault)
	}
	if r.breakpoint != nil && r.ops.turn != nil && r.ops.action == nil {
		var told abi.MailResponse
		_ = json.Unmarshal(rest, &told) // rest is empty with an error
		r.ops.turn.StageBreakpointResult(*r.breakpoint, told.Text, fault)
	}
	if r.mailTool != nil && r.ops.turn != nil {
		r.ops.turn.StageDiscovery(r.call.path, *r.mailTool, rest, fault)
	}
}

// ready reports whether there is something to read.
func (r *reply) ready() bool {
	r.loadRecorded()
	return r.known || r.unrecordedFault != nil || r.async != nil && r.async.ready()
}

// settle records a complete answer. The answer is durable before the guest sees it.
func (r *reply) settle() *abi.Error {
	if r.known {
		return nil
	}
	rest, fault := []byte(nil), r.unrecordedFault
	if fault == nil {
		if !r.async.finished() {
			return nil
		}
		rest, fault = r.async.result()
		r.ops.j.clock.Advance(r.ops.now())
	}
	if r.ops.j.ctx.Err() != nil {
		return abi.Errorf(abi.CodeCancelled, r.call.op, "cancelled", "the turn is over")
	}
	e := r.call.entry(swarm.EntryAnswer)
	e.Answer, e.Err = rest, fault
	r.correctCost(&e)
	if r.async != nil {
		r.ops.j.shapes.setUsage(r.call.path, r.async.usageSoFar())
	}
	if err := r.ops.j.flush(r.ops.j.add(e)); err != nil {
		return r.ops.j.journalError(r.call.op, err)
	}
	r.setAnswer(rest, fault)
	return r.ops.j.stoppedError(r.call.op)
}

// correctCost adds the difference between cost and reservation to the entry that ends the
// effect, and tells the turn why a model has failed. A request that an earlier attempt sent may have cost the whole reservation.
func (r *reply) correctCost(e *swarm.Entry) {
	if r.async == nil {
		return
	}
	if why := r.async.failureOfModel(); why != nil && e.Err != nil {
		r.ops.j.writer.NoteModelFailure(*why)
		e.ModelFailure = why
	}
	if e.Spend = r.async.currentCost().Minus(r.reserved); e.Spend != (swarm.Spend{}) {
		e.Day, e.Model = r.reservedDay, r.model
	}
}

// cancelled is the error of a breakpoint call whose turn was cancelled.
func (r *reply) cancelled(ctx context.Context) *abi.Error {
	if r.unrecordedFault != nil || r.breakpoint == nil {
		return r.unrecordedFault
	}
	return turn.CancelledError(ctx, r.call.op.String())
}

// readAll waits for the whole answer of a call.
func (r *reply) readAll(ctx context.Context) ([]byte, *abi.Error) {
	if _, ok := r.ops.j.recordedAnswer(r.call.path); ok {
		r.loadRecorded()
		return r.rest, r.fault
	}
	if r.unrecordedFault = r.cancelled(ctx); r.unrecordedFault == nil && r.async == nil {
		return nil, r.ops.suspend(ctx, r.call)
	}
	w := r.ops.beginWait()
	defer w.end()
	for !r.ready() {
		select {
		case <-r.ops.j.notifier():
		case <-w.long:
			if fault, ok := r.ops.hibernate(r.call.op, []*reply{r}, time.Time{}); ok {
				return nil, fault
			}
			w.rearm()
		case <-ctx.Done():
			r.unrecordedFault = turn.CancelledError(ctx, r.call.op.String())
		}
	}
	if fault := r.settle(); fault != nil {
		return nil, fault
	}
	return r.rest, r.fault
}

// Read waits for the next bytes of the answer, and moves the turn's clock.
func (r *reply) Read(ctx context.Context, p []byte) (int, *abi.Error) {
	j := r.ops.j
	if fault := j.stoppedError(r.call.op); fault != nil {
		return 0, fault
	}
	e, fault := j.replayEntry(call{path: r.call.path, op: r.call.op}, swarm.EntryRead)
	switch {
	case fault != nil:
		return 0, fault
	case e != nil:
		return r.replayRead(e, p)
	}
	r.loadRecorded()
	for !r.known {
		n, fault, ok := r.readStream(ctx, p)
		if ok {
			return n, fault
		}
	}
	return r.readRest(p)
}

// readStream reads received bytes of a stream. ok is false if the caller must try again.
func (r *reply) readStream(ctx context.Context, p []byte) (n int, fault *abi.Error, ok bool) {
	if r.unrecordedFault = r.cancelled(ctx); r.async == nil || r.unrecordedFault != nil {
		return r.settleRead(ctx)
	}
	if n := r.async.readStream(p); n > 0 {
		r.ops.j.clock.Advance(r.ops.now())
		return r.recordRead(p[:n], bytes.Clone(p[:n]), nil)
	}
	if r.async.finished() {
		return r.settleRead(ctx)
	}
	w := r.ops.beginWait()
	defer w.end()
	select {
	case <-r.ops.j.notifier():
		return 0, nil, false
	case <-w.long:
		fault, ok := r.ops.hibernate(r.call.op, []*reply{r}, time.Time{})
		return 0, fault, ok
	case <-ctx.Done():
		return r.recordRead(nil, nil, turn.CancelledError(ctx, r.call.op.String()))
	}
}

// settleRead settles a finished effect, or suspends the turn.
func (r *reply) settleRead(ctx context.Context) (int, *abi.Error, bool) {
	if r.async == nil && r.unrecordedFault == nil {
		return 0, r.ops.suspend(ctx, r.call), true
	}
	fault := r.settle()
	return 0, fault, fault != nil
}

// readRest reads from a complete answer.
func (r *reply) readRest(p []byte) (int, *abi.Error) {
	n := copy(p, r.rest)
	var fault *abi.Error
	if n == 0 {
		fault = r.fault
	}
	r.rest = r.rest[n:]
	n, fault, _ = r.recordRead(p[:n], nil, fault)
	return n, fault
}

// recordRead records a read.
func (r *reply) recordRead(read, chunk []byte, fault *abi.Error) (int, *abi.Error, bool) {
	e := r.call.entry(swarm.EntryRead)
	e.Len, e.Answer, e.Err = len(read), chunk, fault
	r.ops.j.add(e)
	return len(read), fault, true
}

// replayRead repeats a recorded read.
func (r *reply) replayRead(e *swarm.Entry, p []byte) (int, *abi.Error) {
	r.loadRecorded()
	from := e.Answer
	if from == nil && r.known {
		from = r.rest[:min(e.Len, len(r.rest))]
		r.rest = r.rest[len(from):]
	}
	if e.Err == nil && (len(from) != e.Len || e.Len > len(p)) {
		return 0, r.ops.j.diverged(r.call.op, "the turn did not repeat itself at entry %d: it reads %d bytes of call %s, recorded %d",
			e.N, min(len(from), len(p)), r.call.path, e.Len)
	}
	return copy(p, from), e.Err
}

// Close cancels a running effect, and waits until it is over.
func (r *reply) Close() {
	r.closed = true
	j := r.ops.j
	if r.async != nil {
		r.async.Close()
		j.inFlight = slices.DeleteFunc(j.inFlight, func(other *reply) bool { return other == r })
	}
	r.loadRecorded()
	switch {
	case r.known || j.failure != nil:
	case j.replaying():
		if e := &j.prior.entries[j.prior.pos]; e.Kind == swarm.EntryCancel && e.Call == r.call.path {
			j.consume(e)
		}
	case !isClosed(r.turnDone):
		// The end of the turn closes every reply; that is no action of the guest.
		e := r.call.entry(swarm.EntryCancel)
		r.correctCost(&e)
		j.add(e)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
