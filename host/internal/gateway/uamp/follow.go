package uamp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/stream"
	"skep/host/internal/gateway/wire"
)

// Limits of a foreign answer.
const (
	readWindow = 1024     // deltas before an acknowledgement
	maxAnswer  = 16 << 20 // bytes of all chunks
	maxPatches = 1 << 20  // bytes of all patches
	fewDeltas  = 16       // brought by a request, and fewer, make a pause
	impliedID  = "stream" // names the stream of deltas that do not (D-U4)
)

// Errors of streams that end an attempt, and not the message: the partner has it.
var (
	errStreamGone   = errors.New("the partner has the stream no more")
	errStreamDenied = errors.New("the partner does not show the stream: its credential may have changed")
)

// streamReader puts a foreign stream together.
type streamReader struct {
	*attempt
	assembly *stream.Assembly
	// texts are the chunks of text, binary the others.
	texts  strings.Builder
	binary bytes.Buffer
	chunks int64
	// patches make the answer of a stream that has no other.
	patches *stream.Patches
	pace    gateway.Pace
	// name is the stream_id of the deltas of one response, empty before one has it.
	name string
	// last is the last delta, nil before it came; reply is an envelope that has come in its
	// place.
	last  *envelope.Delta
	reply *envelope.Signed
	// event gets the chunks and patches of a subscription by their numbers, nil where they make
	// an answer.
	event func(ctx context.Context, n int, p stream.Piece) error
}

// follow reads a stream to its last delta. A response that ends before is followed by
// another request from the next delta on, which acknowledges those before it (U-065).
func (a *attempt) follow(ctx context.Context, at string) (answer, error) {
	r := &streamReader{attempt: a, assembly: stream.NewAssembly(a.e.Window, maxAnswer), patches: stream.NewPatches(maxPatches)}
	for {
		before, begun := r.assembly.Next(), time.Now()
		err := a.via.read(ctx, r, at)
		switch {
		case r.last != nil:
			return r.answer()
		case r.reply != nil:
			return a.g.answerIn(*r.reply), nil
		case ctx.Err() != nil:
			return answer{}, context.Cause(ctx)
		case isFinalFault(err):
			return answer{}, r.unreadable(at, err)
		case err != nil:
			a.trouble = r.unreadable(at, err)
		}
		if !gateway.Pause(ctx, r.pauseAfter(before, begun, err)) {
			return answer{}, context.Cause(ctx)
		}
	}
}

// unreadable says of a stream where and why it cannot be read on. What the stream is gone for has
// its meaning without that.
func (r *streamReader) unreadable(at string, err error) error {
	if errors.Is(err, errStreamGone) || errors.Is(err, errStreamDenied) {
		return err
	}
	text := fmt.Sprintf("the stream %.200s of %s cannot be read at delta %d: %v", at, r.e.To[0], r.assembly.Next(), err)
	var f *envelope.Fault
	if errors.As(err, &f) {
		return &envelope.Fault{Code: f.Code, Text: text, RetryAfter: f.RetryAfter, Details: f.Details}
	}
	if isFinalFault(err) {
		return gateway.Refuse("%s", text)
	}
	return errors.New(text)
}

// pauseAfter is the time before the next request for a stream, by what the last one has brought: a
// partner that ends each response early is not asked as fast as it answers.
func (r *streamReader) pauseAfter(before int, begun time.Time, err error) time.Duration {
	deltas := r.assembly.Next() - before
	if deltas == 0 {
		return r.pace.Pause(begun, max(outcomeOf(err).Wait, gateway.WaitIn(err)))
	}
	r.pace = gateway.Pace{}
	if deltas < fewDeltas {
		return fewPause
	}
	return 0
}

// isFinalFault reports whether another request would meet an error again. A gap is read
// once more from the delta that is missing (U-068), and a partner may be busy for a time.
func isFinalFault(err error) bool {
	var f *envelope.Fault
	if errors.As(err, &f) {
		return !f.Code.Retry()
	}
	return errors.Is(err, errStreamGone) || errors.Is(err, errStreamDenied) || errors.As(err, new(*gateway.Refusal)) || outcomeOf(err).State == gateway.Refused
}

// errEnded ends the reading of a response after the last delta.
var errEnded = errors.New("the stream has ended")

// take takes one delta.
func (r *streamReader) take(ctx context.Context, data []byte) error {
	d, err := r.g.reader.ReadDelta(data, impliedID)
	if err == nil {
		err = r.checkName(d)
	}
	if err != nil {
		return inDelta(err, data)
	}
	r.begun = true
	p, isNew, err := r.assembly.Add(d)
	if err != nil || !isNew {
		return inDelta(err, data)
	}
	if err := r.add(ctx, d, p); err != nil {
		return inDelta(err, data)
	}
	if d.Type.Ends() {
		d.Payload = bytes.Clone(d.Payload)
		r.last = &d
		return errEnded
	}
	if p.Ack {
		r.via.acknowledge(ctx, r, d)
	}
	return nil
}

