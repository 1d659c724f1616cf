package uamp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
)

// socketBinding reaches a partner by a WebSocket (U-054), or by a call of gRPC with the same
// frames (U-055). An envelope is taken when its receipt or its answer has come; deltas and
// acknowledgements go as frames beside envelopes.
type socketBinding struct {
	g   *Gateway
	p   gateway.Partner
	key socketKey
	// socket is what the attempt uses, nil for none yet.
	socket *partnerSocket
	// stream waits for the deltas of the attempt's stream, nil before its envelope is sent;
	// first is one that came in place of a receipt.
	stream *awaitedFrame
	first  *frameFor
	// unfinished means that the last delta of a stream has not come.
	unfinished bool
	// acked is the last delta that is acknowledged, -1 for none.
	acked int
	// reopened means that the stream was opened on another socket than its envelope was sent on, and
	// has brought nothing there.
	reopened bool
	// repeated means that the envelope was sent again there: a partner that refuses it for that has
	// the first one.
	repeated bool
	// renewed means that the attempt shows another token than one that the partner has refused.
	renewed bool
}

func (b *socketBinding) close() {
	b.leaveStream()
	if b.socket != nil {
		b.g.partnerSockets.release(b.socket, b.unfinished)
		b.socket = nil
	}
}

func (b *socketBinding) leaveStream() {
	if b.stream != nil {
		b.stream.leave()
		b.stream, b.first = nil, nil
	}
}

// connect makes sure that the attempt has a socket that is open. An error means that nothing was
// sent on it.
func (b *socketBinding) connect(ctx context.Context) (err error) {
	if b.socket != nil && b.socket.ctx.Err() == nil {
		return nil
	}
	b.unfinished = false // it ended with its socket
	b.close()
	if b.socket, err = b.g.partnerSockets.acquire(ctx, b.key, b.p); err != nil {
		return unconnected(err)
	}
	if err = b.socket.ended(); err != nil {
		return unconnected(b.refusedByClose(b.replaceToken(err)))
	}
	return nil
}

// post sends the envelope. One that meets a refused token is sent once more, with another.
func (b *socketBinding) post(ctx context.Context, a *attempt) (posted, error) {
	got, err := b.postOnce(ctx, a)
	if errors.Is(err, errTokenReplaced) {
		got, err = b.postOnce(ctx, a)
	}
	return got, err
}

func (b *socketBinding) postOnce(ctx context.Context, a *attempt) (got posted, err error) {
	if err := b.connect(ctx); err != nil {
		return got, err
	}
	stream := a.e.Stream
	if !a.asks() {
		stream = ""
	}
	in := b.socket.awaited.await(a.e.ID, stream)
	b.acked = -1
	kept := false
	defer func() {
		if !kept {
			in.leave()
		}
	}()
	b.socket.write(a.text, nil)
	f, s, err := b.receipt(ctx, a, in)
	if err != nil {
		return got, err
	}
	b.confirmToken()
	a.sent = true
	switch {
	case f.isDelta():
		b.first = &f
	case s.Intent != envelope.Progress:
		return posted{answer: &s}, nil
	case stream == "":
		return got, nil
	case s.Stream != "" && !in.isOf(s.Stream):
		return got, gateway.Refuse("the partner's receipt has the stream_id of another envelope: %.200q", s.Stream)
	}
	kept, b.stream = true, in
	b.unfinished = f.isDelta() || s.Stream != "" // else the answer may come otherwise
	return posted{stream: b.streamNamed(cmp.Or(s.Stream, stream))}, nil
}

// receipt waits for what comes first of a receipt, an answer and a delta of the stream.
func (b *socketBinding) receipt(ctx context.Context, a *attempt, in *awaitedFrame) (f frameFor, s envelope.Signed, err error) {
	for {
		if f, err = b.next(ctx, in); err != nil {
			return f, s, b.refusedByClose(b.replaceToken(err))
		}
		if f.isDelta() {
			return f, s, nil
		}
		s, err = a.readReply(ctx, f.text)
		switch {
		case err != nil:
			return f, s, notCounted(ctx, err, "the partner's answer does not count: %v", err)
		case s.Intent == envelope.Error:
			return f, s, b.replaceToken(&signedRefusal{s, faultIn(s)})
		case s.Intent == envelope.Progress || !a.asks() || a.isAnswer(s):
			return f, s, nil
		}
		b.socket.takeOther(f.text)
	}
}

