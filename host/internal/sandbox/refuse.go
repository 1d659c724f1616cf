package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"skep/abi"
)

// refuse keeps an error for last_error and returns what the guest gets.
func (r *run) refuse(err *abi.Error) uint64 {
	r.last = Told(err)
	return uint64(-int64(r.last.Code))
}

// Told is an error as an agent gets it, at either level of isolation.
func Told(err *abi.Error) *abi.Error {
	told := *err
	if told.Code <= abi.CodeOK { // a port's slip must not look like an answer
		told.Code = abi.CodeInternal
	}
	if len(told.Message) > abi.MaxErrorMessage {
		told.Message = strings.ToValidUTF8(told.Message[:abi.MaxErrorMessage], "")
	}
	return &told
}

// refuse32 is refuse for imports whose result is an i32.
func (r *run) refuse32(err *abi.Error) uint64 { return uint64(uint32(r.refuse(err))) }

// lastError is the answer of op last_error: nothing when nothing failed.
func (r *run) lastError() []byte {
	if r.last == nil {
		return nil
	}
	return ErrorBody(r.last)
}

// ErrorBody is the JSON that an agent reads of an error.
func ErrorBody(told *abi.Error) []byte {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // nothing here is HTML, and people read it
	err := enc.Encode(struct {
		Code string `json:"code"`
		*abi.Error
	}{told.Code.String(), told})
	if err != nil {
		return nil // strings and a number always encode
	}
	return bytes.TrimRight(body.Bytes(), "\n")
}

// fault is the error of an import by its own name.
func fault(code abi.Code, name, reason, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Op: name, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func outside(name string, ptr, size uint32) *abi.Error {
	return fault(abi.CodeInvalid, name, "pointer", "%d bytes at %d are not in the module's memory", size, ptr)
}

// TooManyHandles refuses one more open handle.
func TooManyHandles(name string) *abi.Error {
	return fault(abi.CodeLimit, name, "handles", "at most %d handles are open at once; close some", MaxHandles)
}

// NoHandle refuses a handle that is not open.
func NoHandle(name string, handle int32) *abi.Error {
	return fault(abi.CodeNotFound, name, "handle", "handle %d is not open", handle)
}

// TooManyCalls and [TooManyBytes] name the key that an operator can raise: the
// agent's text about it often is all that people see.
func TooManyCalls(op abi.Op, l Limits) *abi.Error {
	return abi.Errorf(abi.CodeLimit, op, "host_calls",
		"the turn has made its %d host calls; %s allows more", l.HostCalls, keyHostCalls)
}

// TooManyBytes says what is too much of what is left.
func TooManyBytes(op abi.Op, what string, left int64, l Limits) *abi.Error {
	return abi.Errorf(abi.CodeLimit, op, "host_bytes",
		"%s, and the turn may move %d of its %d any more; %s allows more", what, left, l.HostBytes, keyHostBytes)
}

func (r *run) tooManyBytes(op abi.Op, what string) *abi.Error {
	return TooManyBytes(op, what, r.bytesLeft(), r.limits)
}
