package uamp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
)

// busyPause is when a message that met a limit may be sent again.
const busyPause = 10 * time.Second

// kinds are the errors of the runtime as the protocol has them.
var kinds = []struct {
	err     error
	code    envelope.Code
	details map[string]any
}{
	{gateway.ErrUnknown, envelope.UnknownRecipient, nil},
	{gateway.ErrConflict, envelope.IllegalState, nil},
	{gateway.ErrDenied, envelope.Unauthorized, nil},
	{gateway.ErrInvalid, envelope.Malformed, nil},
	{gateway.ErrBusy, envelope.Busy, nil},
	{gateway.ErrDraining, envelope.Busy, map[string]any{"reason": "stopping"}},
	{gateway.ErrElsewhere, envelope.Busy, nil},
	{state.ErrFull, envelope.Busy, nil},
}

// faultOf returns an error as its sender may see it. A fault of the host is logged and
// shown without its text.
func (g *Gateway) faultOf(err error) *envelope.Fault {
	var f *envelope.Fault
	if errors.As(err, &f) {
		return f
	}
	var rate *gateway.RateError
	if errors.As(err, &rate) {
		return &envelope.Fault{Code: envelope.TooMany, Text: err.Error(), RetryAfter: rate.Wait}
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			f = &envelope.Fault{Code: k.code, Text: err.Error(), Details: k.details}
			if k.code == envelope.Busy {
				f.RetryAfter = busyPause
			}
			return f
		}
	}
	if !errors.Is(err, context.Canceled) {
		g.Log.Error("uamp: an envelope failed", "error", err)
	}
	return &envelope.Fault{Code: envelope.Internal, Text: "the host could not do this", RetryAfter: busyPause}
}

// errorBody is the body of an error (U-104).
type errorBody struct {
	Code       envelope.Code  `json:"code"`
	Message    string         `json:"message"`
	Retry      bool           `json:"retry"`
	RetryAfter int            `json:"retry_after,omitempty"` // seconds
	Details    map[string]any `json:"details,omitempty"`
}

func bodyOf(f *envelope.Fault) errorBody {
	return errorBody{Code: f.Code, Message: f.Text, Retry: f.Code.Retry(), RetryAfter: seconds(f.RetryAfter), Details: f.Details}
}

// seconds is a time in whole seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// refuse answers an envelope that was not taken with a signed error. An error of others
// gets none: errors do not answer each other.
func (g *Gateway) refuse(w http.ResponseWriter, c gateway.Caller, e envelope.Envelope, err error) {
	f := g.faultOf(err)
	if e.From == "" || e.Intent == envelope.Error {
		g.refuseUnsigned(w, f)
		return
	}
	text, err := g.signedError(g.answerer(c, e), e, f)
	if err != nil {
		g.Log.Error("uamp: an error cannot be signed", "error", err)
		g.refuseUnsigned(w, f)
		return
	}
	writeRefusal(w, f, envelope.MediaType+";v=1", text)
}

// writeAccepted answers an envelope that was taken. Those of its recipients that there are
// not are told by a signed error of the host.
func (g *Gateway) writeAccepted(w http.ResponseWriter, e envelope.Envelope, x received) {
	if len(x.missing) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	text, err := g.signedError(g.host.String(), e, missingFault(x.missing))
	if err != nil { // it was taken all the same
		g.Log.Error("uamp: an error cannot be signed", "error", err)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", envelope.MediaType+";v=1")
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(text) // the caller may have left
}

// missingFault names the recipients that there are not of an envelope that was taken.
func missingFault(to []string) *envelope.Fault {
	return &envelope.Fault{Code: envelope.UnknownRecipient, Text: "the others have it; there is no such recipient as these", Details: map[string]any{"to": to}}
}

// answerer is who answers an envelope: whom it names first of those who are here, unless
// the caller may not know one of them. Then it is the host.
func (g *Gateway) answerer(c gateway.Caller, e envelope.Envelope) string {
	if _, missing, err := g.recipients(c, e); err == nil && len(missing) == 0 {
		for _, id := range e.Recipients() {
			if a, here := g.addressOf(id); here {
				from, _ := g.didOf(a) // recipients are exposed by a DID
				return from
			}
		}
	}
	return g.host.String()
}

// signedError is the error for an envelope.
func (g *Gateway) signedError(from string, about envelope.Envelope, f *envelope.Fault) ([]byte, error) {
	body, err := json.Marshal(bodyOf(f))
	if err != nil {
		return nil, err
	}
	return g.sign(envelope.Envelope{
		ID: envelope.NewID(), Time: time.Now(), From: from, To: []string{about.From}, Intent: envelope.Error,
		ReplyTo: about.ID, Stream: about.Stream, Window: envelope.DefaultWindow, Body: envelope.NewBody("application/json", body),
	})
}

// sign signs an envelope of ours for its sender (U-024).
func (g *Gateway) sign(e envelope.Envelope) ([]byte, error) {
	key, err := g.Keys.signer(e.From, time.Now())
	if err != nil {
		return nil, err
	}
	return e.Seal(key.Sign)
}

// problem is an error for whom nothing is signed (https://www.rfc-editor.org/rfc/rfc9457).
type problem struct {
	Title  string        `json:"title"`
	Status int           `json:"status"`
	Detail string        `json:"detail"`
	Code   envelope.Code `json:"code"`
}

// refuseUnsigned answers a caller who has shown nothing, or does not say who he is.
func (g *Gateway) refuseUnsigned(w http.ResponseWriter, f *envelope.Fault) {
	text, err := json.Marshal(problem{http.StatusText(f.Code.Status()), f.Code.Status(), f.Text, f.Code})
	if err != nil {
		g.Log.Error("uamp: an error cannot be written", "error", err)
	}
	writeRefusal(w, f, "application/problem+json", text)
}

func writeRefusal(w http.ResponseWriter, f *envelope.Fault, mediaType string, text []byte) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(f.RetryAfter)))
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(f.Code.Status())
	_, _ = w.Write(text) // the caller may have left
}
