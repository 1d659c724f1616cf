package conform

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/spec/conformance"
)

// Outcome is how a turn ended, and what it asked for on the way.
type Outcome struct {
	Exit    string
	Message string
	Output  []byte
	Ops     []conformance.Op
	Fuel    uint64
}

// patience bounds one turn.
const patience = time.Minute

// Run plays one vector.
func Run(ctx context.Context, m *sandbox.Module, v conformance.Turn) Outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &script{answers: v.Answers}
	r := m.Turn(ctx, sandbox.Turn{
		Input: v.Input, Seed: [32]byte{1}, Clock: newClock(), Ops: s,
		Limits: sandbox.Limits{Output: v.OutputLimit},
	})
	out := Outcome{Output: r.Output, Ops: s.asked, Fuel: r.Fuel}
	if r.Exit != nil {
		out.Exit, out.Message = string(r.Exit.Kind), r.Exit.Message
	}
	return out
}

// script answers ops in the order of a vector.
type script struct {
	answers []conformance.Answer
	asked   []conformance.Op
}

// Call gives the next answer.
func (s *script) Call(_ context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
	s.asked = append(s.asked, conformance.Op{Number: int32(op), Request: request(req)})
	n := len(s.asked) - 1
	if n >= len(s.answers) {
		return nil, abi.Errorf(abi.CodeUnsupported, op, "op", "the vector has no answer to op %d of the turn", n+1)
	}
	a := s.answers[n]
	if a.Error == nil {
		return bytes.Clone(a.Body), nil
	}
	e := &abi.Error{Code: code(a.Error.Code), Op: a.Error.Op, Reason: a.Error.Reason,
		RetryAfterMS: a.Error.RetryAfterMS, Message: a.Error.Message}
	return nil, e
}

func request(req []byte) string {
	if string(req) == "{}" {
		return ""
	}
	return string(req)
}

// code finds a code by its name. A vector that names another is a fault of ours.
func code(name string) abi.Code {
	for c := abi.CodeInvalid; c <= abi.CodeInternal; c++ {
		if c.String() == name {
			return c
		}
	}
	panic(fmt.Sprintf("conform: a vector names the code %q", name))
}

// clock is the turn's clock. A sleep moves it and waits for nothing.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 3, 1, 9, 30, 0, 250_000_000, time.UTC)} }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) Advance(to time.Time) { c.now = to }

func (c *clock) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}
