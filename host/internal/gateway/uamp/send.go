package uamp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/turn/egress"
)

// posted is what a partner answers to an envelope.
type posted struct {
	// answer is an envelope in the response, nil for none.
	answer *envelope.Signed
	// stream is the address of the stream with the answer, empty if none was told.
	stream string
}

// post sends the envelope. A refusal that the partner has signed is a [envelope.Fault].
func (a *attempt) post(ctx context.Context) (posted, error) {
	a.tried = true
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(a.p.URL, "/")+messagesPath, bytes.NewReader(a.text))
	if err != nil {
		return posted{}, gateway.Refuse("the url of %s cannot be called: %v", a.p.Name, err)
	}
	req.Header.Set("Content-Type", envelope.MediaType+";v=1")
	a.d.Trace.Fields(req.Header.Set)
	resp, err := a.p.Client.Do(req)
	if err != nil {
		return posted{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, a.g.MaxBody+1))
	if err != nil {
		return posted{}, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return posted{}, a.refusalOf(ctx, resp, text)
	}
	a.sent = true
	var got posted
	if len(text) > 0 && isEnvelope(resp.Header) {
		s, err := a.readReply(ctx, text)
		if err != nil {
			return got, notCounted(ctx, err, "the partner's answer does not count: %v", err)
		}
		got.answer = &s
	}
	if at := resp.Header.Get("Location"); at != "" {
		got.stream, err = streamAt(req.URL, at)
	}
	if got.stream != "" && got.answer != nil && got.answer.Intent == envelope.Error {
		got.answer = nil // it is about another recipient
	}
	return got, err
}

// isEnvelope reports whether a response is said to be an envelope.
func isEnvelope(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == envelope.MediaType
}

// streamAt resolves a Location. It must be on the partner's own host: nobody else is
// shown the credential.
func streamAt(from *url.URL, location string) (string, error) {
	to, err := from.Parse(location)
	if err != nil || to.Host != from.Host || to.Scheme != from.Scheme || to.User != nil {
		return "", gateway.Refuse("the Location %.200q is not on the partner's own host", location)
	}
	return to.String(), nil
}

// refusalOf returns why the partner has not taken the envelope: what it has signed, or else
// the status.
func (a *attempt) refusalOf(ctx context.Context, resp *http.Response, text []byte) error {
	after := egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	if isEnvelope(resp.Header) {
		s, err := a.readReply(ctx, text)
		if err != nil {
			return notCounted(ctx, err, "the partner answers %d, and its error does not count: %v", resp.StatusCode, err)
		}
		f := faultIn(s)
		f.RetryAfter = max(f.RetryAfter, after)
		return &signedRefusal{s, f}
	}
	var p problem
	if json.Unmarshal(text, &p) == nil && (p.Code == envelope.Busy || p.Code == envelope.TooMany) {
		return &envelope.Fault{Code: p.Code, Text: "the partner answers " + string(p.Code), RetryAfter: after}
	}
	if p.Code != "" && resp.StatusCode < http.StatusInternalServerError {
		return gateway.Refuse("the partner answers %d: %.10s %.200s", resp.StatusCode, p.Code, p.Detail)
	}
	status := &gateway.StatusError{Code: resp.StatusCode}
	if after > 0 && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable) {
		return &envelope.Fault{Code: envelope.Busy, Text: status.Error(), RetryAfter: after}
	}
	return status
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
	case s.ReplyTo != a.e.ID:
		return s, errors.New("its reply_to is not the id of the envelope")
	case !slices.Contains(s.To, a.e.From):
		return s, fmt.Errorf("it is not to %s", a.e.From)
	case !answersFor(s.From, a.e.To[0]):
		return s, fmt.Errorf("it is from %.200s", s.From)
	}
	return s, a.g.proof.checkSignature(ctx, a.caller, s)
}

// notCounted returns an error for a reply that does not count: a refusal, unless the reply
// could not be checked now.
func notCounted(ctx context.Context, err error, format string, args ...any) error {
	var f *envelope.Fault
	if ctx.Err() != nil || errors.Is(err, unresolved) || errors.As(err, &f) && f.Code == envelope.TooMany {
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