// next waits for a frame.
func (b *socketBinding) next(ctx context.Context, in *awaitedFrame) (frameFor, error) {
	select {
	case f := <-in.frames:
		return f, nil
	case <-b.socket.ctx.Done():
		return frameFor{}, b.socket.ended()
	case <-ctx.Done():
		return frameFor{}, context.Cause(ctx)
	}
}

// ackPause is the time without a delta after which those that came are acknowledged: the partner
// may have a smaller window than the envelope wants.
const ackPause = 5 * time.Second

// nextDelta waits for a frame of a stream. Where none comes the partner may have a smaller window than
// the envelope wants, or may not open a stream by an acknowledgement: of a stream without a delta so
// far the envelope is sent again, as after a connection that was lost before its receipt.
func (b *socketBinding) nextDelta(ctx context.Context, r *streamReader, stream string) (frameFor, error) {
	last := r.assembly.Next() - 1
	isUnacked, isUnopened := last > b.acked, b.reopened && last < 0 && r.event == nil
	if !isUnacked && !isUnopened {
		return b.next(ctx, b.stream)
	}
	timed, cancel := context.WithTimeout(ctx, ackPause)
	defer cancel()
	f, err := b.next(timed, b.stream)
	if timed.Err() == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return f, err
	}
	if isUnacked {
		b.acknowledgeUpTo(stream, last)
	} else if b.reopened = false; r.seal() == nil {
		b.repeated = true
		b.socket.write(r.text, nil)
	}
	return b.next(ctx, b.stream)
}

// refusedByClose is what a closed socket means for the envelope whose receipt has not come.
func (b *socketBinding) refusedByClose(err error) error {
	var closed websocket.CloseError
	var ended *callEndError
	code, reason := websocket.StatusCode(0), ""
	switch {
	case errors.As(err, &closed):
		code, reason = closed.Code, fmt.Sprintf("the partner closes the connection: %d %.200s", closed.Code, closed.Reason)
	case errors.As(err, &ended):
		code, reason = ended.code, fmt.Sprintf("%.250s", ended)
	}
	switch code {
	case websocket.StatusInvalidFramePayloadData, websocket.StatusUnsupportedData, websocket.StatusMessageTooBig:
		if !b.socket.awaited.isLast() {
			return err // it may be about another envelope
		}
	case websocket.StatusPolicyViolation: // an envelope that it had taken before has its receipt
	default:
		return err
	}
	return gateway.Refuse("%s", reason)
}

// read reads a stream. Where it meets a refused token it goes on with another.
func (b *socketBinding) read(ctx context.Context, r *streamReader, at string) error {
	err := b.readOnce(ctx, r, at)
	if errors.Is(err, errTokenReplaced) {
		err = b.readOnce(ctx, r, at)
	}
	return err
}

func (b *socketBinding) readOnce(ctx context.Context, r *streamReader, at string) error {
	r.name = ""
	if b.stream == nil || !b.stream.isOf(streamIn(at)) || b.socket.ctx.Err() != nil {
		if err := b.open(ctx, r, streamIn(at)); err != nil {
			return err
		}
	}
	defer func() {
		if b.leaveStream(); b.unfinished {
			b.close() // its partner would not write the stream again on the same socket
		}
	}()
	if f := b.first; f != nil {
		if err := b.take(ctx, r, *f); err != nil {
			return err
		}
	}
	for {
		f, err := b.nextDelta(ctx, r, streamIn(at))
		if err == nil {
			err = b.take(ctx, r, f)
		}
		switch {
		case err == nil:
			b.confirmToken()
			continue
		case refusesToken(err):
			err = b.replaceToken(err)
		}
		if denied(err) {
			err = errStreamDenied // alone: another attempt reads it
		}
		return err
	}
}

