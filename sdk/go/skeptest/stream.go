package skeptest

import (
	"bytes"
	"encoding/json"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
)

// Stream is an answer that takes its time, comes in pieces, or fails late. An
// agent that calls the op gets it as one.
type Stream struct {
	// After is how long the turn's clock must move before there is something to
	// read: waiting and reading move it.
	After time.Duration
	// Chunks are read one by one. No JSON is made of them.
	Chunks []string
	// Err, if set, stands at the end.
	Err error
}

// stream is the answer to one op as it is read.
type stream struct {
	op     skep.Op
	call   int // its place among the host's calls
	ready  time.Time
	chunks [][]byte
	err    *skep.Error
}

// start runs an op. An error it gives at once has happened; one of a [Stream]
// comes when that is read.
func (h *host) start(op abi.Op, raw []byte, submitted bool) (*stream, *skep.Error) {
	call := Call{Op: skep.Op(op), Request: bytes.Clone(raw), Submitted: submitted}
	s := &stream{op: call.Op, call: len(h.calls), ready: h.now}
	h.calls = append(h.calls, call)
	if h.off && call.Op != skep.OpLog {
		return nil, h.failed(s, calledOff(call.Op.String()))
	}
	answer, err := h.answer(call.Op, call.Request)
	if err != nil {
		return nil, h.failed(s, refusal(call.Op, err))
	}
	if rsp, ok := answer.(skep.ChatResponse); ok && submitted {
		answer = pieces(rsp)
	}
	if scripted, ok := answer.(Stream); ok {
		s.ready = h.now.Add(scripted.After)
		for _, c := range scripted.Chunks {
			s.chunks = append(s.chunks, []byte(c))
		}
		if scripted.Err != nil {
			s.err = refusal(call.Op, scripted.Err)
		}
		return s, nil
	}
	s.chunks = [][]byte{mustJSON(answer)}
	return s, nil
}

// failed notes an op's failure, which may be that the turn is called off.
func (h *host) failed(s *stream, e *skep.Error) *skep.Error {
	h.calls[s.call].Err = e
	h.off = h.off || e.Code == skep.Cancelled
	return e
}

// due moves the clock to where an answer is there.
func (h *host) due(s *stream) {
	if h.now.Before(s.ready) {
		h.now = s.ready
	}
	if s.err != nil && len(s.chunks) == 0 {
		h.failed(s, s.err)
	}
}

// Submit starts an op.
func (h *host) Submit(op abi.Op, req []byte) int64 {
	if len(h.open) == maxOpen {
		return -int64(h.fault(&skep.Error{Code: skep.Limit, Op: skep.Op(op).String(), Reason: "handles", Message: "64 handles are open"}))
	}
	s, err := h.start(op, req, true)
	if err != nil {
		return -int64(h.fault(err))
	}
	h.opened++
	h.open[h.opened] = s
	return int64(h.opened)
}

// maxOpen is how many handles a turn may have open.
const maxOpen = 64

// Wait finds the first that is ready, and moves the clock to that time.
func (h *host) Wait(handles []int32, timeoutMS int32) int32 {
	first := -1
	var at time.Time
	for i, handle := range handles {
		s, ok := h.open[handle]
		if !ok {
			return -int32(h.fault(noHandle("wait")))
		}
		ready := s.ready
		if ready.Before(h.now) {
			ready = h.now
		}
		if first < 0 || ready.Before(at) {
			first, at = i, ready
		}
	}
	end := h.now.Add(time.Duration(timeoutMS) * time.Millisecond)
	switch {
	case h.off:
		return -int32(h.fault(calledOff("wait")))
	case first < 0:
		return -int32(h.fault(&skep.Error{Code: skep.Invalid, Op: "wait", Message: "no handles"}))
	case timeoutMS >= 0 && at.After(end):
		h.now = end
		return -int32(h.fault(&skep.Error{Code: skep.Deadline, Op: "wait", Reason: "timeout", Message: "nothing is ready yet"}))
	}
	if h.due(h.open[handles[first]]); h.off {
		return -int32(h.fault(calledOff("wait")))
	}
	return int32(first)
}

// Read gives what is left of the piece that comes next.
func (h *host) Read(handle int32, to []byte) int64 {
	s, ok := h.open[handle]
	if !ok {
		return -int64(h.fault(noHandle("read")))
	}
	for len(s.chunks) > 0 && len(s.chunks[0]) == 0 {
		s.chunks = s.chunks[1:]
	}
	if h.off && (h.now.Before(s.ready) || len(s.chunks) == 0) {
		return -int64(h.fault(h.failed(s, calledOff(s.op.String()))))
	}
	h.due(s)
	if len(s.chunks) > 0 {
		n := copy(to, s.chunks[0])
		s.chunks[0] = s.chunks[0][n:]
		return int64(n)
	}
	if s.err != nil {
		return -int64(h.fault(h.failed(s, s.err)))
	}
	return 0
}

// Close forgets a handle.
func (h *host) Close(handle int32) {
	s, ok := h.open[handle]
	if !ok {
		return
	}
	delete(h.open, handle)
	unread := len(s.chunks) > 0 || s.err != nil || h.now.Before(s.ready)
	h.calls[s.call].Closed = unread && h.calls[s.call].Err == nil
}

// fault keeps an error for LastError.
func (h *host) fault(e *skep.Error) skep.Code {
	h.last, _ = json.Marshal(map[string]any{
		"code": e.Code.String(), "op": e.Op, "reason": e.Reason,
		"retry_after_ms": e.RetryAfter.Milliseconds(), "message": e.Message,
	})
	return e.Code
}

func calledOff(name string) *skep.Error {
	return &skep.Error{Code: skep.Cancelled, Op: name, Reason: "cancelled", Message: "the turn is called off"}
}

func noHandle(name string) *skep.Error {
	return &skep.Error{Code: skep.NotFound, Op: name, Reason: "handle", Message: "no such handle is open"}
}
