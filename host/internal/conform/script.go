package conform

import (
	"bytes"
	"context"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/spec/conformance"
)

// script answers ops in the order of a vector.
type script struct {
	vector conformance.Turn
	clock  *clock
	off    chan struct{} // closed when the vector calls the turn off
	asked  []conformance.Op
}

var _ turn.Ops = (*script)(nil)

// Call gives the next answer.
func (s *script) Call(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
	p := s.next(ctx, op, req)
	return bytes.Join(p.chunks, nil), p.err
}

// Submit gives the next answer, to be read. Its error comes with it.
func (s *script) Submit(ctx context.Context, op abi.Op, req []byte) (turn.Answer, *abi.Error) {
	return s.next(ctx, op, req), nil
}

// Wait finds the first answer that is ready. Time passes only here.
func (s *script) Wait(ctx context.Context, answers []turn.Answer, timeout time.Duration) (int, *abi.Error) {
	if err := calledOff(ctx, abi.ImportWait); err != nil {
		return 0, err
	}
	first, least := 0, int(^uint(0)>>1)
	for i, a := range answers {
		if waits := waitsOf(a); waits < least {
			first, least = i, waits
		}
	}
	if least == 0 {
		return first, nil
	}
	passed := least
	if timeout >= 0 {
		passed = 1
	}
	for _, a := range answers {
		if p, ok := a.(*piece); ok {
			p.waits = max(0, p.waits-passed)
		}
	}
	if timeout < 0 {
		return first, nil
	}
	s.clock.now = s.clock.now.Add(timeout)
	return 0, &abi.Error{Code: abi.CodeDeadline, Op: abi.ImportWait, Reason: "timeout", Message: "nothing is ready yet"}
}

// waitsOf is how many waits an answer is not ready for.
func waitsOf(a turn.Answer) int {
	if p, ok := a.(*piece); ok {
		return p.waits
	}
	return 0
}

// next is the answer to an op, which is called off if the vector says so.
func (s *script) next(ctx context.Context, op abi.Op, req []byte) *piece {
	s.asked = append(s.asked, conformance.Op{Number: int32(op), Request: request(req)})
	n := len(s.asked)
	if n == s.vector.CancelAt {
		close(s.off)
		<-ctx.Done()
	}
	if err := calledOff(ctx, opName(int32(op))); err != nil && op != abi.OpLog {
		return &piece{err: err}
	}
	if n > len(s.vector.Answers) {
		return &piece{err: abi.Errorf(abi.CodeUnsupported, op, "op", "the vector has no answer to op %d of the turn", n)}
	}
	a := s.vector.Answers[n-1]
	p := &piece{waits: a.Waits, chunks: [][]byte{a.Body}}
	if a.Chunks != nil {
		p.chunks = a.Chunks
	}
	if a.Error != nil {
		p.err = &abi.Error{Code: code(a.Error.Code), Op: a.Error.Op, Reason: a.Error.Reason,
			RetryAfterMS: a.Error.RetryAfterMS, Message: a.Error.Message}
	}
	return p
}

// calledOff is what ops and waits answer once the turn is called off.
func calledOff(ctx context.Context, name string) *abi.Error {
	if ctx.Err() == nil {
		return nil
	}
	return &abi.Error{Code: abi.CodeCancelled, Op: name, Reason: "cancelled", Message: "the turn is called off"}
}

// piece is the answer to one op, in its chunks.
type piece struct {
	chunks [][]byte
	err    *abi.Error
	waits  int
}

// Read gives what is left of the chunk that comes next.
func (p *piece) Read(ctx context.Context, to []byte) (int, *abi.Error) {
	if err := calledOff(ctx, abi.ImportRead); err != nil {
		return 0, err
	}
	for len(p.chunks) > 0 && len(p.chunks[0]) == 0 {
		p.chunks = p.chunks[1:]
	}
	if len(p.chunks) == 0 {
		return 0, p.err
	}
	n := copy(to, p.chunks[0])
	p.chunks = append([][]byte{p.chunks[0][n:]}, p.chunks[1:]...)
	return n, nil
}

// Close has nothing to give back.
func (p *piece) Close() {}
