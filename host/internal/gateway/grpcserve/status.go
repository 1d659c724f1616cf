package grpcserve

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// retryField has in a trailer or a header when a call may be tried again, in seconds.
const retryField = "Retry-After"

// SetStatus replaces the status in the header or the trailer of a call.
func SetStatus(h http.Header, st *status.Status) {
	h.Set("Grpc-Status", strconv.Itoa(int(st.Code())))
	h.Set("Grpc-Message", url.PathEscape(st.Message()))
	if p := st.Proto(); len(p.GetDetails()) > 0 {
		if raw, err := proto.Marshal(p); err == nil {
			h.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(raw))
		}
	}
}

// Refuse answers a call that no method has seen
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, Trailers-Only). A caller may
// try again after a time that is not 0.
func Refuse(w http.ResponseWriter, st *status.Status, retry time.Duration) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	SetStatus(h, st)
	if retry > 0 {
		h.Set(retryField, Seconds(retry))
	}
	w.WriteHeader(http.StatusOK)
}

// Seconds is a time as Retry-After has it: whole seconds, at least one.
func Seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// Fault is why the library has ended a call for a message that it could not read.
type Fault struct {
	// TooLarge is set where the message has more bytes than it may have.
	TooLarge bool
	Text     string
}

// FaultOf returns the fault in the status of a call that was served, if the library has ended it
// by itself. isOwn reports whether a text is of a status that a method has given. The status is in
// the trailer, which leaves after the handler.
func FaultOf(h http.Header, isOwn func(text string) bool) (f Fault, ok bool) {
	text, err := url.PathUnescape(h.Get("Grpc-Message"))
	code, _ := strconv.Atoi(h.Get("Grpc-Status"))
	if err != nil || isOwn(text) {
		return f, false
	}
	switch codes.Code(code) {
	case codes.ResourceExhausted:
		return Fault{TooLarge: true, Text: text}, true
	case codes.Internal:
		return Fault{Text: text}, !strings.HasPrefix(text, "grpc: error while ") // it writes
	}
	return f, false
}
