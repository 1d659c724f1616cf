package subprocess

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"skep/abi"
	"skep/host/internal/sandbox"
)

// session is one turn as its process sees the host: its ops, within its budgets.
// It is safe for concurrent use; what the process asks is done one by one.
type session struct {
	token  string
	turn   sandbox.Turn
	limits sandbox.Limits
	// name is what of the agent runs: one of the exports of a module.
	name string
	// starting is true before any turn: nothing but op log is granted.
	starting bool
	log      *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	// broken is closed when an op of the host has panicked, and says why.
	broken chan struct{}
	panic  string

	mu    sync.Mutex // held during an op
	over  bool
	open  map[int32]handle
	last  int32
	told  *abi.Error // what last_error tells
	calls int64
	moved int64
}

// handle is an answer that the process has not closed.
type handle struct {
	op     abi.Op
	answer sandbox.Answer
}

func newSession(ctx context.Context, t sandbox.Turn, log *slog.Logger) *session {
	s := &session{
		token: rand.Text(), turn: t, limits: t.Limits.Full(), log: log,
		broken: make(chan struct{}), open: map[int32]handle{},
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	if t.Cancelled != nil {
		go s.follow()
	}
	return s
}

// follow ends waiting ops when the turn is called off.
func (s *session) follow() {
	select {
	case <-s.turn.Cancelled:
		s.cancel()
	case <-s.ctx.Done():
	}
}

// end calls off what is in flight, waits until nothing of it is left, and refuses
// what still comes.
func (s *session) end() {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for number, h := range s.open {
		delete(s.open, number)
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

// refuse keeps an error for last_error. The caller holds s.mu.
func (s *session) refuse(err *abi.Error) *abi.Error {
	if err == nil {
		return nil
	}
	s.told = sandbox.Told(err)
	return s.told
}

// call runs an op and waits for its answer.
func (s *session) call(op abi.Op, req []byte) ([]byte, *abi.Error) {
	if op == abi.OpLastError {
		return s.lastError(), nil
	}
	if err := s.request(op, req, abi.ImportCall); err != nil {
		return nil, s.refuse(err)
	}
	body, err := s.ask(op, req)
	if err != nil {
		return nil, s.refuse(err)
	}
	if int64(len(body)) > s.left() {
		return nil, s.refuse(s.tooMany(op, fmt.Sprintf("the op has run, but its answer has %d bytes", len(body))))
	}
	s.moved += int64(len(body))
	return body, nil
}

func (s *session) lastError() []byte {
	if s.told == nil {
		return nil
	}
	return sandbox.ErrorBody(s.told)
}

// request checks a call or submit against its bounds and budgets, and counts it.
// What is refused here does not run and does not count.
func (s *session) request(op abi.Op, req []byte, name string) *abi.Error {
	switch {
	case len(req) > sandbox.MaxRequest:
		return abi.Errorf(abi.CodeLimit, op, "request", "a request of %d bytes, at most %d", len(req), sandbox.MaxRequest)
	case len(s.open) >= sandbox.MaxHandles:
		return sandbox.TooManyHandles(name)
	case s.calls >= s.limits.HostCalls:
		return sandbox.TooManyCalls(op, s.limits)
	case int64(len(req)) > s.left():
		return s.tooMany(op, fmt.Sprintf("the request has %d bytes", len(req)))
	}
	s.calls++
	s.moved += int64(len(req))
	return nil
}

func (s *session) left() int64 { return max(0, s.limits.HostBytes-s.moved) }

func (s *session) tooMany(op abi.Op, what string) *abi.Error {
	return sandbox.TooManyBytes(op, what, s.left(), s.limits)
}

func (s *session) ask(op abi.Op, req []byte) ([]byte, *abi.Error) {
	switch {
	case s.starting && op != abi.OpLog:
		return nil, abi.Errorf(abi.CodeDenied, op, "start", "%s is not granted while a module starts", op)
	case s.starting:
		s.log.Debug("module log at start", "line", clip(string(req), maxLine))
		return []byte("{}"), nil
	case s.turn.Ops == nil:
		return nil, abi.Errorf(abi.CodeUnsupported, op, "op", "this host has no ops")
	}
	return s.turn.Ops.Call(s.ctx, op, req)
}

// submit starts an op.
func (s *session) submit(op abi.Op, req []byte) (int32, *abi.Error) {
	if err := s.request(op, req, abi.ImportSubmit); err != nil {
		return 0, s.refuse(err)
	}
	if op == abi.OpLastError {
		return s.put(op, sandbox.Done(s.lastError(), nil)), nil
	}
	if s.starting || s.turn.Ops == nil {
		return s.put(op, sandbox.Done(s.ask(op, req))), nil
	}
	answer, err := s.turn.Ops.Submit(s.ctx, op, req)
	if err != nil {
		return 0, s.refuse(err)
	}
	return s.put(op, answer), nil
}

func (s *session) put(op abi.Op, answer sandbox.Answer) int32 {
	s.last++
	s.open[s.last] = handle{op, answer}
	return s.last
}

// wait waits for the first of several handles.
func (s *session) wait(numbers []int32, timeout time.Duration) (int, *abi.Error) {
	if n := len(numbers); n == 0 || n > sandbox.MaxWait {
		return 0, s.refuse(fault(abi.CodeInvalid, abi.ImportWait, "handles", "%d handles, from 1 to %d", n, sandbox.MaxWait))
	}
	answers, here := make([]sandbox.Answer, len(numbers)), -1
	for i, number := range numbers {
		h, known := s.open[number]
		if !known {
			return 0, s.refuse(sandbox.NoHandle(abi.ImportWait, number))
		}
		answers[i] = h.answer
		if h.op == abi.OpLastError && here < 0 {
			here = i // it is no op of the port's
		}
	}
	switch {
	case s.starting || s.turn.Ops == nil: // all there are have ended
		return 0, nil
	case here < 0:
		index, err := s.turn.Ops.Wait(s.ctx, answers, timeout)
		return index, s.refuse(err)
	case here > 0: // one of those before it may be ready, too
		index, err := s.turn.Ops.Wait(s.ctx, answers[:here], 0)
		if err == nil || err.Code != abi.CodeDeadline {
			return index, s.refuse(err)
		}
	}
	return here, nil
}

// read gives the next bytes of an answer, within the turn's budget.
func (s *session) read(number int32, size uint32) ([]byte, *abi.Error) {
	h, known := s.open[number]
	switch {
	case !known:
		return nil, s.refuse(sandbox.NoHandle(abi.ImportRead, number))
	case size == 0:
		return nil, nil
	case s.left() == 0:
		return nil, s.refuse(s.tooMany(h.op, "there may be more to read"))
	}
	to := make([]byte, min(int64(size), s.left(), maxRead))
	n, err := h.answer.Read(s.ctx, to)
	if err != nil {
		return nil, s.refuse(err)
	}
	s.moved += int64(n)
	return to[:n], nil
}

// close forgets a handle.
func (s *session) close(number int32) *abi.Error {
	h, known := s.open[number]
	if !known {
		return s.refuse(sandbox.NoHandle(abi.ImportClose, number))
	}
	delete(s.open, number)
	h.answer.Close()
	return nil
}

// fault is the error of what is no op, by its own name.
func fault(code abi.Code, name, reason, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Op: name, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
