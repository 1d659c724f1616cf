package conform

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
	"skep/spec/conformance"
)

// trial is one turn of any agent. The zero value but for the input is a usual
// one.
type trial struct {
	input []byte
	// reply answers the n-th op, from 0; nil answers as usual.
	reply func(ctx context.Context, n int, op abi.Op, usual []byte) ([]byte, *abi.Error)
	// other is another seed, and another time.
	other     bool
	cancelled chan struct{}
	grace     time.Duration // 0: as usual
	look      func(memory []byte, globals []uint64)
}

// patience bounds one turn, and trialBytes what its ops may move: large answers
// are not to end a turn by its budget.
const (
	patience   = time.Minute
	trialBytes = 1 << 30
)

// play runs a trial.
func (s *subject) play(ctx context.Context, m *wasm.Module, t trial) Outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var asked []conformance.Op
	began := false
	inspect := func(memory []byte, globals []uint64) {
		began = true
		if t.look != nil {
			t.look(memory, globals)
		}
	}
	one := turn.Turn{
		Input: t.input, Seed: [32]byte{1}, Clock: newClock(), Cancelled: t.cancelled,
		Limits: turn.Limits{HostBytes: trialBytes, Grace: t.grace},
		Ops: streaming{func(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
			asked = append(asked, conformance.Op{Number: int32(op), Request: request(req)})
			return s.answer(ctx, t, len(asked)-1, op)
		}},
	}
	if t.other {
		one.Seed, one.Clock = [32]byte{2}, &clock{newClock().now.Add(25 * time.Hour)}
	}
	out := outcome(m.InspectTurn(ctx, one, inspect), asked)
	out.began = began
	return out
}

// answer is what an op of a trial gets.
func (s *subject) answer(ctx context.Context, t trial, n int, op abi.Op) ([]byte, *abi.Error) {
	usual, known := s.tries.Answers[int32(op)]
	if !known {
		return nil, abi.Errorf(abi.CodeUnsupported, op, "op", "this host does not have it")
	}
	usual = bytes.Clone(usual)
	if t.reply == nil {
		return usual, nil
	}
	return t.reply(ctx, n, op, usual)
}

// refusal is an error of the vectors, as the answer to an op.
func refusal(r conformance.Refusal, op abi.Op) *abi.Error {
	e := abi.Errorf(code(r.Code), op, r.Reason, "%s", r.Message)
	e.RetryAfterMS = r.RetryAfterMS
	return e
}

// badOutput reports whether a turn returned ok and wrote what is no turn result.
func (o Outcome) badOutput() bool {
	return o.Exit == string(turn.ExitFailed) && o.status == abi.StatusOK
}

// own reports whether a turn was committed, or failed by the agent's own will.
func (o Outcome) own() bool {
	switch turn.ExitKind(o.Exit) {
	case "", turn.ExitFailed, turn.ExitAbort:
		return true
	}
	return false
}

// end renders how a turn ended.
func (o Outcome) end() string {
	if o.Exit == "" {
		return "ok"
	}
	return fmt.Sprintf("%s: %s", o.Exit, clip(o.Message))
}

// opName names an op for people.
func opName(number int32) string {
	if info, ok := abi.Lookup(abi.Op(number)); ok {
		return info.Name
	}
	return fmt.Sprintf("op %d", number)
}
