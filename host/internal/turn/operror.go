package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"skep/abi"
)

// ImportError is an error of an import such as wait or read, by its name. The
// error of an op is made with [abi.Errorf].
func ImportError(code abi.Code, name, reason, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Op: name, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// CancelledError is what an op or an import, by its name, answers once its context
// has ended; nil before.
func CancelledError(ctx context.Context, name string) *abi.Error {
	if ctx.Err() == nil {
		return nil
	}
	return ImportError(abi.CodeCancelled, name, "cancelled", "%v", ErrCancelled)
}

// RequestTooLarge refuses a request of more than [MaxRequest] bytes.
func RequestTooLarge(op abi.Op, size int) *abi.Error {
	return abi.Errorf(abi.CodeLimit, op, "request", "a request of %d bytes, at most %d", size, MaxRequest)
}

// TooManyHandles refuses to open another handle.
func TooManyHandles(name string) *abi.Error {
	return ImportError(abi.CodeLimit, name, "handles", "at most %d handles are open at once; close some", MaxHandles)
}

// UnknownHandle refuses a handle that is not open.
func UnknownHandle(name string, handle int32) *abi.Error {
	return ImportError(abi.CodeNotFound, name, "handle", "handle %d is not open", handle)
}

// WaitCountError refuses a wait for no handle, or for more than [MaxWait].
func WaitCountError(n int) *abi.Error {
	return ImportError(abi.CodeInvalid, abi.ImportWait, "handles", "%d handles, from 1 to %d", n, MaxWait)
}

// TooManyCalls refuses an op beyond the budget of calls. Its text names the key
// that an operator can raise: people often see nothing but the agent's report of
// this error.
func TooManyCalls(op abi.Op, l Limits) *abi.Error {
	return abi.Errorf(abi.CodeLimit, op, "host_calls",
		"the turn has made its %d host calls; %s allows more", l.HostCalls, KeyHostCalls)
}

// TooManyBytes refuses an op beyond the budget of bytes: what is too large, and how
// many bytes are left. Its text names the key that an operator can raise.
func TooManyBytes(op abi.Op, what string, left int64, l Limits) *abi.Error {
	return abi.Errorf(abi.CodeLimit, op, "host_bytes",
		"%s, and the turn may move %d of its %d any more; %s allows more", what, left, l.HostBytes, KeyHostBytes)
}

// NotGranted refuses an op before the first turn of an agent, while it starts.
func NotGranted(op abi.Op) *abi.Error {
	return abi.Errorf(abi.CodeDenied, op, "start", "%s is not granted while a module starts", op)
}

// NoOps refuses an op of a turn without [Ops].
func NoOps(op abi.Op) *abi.Error {
	return abi.Errorf(abi.CodeUnsupported, op, "op", "this host has no ops")
}

// SanitizeError returns a copy of an error as an agent gets it: with the code of an
// error and a bounded message.
func SanitizeError(err *abi.Error) *abi.Error {
	sane := *err
	if sane.Code <= abi.CodeOK { // otherwise the agent would read it as success
		sane.Code = abi.CodeInternal
	}
	if len(sane.Message) > abi.MaxErrorMessage {
		sane.Message = strings.ToValidUTF8(sane.Message[:abi.MaxErrorMessage], "")
	}
	return &sane
}

// EncodeError returns the JSON that an agent reads of an error with last_error.
func EncodeError(err *abi.Error) []byte {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // the body is not HTML, and people read it
	failed := enc.Encode(struct {
		Code string `json:"code"`
		*abi.Error
	}{err.Code.String(), err})
	if failed != nil {
		return nil // strings and a number always encode
	}
	return bytes.TrimRight(body.Bytes(), "\n")
}
