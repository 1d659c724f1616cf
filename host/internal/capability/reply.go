package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// reply is the answer to an op that was submitted, as its guest reads it.
type reply struct {
	o    *ops
	call call
	// off ends with the turn, or when it is called off.
	off <-chan struct{}
	// flight is the effect under way; nil for what was done at once, or is only
	// recorded.
	flight *flight
	// known says that rest and fault are all that is left to read.
	known bool
	rest  []byte
	fault *abi.Error
	// reserved is what the effect may cost at most.
	reserved swarm.Spend
	// late is a fault that is not recorded yet.
	late *abi.Error
	// ask is what a person is asked, if one is.
	ask *swarm.Ask
	// acts is the request of an action that the host does, nil for any other.
	acts []byte
	// tool is the call of a MAIL tool that leaves the host, nil for any other.
	tool *abi.MailRequest
	// gone says that the guest has closed it.
	gone bool
}

var _ sandbox.Answer = (*reply)(nil)

// done is the reply of what was done at once.
func (o *ops) done(c call, body []byte, fault *abi.Error) *reply {
	return &reply{o: o, call: c, known: true, rest: body, fault: fault}
}

// look takes the answer that an earlier attempt has recorded, if it has.
func (r *reply) look() {
	if e := r.o.j.past.answers[r.call.path]; e != nil && !r.known {
		r.know(e.Answer, e.Err)
	}
}

func (r *reply) know(rest []byte, fault *abi.Error) {
	r.known, r.rest, r.fault = true, rest, fault
	if r.acts != nil {
		r.o.act(r.call, r.acts, rest, fault)
	}
	if r.ask != nil && r.o.turn != nil && r.o.action == nil {
		var told abi.MailResponse
		_ = json.Unmarshal(rest, &told) // there is none beside a fault
		r.o.turn.Told(*r.ask, told.Text, fault)
	}
	if r.tool != nil && r.o.turn != nil {
		r.o.turn.Discovered(r.call.path, *r.tool, rest, fault)
	}
}

// ready reports whether there is something to read.
func (r *reply) ready() bool {
	r.look()
	return r.known || r.late != nil || r.flight != nil && r.flight.ready()
}

// settle records an answer that is all there. It is durable before the guest
// learns of it.
func (r *reply) settle() *abi.Error {
	if r.known {
		return nil
	}
	rest, fault := []byte(nil), r.late
	if fault == nil {
		if !r.flight.landed() {
			return nil
		}
		rest, fault = r.flight.left()
		r.o.j.clock.Advance(r.o.now())
	}
	if r.o.j.life.Err() != nil {
		return abi.Errorf(abi.CodeCancelled, r.call.op, "cancelled", "the turn is over")
	}
	e := r.call.entry(swarm.EntryAnswer)
	e.Answer, e.Err, e.Spend = rest, fault, r.correction()
	if err := r.o.j.flush(r.o.j.add(e)); err != nil {
		return r.o.j.lost(r.call.op, err)
	}
	r.know(rest, fault)
	return r.o.j.off(r.call.op)
}

// correction is how what was reserved differs from what the effect has cost. One
// that was sent by an earlier attempt may have cost all of it.
func (r *reply) correction() swarm.Spend {
	if r.flight == nil {
		return swarm.Spend{}
	}
	return r.flight.charged().Minus(r.reserved)
}

// calledOff is the fault of a call that only a person could answer, and nobody
// waits for any more.
func (r *reply) calledOff(ctx context.Context) *abi.Error {
	if r.late != nil || r.ask == nil {
		return r.late
	}
	return sandbox.CalledOff(ctx, r.call.op.String())
}

// all waits for the whole answer of a call.
func (r *reply) all(ctx context.Context) ([]byte, *abi.Error) {
	if _, ok := r.o.j.answer(r.call.path); ok {
		r.look()
		return r.rest, r.fault
	}
	if r.late = r.calledOff(ctx); r.late == nil && r.flight == nil {
		return nil, r.o.suspend(ctx, r.call)
	}
	for !r.ready() {
		select {
		case <-r.o.j.bell():
		case <-ctx.Done():
			r.late = sandbox.CalledOff(ctx, r.call.op.String())
		}
	}
	if off := r.settle(); off != nil {
		return nil, off
	}
	return r.rest, r.fault
}