// open has the partner write a stream on the socket, from the first delta on that r does not
// have (U-064).
func (b *socketBinding) open(ctx context.Context, r *streamReader, stream string) error {
	b.leaveStream()
	switch err := b.connect(ctx); {
	case errors.As(err, new(*gateway.Refusal)) || denied(err):
		return fmt.Errorf("%w: %w", errStreamDenied, err)
	case err != nil:
		return err
	}
	b.stream, b.unfinished = b.socket.awaited.await(r.e.ID, stream), true
	b.acknowledgeUpTo(stream, r.assembly.Next()-1)
	b.reopened = true
	return nil
}

// take gives r a frame of its stream, or the envelope that answers in its place.
func (b *socketBinding) take(ctx context.Context, r *streamReader, f frameFor) error {
	if f.isDelta() {
		if err := refusedRead(f.text); err != nil {
			b.unfinished = false
			return err
		}
		err := r.take(ctx, f.text)
		b.unfinished = r.last == nil
		return err
	}
	s, err := r.readReply(ctx, f.text)
	if err != nil {
		r.trouble = fmt.Errorf("an envelope about it does not count: %v", err)
		return nil // it is no answer
	}
	if s.Intent == envelope.Progress {
		if content, err := s.Body.Decode(maxErrorText); err == nil {
			r.progress(ctx, content)
		}
		return nil
	}
	if s.Ext[extAnswer] != nil || !r.isAnswer(s) { // the stream has what it confirms, and goes on after an event
		b.socket.takeOther(f.text)
		return nil
	}
	fault := faultIn(s)
	switch {
	case s.Intent == envelope.Error && b.repeated && refusesRepeat(fault):
		r.trouble = repeatRefused(fault)
		return nil
	case s.Intent == envelope.Error && fault.Code.Retry():
		b.unfinished = false
		return &gateway.StatusError{Code: fault.Code.Status(), RetryAfter: fault.RetryAfter} // the stream is read again
	}
	b.unfinished = false
	r.reply = &s
	return errEnded
}

// refusedRead returns why the partner does not write a stream, if that is what a delta has.
func refusedRead(text []byte) error {
	var d struct {
		Type    envelope.DeltaType
		Payload struct {
			Code    envelope.Code
			Details struct{ Ack *int }
		}
	}
	if json.Unmarshal(text, &d) != nil || d.Type != envelope.DeltaError || d.Payload.Details.Ack == nil {
		return nil
	}
	switch d.Payload.Code {
	case envelope.UnknownRecipient:
		return errStreamGone
	case envelope.Unauthenticated, envelope.Unauthorized:
		return errors.Join(errStreamDenied, &gateway.StatusError{Code: d.Payload.Code.Status()})
	}
	return &gateway.StatusError{Code: d.Payload.Code.Status()}
}

func (b *socketBinding) acknowledge(_ context.Context, _ *streamReader, d envelope.Delta) {
	b.acknowledgeUpTo(d.Stream, d.Seq)
}

// acknowledgeUpTo acknowledges the deltas of a stream up to a number, -1 for none.
func (b *socketBinding) acknowledgeUpTo(stream string, seq int) {
	b.acked = seq
	s := b.socket
	s.acks.put(stream, func() { s.writeAck(stream, seq) })
}

// writeAck writes an acknowledgement. A partner that does not read it has as much time as it goes
// on to send: pings and the ends of attempts end what it waits for.
func (s *partnerSocket) writeAck(stream string, seq int) {
	payload, err := json.Marshal(map[string]int{"ack": seq})
	if err == nil {
		var text []byte
		text, err = json.Marshal(envelope.Delta{Seq: max(0, seq), Stream: stream, Time: time.Now(), Type: envelope.DeltaProgress, Payload: payload})
		if err == nil {
			err = s.frames.writeFrame(s.ctx, text)
		}
	}
	if err != nil {
		s.end(err)
	}
}

// unconnected is why there is no socket. No envelope has left.
func unconnected(err error) error {
	if outcomeOf(err).State == gateway.Unanswered {
		return fmt.Errorf("%w: the partner cannot be reached: %w", gateway.ErrBusy, err)
	}
	return err
}

// denied reports whether a socket was closed since its partner lets its caller in no more.
func denied(err error) bool {
	return websocket.CloseStatus(err) == websocket.StatusPolicyViolation || isDeniedCall(err)
}
