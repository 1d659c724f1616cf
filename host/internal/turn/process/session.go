package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// session is the host's side of one turn in a process: its ops, within its budgets. It is
// safe for concurrent use; the requests of the process run one at a time.
type session struct {
	token  string
	turn   turn.Turn
	limits turn.Limits
	// export is the export of the module that runs, for instance the turn.
	export string
	// starting is set before the first turn: only op log is granted.
	starting bool
	log      *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	// panicked is closed when an op of the host has panicked; panicText is the panic.
	panicked  chan struct{}
	panicText string

	mu         sync.Mutex // held during an op
	ended      bool
	handles    map[int32]handle
	lastHandle int32
	lastErr    *abi.Error // for op last_error
	calls      int64
	bytesMoved int64
}

// handle is an answer that the process has not closed.
type handle struct {
	op     abi.Op
	answer turn.Answer
}

func newSession(ctx context.Context, t turn.Turn, log *slog.Logger) *session {
	s := &session{
		token: rand.Text(), turn: t, limits: t.Limits.WithDefaults(), log: log,
		panicked: make(chan struct{}), handles: map[int32]handle{},
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	if t.Cancelled != nil {
		go s.watchCancel()
	}
	return s
}

// watchCancel ends waiting ops when the turn is cancelled.
func (s *session) watchCancel() {
	select {
	case <-s.turn.Cancelled:
		s.cancel()
	case <-s.ctx.Done():
	}
}

// end cancels running ops, waits for their end, and refuses later requests.
func (s *session) end() {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for number, h := range s.handles {
		delete(s.handles, number)
		h.answer.Close()
	}
}

// clock reads the turn's clock. The caller holds s.mu.
func (s *session) clock() int64 {
	if s.turn.Clock == nil {
		return 0
	}
	return s.turn.Clock.Now().UnixNano()
}

// recordError keeps an error for op last_error. The caller holds s.mu.
func (s *session) recordError(err *abi.Error) *abi.Error {
	if err == nil {
		return nil
	}
	s.lastErr = turn.SanitizeError(err)
	return s.lastErr
}

// call runs an op and waits for its answer.
func (s *session) call(op abi.Op, req []byte) ([]byte, *abi.Error) {
	if op == abi.OpLastError {
		return s.lastError(), nil
	}
	if err := s.checkRequest(op, req, abi.ImportCall); err != nil {
		return nil, s.recordError(err)
	}
	body, err := s.runOp(op, req)
	if err != nil {
		return nil, s.recordError(err)
	}
	if int64(len(body)) > s.bytesLeft() {
		return nil, s.recordError(s.tooManyBytes(op, fmt.Sprintf("the op has run, but its answer has %d bytes", len(body))))
	}
	s.bytesMoved += int64(len(body))
	return body, nil
}

func (s *session) lastError() []byte {
	if s.lastErr == nil {
		return nil
	}
	return turn.EncodeError(s.lastErr)
}

// checkRequest checks a call or submit against limits and budgets, and counts it. A
// refused request neither runs nor counts.
func (s *session) checkRequest(op abi.Op, req []byte, name string) *abi.Error {
	switch {
	case len(req) > turn.MaxRequest:
		return abi.Errorf(abi.CodeLimit, op, "request", "a request of %d bytes, at most %d", len(req), turn.MaxRequest)
	case len(s.handles) >= turn.MaxHandles:
		return turn.TooManyHandles(name)
	case s.calls >= s.limits.HostCalls:
		return turn.TooManyCalls(op, s.limits)
	case int64(len(req)) > s.bytesLeft():
		return s.tooManyBytes(op, fmt.Sprintf("the request has %d bytes", len(req)))
	}
	s.calls++
	s.bytesMoved += int64(len(req))
	return nil
}

func (s *session) bytesLeft() int64 { return max(0, s.limits.HostBytes-s.bytesMoved) }

func (s *session) tooManyBytes(op abi.Op, what string) *abi.Error {
	return turn.TooManyBytes(op, what, s.bytesLeft(), s.limits)
}

func (s *session) runOp(op abi.Op, req []byte) ([]byte, *abi.Error) {
	switch {
	case s.starting && op != abi.OpLog:
		return nil, abi.Errorf(abi.CodeDenied, op, "start", "%s is not granted while a module starts", op)
	case s.starting:
		s.log.Debug("module log at start", "line", turn.Output(printable(string(req), maxLine)))
		return []byte("{}"), nil
	case s.turn.Ops == nil:
		return nil, abi.Errorf(abi.CodeUnsupported, op, "op", "this host has no ops")
	}
	return s.turn.Ops.Call(s.ctx, op, req)
}

// submit starts an op.
func (s *session) submit(op abi.Op, req []byte) (int32, *abi.Error) {
	if err := s.checkRequest(op, req, abi.ImportSubmit); err != nil {
		return 0, s.recordError(err)
	}
	if op == abi.OpLastError {
		return s.addHandle(op, turn.Completed(s.lastError(), nil)), nil
	}
	if s.starting || s.turn.Ops == nil {
		return s.addHandle(op, turn.Completed(s.runOp(op, req))), nil
	}
	answer, err := s.turn.Ops.Submit(s.ctx, op, req)
	if err != nil {
		return 0, s.recordError(err)
	}
	return s.addHandle(op, answer), nil
}

func (s *session) addHandle(op abi.Op, answer turn.Answer) int32 {
	s.lastHandle++
	s.handles[s.lastHandle] = handle{op, answer}
	return s.lastHandle
}

// wait waits for the first of several handles.
func (s *session) wait(numbers []int32, timeout time.Duration) (int, *abi.Error) {
	if n := len(numbers); n == 0 || n > turn.MaxWait {
		return 0, s.recordError(callError(abi.CodeInvalid, abi.ImportWait, "handles", "%d handles, from 1 to %d", n, turn.MaxWait))
	}
	answers, here := make([]turn.Answer, len(numbers)), -1
	for i, number := range numbers {
		h, known := s.handles[number]
		if !known {
			return 0, s.recordError(turn.UnknownHandle(abi.ImportWait, number))
		}
		answers[i] = h.answer
		if h.op == abi.OpLastError && here < 0 {
			here = i // last_error is not an op of the turn
		}
	}
	switch {
	case s.starting || s.turn.Ops == nil: // all handles are ready
		return 0, nil
	case here < 0:
		index, err := s.turn.Ops.Wait(s.ctx, answers, timeout)
		return index, s.recordError(err)
	case here > 0: // an earlier handle may be ready, too
		index, err := s.turn.Ops.Wait(s.ctx, answers[:here], 0)
		if err == nil || err.Code != abi.CodeDeadline {
			return index, s.recordError(err)
		}
	}
	return here, nil
}

// read returns the next bytes of an answer, within the turn's budget.
func (s *session) read(number int32, size uint32) ([]byte, *abi.Error) {
	h, known := s.handles[number]
	switch {
	case !known:
		return nil, s.recordError(turn.UnknownHandle(abi.ImportRead, number))
	case size == 0:
		return nil, nil
	case s.bytesLeft() == 0:
		return nil, s.recordError(s.tooManyBytes(h.op, "there may be more to read"))
	}
	to := make([]byte, min(int64(size), s.bytesLeft(), maxRead))
	n, err := h.answer.Read(s.ctx, to)
	if err != nil {
		return nil, s.recordError(err)
	}
	s.bytesMoved += int64(n)
	return to[:n], nil
}

// closeHandle removes a handle.
func (s *session) closeHandle(number int32) *abi.Error {
	h, known := s.handles[number]
	if !known {
		return s.recordError(turn.UnknownHandle(abi.ImportClose, number))
	}
	delete(s.handles, number)
	h.answer.Close()
	return nil
}

// callError is the error of a call that is not an op.
func callError(code abi.Code, name, reason, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Op: name, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
