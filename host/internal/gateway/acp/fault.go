package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/wire"
)

// Codes of ERROR messages.
const (
	codeMalformed = "malformed"
	codeVersion   = "unsupported_version"
	codeReceiver  = "unknown_receiver"
	codeForbidden = "forbidden"
	codeDuplicate = "duplicate"
	codeTimeout   = "timeout"
	codeBusy      = "busy"
	codeInternal  = "internal"
)

// fault is why a message is refused, as its sender may see it.
type fault struct {
	code, text string
	details    map[string]any
	// retry means that the same message may be taken later.
	retry bool
	// wait is the time until then, 0 for busyPause.
	wait time.Duration
	// status is of HTTP, 0 for the code's.
	status int
}

func (f *fault) Error() string { return f.text }

// Cause is the code in the word of the host's logs.
func (f *fault) Cause() string {
	switch f.code {
	case codeReceiver:
		return "not_found"
	case codeForbidden:
		return "role"
	case codeDuplicate:
		return "conflict"
	case codeBusy:
		return "limit"
	case codeInternal:
		return "unavailable"
	}
	if f.status == http.StatusRequestEntityTooLarge {
		return "too_large"
	}
	return gateway.CauseInvalid
}

func malformed(format string, args ...any) error {
	return &fault{code: codeMalformed, text: fmt.Sprintf(format, args...)}
}

// asMalformed is the codec's refusal as a fault.
func asMalformed(err error) error {
	if f := new(fault); err == nil || errors.As(err, &f) {
		return err
	}
	return malformed("%v", err)
}

// tooLarge refuses a message above max_body.
func (g *Gateway) tooLarge() *fault {
	text := fmt.Sprintf("the message is larger than %d bytes; %s", g.MaxBody, wire.Remedy(Name, "max_body", g.MaxBody, MaxMessage))
	return &fault{code: codeMalformed, text: text, status: http.StatusRequestEntityTooLarge}
}

// kinds are the errors of the runtime as the protocol has them.
var kinds = []struct {
	err    error
	code   string
	status int
	retry  bool
}{
	{gateway.ErrUnknown, codeReceiver, http.StatusNotFound, false},
	{gateway.ErrConflict, codeDuplicate, http.StatusConflict, false},
	{gateway.ErrDenied, codeForbidden, http.StatusForbidden, false},
	{gateway.ErrInvalid, codeMalformed, http.StatusBadRequest, false},
	{gateway.ErrBusy, codeBusy, http.StatusTooManyRequests, true},
	{gateway.ErrDraining, codeBusy, http.StatusServiceUnavailable, true},
	{gateway.ErrElsewhere, codeBusy, http.StatusServiceUnavailable, true},
	{state.ErrFull, codeBusy, http.StatusInsufficientStorage, true},
}

// faultOf returns an error as its sender may see it. A fault of the host is logged and
// shown without its text.
func (g *Gateway) faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	if r := (*gateway.Refusal)(nil); errors.As(err, &r) {
		return &fault{code: codeMalformed, text: r.Reason} // another attempt would meet it again
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			f = &fault{code: k.code, text: err.Error(), status: k.status, retry: k.retry}
			if rate := (*gateway.RateError)(nil); errors.As(err, &rate) {
				f.wait = rate.Wait
			}
			return f
		}
	}
	if !errors.Is(err, context.Canceled) {
		g.Log.Error("acp: a message failed", "error", err)
	}
	return &fault{code: codeInternal, text: "the host could not do this", status: http.StatusInternalServerError, retry: true}
}

// busyPause is after which time a message may be taken that is not now.
const busyPause = 10 * time.Second

// retryAfter is the time until the message may be taken, in whole seconds, rounded up.
func (f *fault) retryAfter() string {
	return strconv.Itoa(int((cmp.Or(f.wait, busyPause) + time.Second - 1) / time.Second))
}

// httpStatus is the status of an answer that refuses.
func (f *fault) httpStatus() int {
	if f.status != 0 {
		return f.status
	}
	return http.StatusBadRequest
}