// checkName refuses a delta of another stream than those before it in the response. One without a
// stream_id is of the response's (D-U4), and on another connection the stream may have another name
// (D-U9).
func (r *streamReader) checkName(d envelope.Delta) error {
	switch {
	case d.Stream == impliedID || d.Stream == r.name:
	case r.name == "":
		r.name = d.Stream
	default:
		return envelope.Faultf(envelope.Malformed, "its stream_id is %.100q, and the deltas before it have %.100q", d.Stream, r.name)
	}
	return nil
}

// maxShownDelta bounds what an error shows of a delta, in bytes.
const maxShownDelta = 200

// inDelta is an error with the begin of the delta that cannot be read.
func inDelta(err error, data []byte) error {
	var f *envelope.Fault
	if !errors.As(err, &f) {
		return err
	}
	shown := strings.ToValidUTF8(string(data[:min(len(data), maxShownDelta)]), "\uFFFD")
	return &envelope.Fault{Code: f.Code, Text: fmt.Sprintf("%s, in %q", f.Text, shown), Details: f.Details}
}

// add does with a piece what its type wants.
func (r *streamReader) add(ctx context.Context, d envelope.Delta, p stream.Piece) error {
	switch {
	case d.Type == envelope.DeltaProgress:
		r.progress(ctx, p.Payload)
	case r.event != nil && !d.Type.Ends():
		return r.event(ctx, d.Seq, p)
	case d.Type == envelope.DeltaChunk:
		r.chunk(ctx, p)
	case d.Type == envelope.DeltaPatch:
		return r.patches.Add(p.Payload)
	}
	return nil
}

// chunk keeps a piece of the answer. Text is shown to the readers of the task.
func (r *streamReader) chunk(ctx context.Context, p stream.Piece) {
	var known struct{ Text *string }
	if json.Unmarshal(p.Payload, &known) != nil || known.Text == nil {
		r.binary.Write(p.Data)
		return
	}
	r.texts.Write(p.Data)
	r.show(ctx, gateway.Piece{Kind: gateway.Chunk, Text: *known.Text})
}

// show shows a piece. It is no mail: who misses it reads the answer.
func (r *streamReader) show(ctx context.Context, p gateway.Piece) {
	p.N = r.chunks
	if p.Kind == gateway.Chunk {
		r.chunks++
	}
	_ = r.g.Runtime.Show(ctx, r.d, p)
}

func (r *streamReader) progress(ctx context.Context, payload json.RawMessage) {
	var told struct {
		Text string
		Pct  *float64
	}
	if json.Unmarshal(payload, &told) != nil { // it is shown as far as it is understood
		return
	}
	p := gateway.Piece{Kind: gateway.Progress, Text: told.Text}
	if told.Pct != nil && *told.Pct >= 0 && *told.Pct <= 100 {
		fraction := *told.Pct / 100
		p.Fraction = &fraction
	}
	if p.Text == "" && p.Fraction == nil { // as in the receipt of a repeat
		return
	}
	r.show(ctx, p)
}

// answer is what the stream has brought.
func (r *streamReader) answer() (answer, error) {
	got := answer{kind: string(r.last.Type), from: r.e.To[0], sum: sumOf(r.last.Payload)}
	switch r.last.Type {
	case envelope.DeltaDone:
		document, err := r.document()
		if err != nil {
			return answer{}, err
		}
		got.done(r.last.Payload, r.texts.String(), document, r.binary.Bytes())
	case envelope.DeltaCancel:
		var known struct{ Reason string }
		_ = json.Unmarshal(r.last.Payload, &known) // without a reason it is called off all the same
		got.code, got.body = "CANCELLED", known.Reason
	default:
		var known errorBody
		_ = json.Unmarshal(r.last.Payload, &known) // another form has no code
		got.code, got.body = string(known.Code), known.Message
		if got.code == "" {
			got.code = string(envelope.Internal)
		}
	}
	return got, nil
}

// document is what the stream's patches make, nil for none.
func (r *streamReader) document() (json.RawMessage, error) {
	document, err := r.patches.Document()
	if err == nil && document != nil {
		if _, err = wire.Canonical(document, wire.AsSent, maxPayloadDepth); err != nil {
			err = envelope.Faultf(envelope.Malformed, "the document that the patches make %v", err)
		}
	}
	return document, err
}

// maxPayloadDepth bounds the levels of what the last delta has, and of a patched document.
const maxPayloadDepth = 1000

// sumOf is the hash of what the last delta of a stream has, in its RFC 8785 form, empty
// where there is none.
func sumOf(payload json.RawMessage) string {
	text, err := wire.Canonical(payload, wire.RFC8785, maxPayloadDepth)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
