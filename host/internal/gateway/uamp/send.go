package uamp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/lifecycle"
)

// posted is what a partner answers to an envelope.
type posted struct {
	// answer is an envelope in the response, nil for none.
	answer *envelope.Signed
	// stream is the address of the stream with the answer, empty if none was told.
	stream string
}

// post sends the envelope.
func (a *attempt) post(ctx context.Context) (posted, error) {
	a.tried = true
	return a.via.post(ctx, a)
}

// signedRefusal is an error of the partner that it has signed.
type signedRefusal struct {
	by    envelope.Signed
	fault *envelope.Fault
}

// Error implements error.
func (r *signedRefusal) Error() string { return r.fault.Text }

// Unwrap returns the fault.
func (r *signedRefusal) Unwrap() error { return r.fault }

// repeatRefused is why the answer to a repeat is waited for.
func repeatRefused(f *envelope.Fault) error { return fmt.Errorf("its repeat was refused: %w", f) }

// refusesRepeat reports whether a fault may mean that the partner has the envelope: its stream is in
// use, or its id is known.
func refusesRepeat(f *envelope.Fault) bool {
	return f.Code == envelope.MissingSeq || f.Code == envelope.IllegalState
}

// faultIn is what an envelope with the intent error says.
func faultIn(s envelope.Signed) *envelope.Fault {
	var body errorBody
	content, err := s.Body.Decode(maxErrorText)
	if err != nil || json.Unmarshal(content, &body) != nil || body.Code == "" {
		return &envelope.Fault{Code: envelope.Internal, Text: strings.ToValidUTF8(string(content), "\uFFFD")}
	}
	return &envelope.Fault{Code: body.Code, Text: body.Message, RetryAfter: time.Duration(min(max(body.RetryAfter, 0), 1<<20)) * time.Second}
}

// maxErrorText bounds the content of an error, in bytes.
const maxErrorText = 64 << 10

// readReply reads an envelope in a response: of the agent that was written to, or of its
// host.
func (a *attempt) readReply(ctx context.Context, text []byte) (s envelope.Signed, err error) {
	if s, err = a.g.read(ctx, text); err != nil {
		return s, err
	}
	switch {
	case s.ReplyTo != a.e.ID && !(s.ReplyTo == "" && a.isStream(s.Stream)):
		return s, errors.New("its reply_to is not the id of the envelope, nor has it its stream_id alone")
	case !slices.Contains(s.To, a.e.From):
		return s, fmt.Errorf("it is not to %s", a.e.From)
	case !answersFor(s.From, a.e.To[0]):
		return s, fmt.Errorf("it is from %.200s", s.From)
	}
	return s, a.g.proof.checkSignature(ctx, a.caller, s)
}

// isStream reports whether the stream of the envelope has a name: its own, or the partner's.
func (a *attempt) isStream(name string) bool {
	return name != "" && (name == a.e.Stream || name == a.named)
}

// isAnswer reports whether a reply ends the envelope (U-088, U-089): a question about it does not.
func (a *attempt) isAnswer(s envelope.Signed) bool {
	next, err := lifecycle.Exchange{Intent: a.e.Intent, State: lifecycle.Begin(a.e.Intent)}.Next(s.Intent, false)
	return err == nil && next.Ended()
}

// notCounted returns an error for a reply that does not count: a refusal, unless the reply
// could not be checked now.
func notCounted(ctx context.Context, err error, format string, args ...any) error {
	var f *envelope.Fault
	if ctx.Err() != nil || errors.Is(err, unresolved) || errors.As(err, &f) && (f.Code == envelope.TooMany || f.Code == envelope.Busy) {
		return fmt.Errorf(format, args...)
	}
	return gateway.Refuse(format, args...)
}

// answersFor reports whether a DID may answer what was sent to another: it is that one, its
// host, or an agent of the host that was written to.
func answersFor(from, to string) bool { return from == to || isHostOf(from, to) || isHostOf(to, from) }

// isHostOf reports whether a DID is the one of the host of another.
func isHostOf(host, of string) bool {
	h, err := did.Parse(host)
	o, otherErr := did.Parse(of)
	return err == nil && otherErr == nil && h.Host() != "" && h.Host() == o.Host() && len(h.Path()) == 0
}
