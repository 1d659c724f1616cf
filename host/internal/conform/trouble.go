package conform

import (
	"context"
	"fmt"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/spec/conformance"
)

// positions bounds the ops of a turn that are troubled one by one.
const positions = 8

// refusals answers ops with every code: each op by itself, and all together.
func refusals(ctx context.Context, s *subject) finding {
	if !s.asks(ctx) {
		return nothingAsked()
	}
	var f finding
	tried := 0
	for i, t := range s.tries.Turns {
		asked := s.outcomes(ctx)[i].Ops
		for at := -1; at < min(len(asked), positions) && len(asked) > 0; at++ {
			for _, r := range s.tries.Refusals {
				tried++
				o := s.play(ctx, s.module, trial{input: t.Input, reply: refuseAt(at, r)})
				end := s.worse(ctx, i, o)
				if end != "" && f.problemf("%s, with %s of %s: %s", t.Name, r.Code, which(asked, at), end) {
					return f
				}
			}
		}
	}
	f.detail = fmt.Sprintf("%d turns, %d codes", tried, len(s.tries.Refusals))
	return f
}

// refuseAt refuses the op at a position, or all when that is negative.
func refuseAt(at int, r conformance.Refusal) func(context.Context, int, abi.Op, []byte) ([]byte, *abi.Error) {
	return func(_ context.Context, n int, op abi.Op, usual []byte) ([]byte, *abi.Error) {
		if at < 0 || n == at {
			return nil, refusal(r, op)
		}
		return usual, nil
	}
}

// which names an op of a turn for people.
func which(asked []conformance.Op, at int) string {
	if at < 0 {
		return "every op"
	}
	return fmt.Sprintf("op %d (%s)", at+1, opName(asked[at].Number))
}

// cancellation calls turns off: before their first op, and in the middle of each.
func cancellation(ctx context.Context, s *subject) finding {
	var f finding
	tried, grace := 0, turn.DefaultLimits().Grace
	for i, t := range s.tries.Turns {
		asked := s.outcomes(ctx)[i].Ops
		for at := -1; at < min(len(asked), positions); at++ {
			tried++
			o := s.callOff(ctx, t.Input, at, grace)
			if o.Exit == string(turn.ExitCancelled) {
				o = s.callOff(ctx, t.Input, at, 4*grace) // the machine may have been busy
			}
			place := "before the first op"
			if at >= 0 {
				place = "in the middle of " + which(asked, at)
			}
			if end := s.worse(ctx, i, o); end != "" && f.problemf("%s, called off %s: %s", t.Name, place, end) {
				return f
			}
		}
	}
	f.detail = fmt.Sprintf("%d turns called off, each with %v to end", tried, grace)
	return f
}

// callOff plays a turn and calls it off while the op at a position waits, or at
// once when that is negative.
func (s *subject) callOff(ctx context.Context, input []byte, at int, grace time.Duration) Outcome {
	off := make(chan struct{})
	if at < 0 {
		close(off)
	}
	return s.play(ctx, s.module, trial{input: input, cancelled: off, grace: grace,
		reply: func(ctx context.Context, n int, op abi.Op, usual []byte) ([]byte, *abi.Error) {
			if n != at {
				return usual, nil
			}
			close(off)
			<-ctx.Done()
			if op == abi.OpLog { // which is answered all the same
				return usual, nil
			}
			return nil, abi.Errorf(abi.CodeCancelled, op, "cancelled", "the turn is called off")
		}})
}