// Read waits for the next bytes of the answer. Their time is the turn's.
func (r *reply) Read(ctx context.Context, p []byte) (int, *abi.Error) {
	j := r.o.j
	if off := j.off(r.call.op); off != nil {
		return 0, off
	}
	e, fault := j.again(call{path: r.call.path, op: r.call.op}, swarm.EntryRead)
	switch {
	case fault != nil:
		return 0, fault
	case e != nil:
		return r.readAgain(e, p)
	}
	r.look()
	for !r.known {
		n, fault, ok := r.fetch(ctx, p)
		if ok {
			return n, fault
		}
	}
	return r.readRest(p)
}

// fetch takes what has come of a stream. ok is false when there is more to do.
func (r *reply) fetch(ctx context.Context, p []byte) (n int, fault *abi.Error, ok bool) {
	if r.late = r.calledOff(ctx); r.flight == nil || r.late != nil {
		return r.finish(ctx)
	}
	if n := r.flight.take(p); n > 0 {
		r.o.j.clock.Advance(r.o.now())
		return r.readSome(p[:n], bytes.Clone(p[:n]), nil)
	}
	if r.flight.landed() {
		return r.finish(ctx)
	}
	select {
	case <-r.o.j.bell():
		return 0, nil, false
	case <-ctx.Done():
		return r.readSome(nil, nil, sandbox.CalledOff(ctx, r.call.op.String()))
	}
}

// finish settles what has ended.
func (r *reply) finish(ctx context.Context) (int, *abi.Error, bool) {
	if r.flight == nil && r.late == nil {
		return 0, r.o.suspend(ctx, r.call), true
	}
	off := r.settle()
	return 0, off, off != nil
}

// readRest reads from an answer that is all there.
func (r *reply) readRest(p []byte) (int, *abi.Error) {
	n := copy(p, r.rest)
	var fault *abi.Error
	if n == 0 {
		fault = r.fault
	}
	r.rest = r.rest[n:]
	n, fault, _ = r.readSome(p[:n], nil, fault)
	return n, fault
}

// readSome records a read.
func (r *reply) readSome(read, chunk []byte, fault *abi.Error) (int, *abi.Error, bool) {
	e := r.call.entry(swarm.EntryRead)
	e.Len, e.Answer, e.Err = len(read), chunk, fault
	r.o.j.add(e)
	return len(read), fault, true
}

// readAgain reads what was read before.
func (r *reply) readAgain(e *swarm.Entry, p []byte) (int, *abi.Error) {
	r.look()
	from := e.Answer
	if from == nil && r.known {
		from = r.rest[:min(e.Len, len(r.rest))]
		r.rest = r.rest[len(from):]
	}
	if e.Err == nil && (len(from) != e.Len || e.Len > len(p)) {
		return 0, r.o.j.diverged(r.call.op, "the turn did not repeat itself at entry %d: it reads %d bytes of call %s, recorded %d",
			e.N, min(len(from), len(p)), r.call.path, e.Len)
	}
	return copy(p, from), e.Err
}

// Close calls the effect off, if it still runs, and waits until it is over.
func (r *reply) Close() {
	r.gone = true
	j := r.o.j
	if r.flight != nil {
		r.flight.Close()
		j.aloft = slices.DeleteFunc(j.aloft, func(other *reply) bool { return other == r })
	}
	r.look()
	switch {
	case r.known || j.ended != nil:
	case j.behind():
		if e := &j.past.entries[j.past.pos]; e.Kind == swarm.EntryCancel && e.Call == r.call.path {
			j.pass(e)
		}
	case !closed(r.off):
		// What ends the turn closes everything, and is no deed of the guest.
		e := r.call.entry(swarm.EntryCancel)
		e.Spend = r.correction()
		j.add(e)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
