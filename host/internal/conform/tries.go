package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/spec/conformance"
)

// turns plays typical messages.
func turns(ctx context.Context, s *subject) finding {
	var f finding
	ends := map[string]int{}
	var ops int
	var last string
	for i, o := range s.outcomes(ctx) {
		name := s.tries.Turns[i].Name
		ops += len(o.Ops)
		ends[o.Exit]++
		switch {
		case !o.own(), o.badOutput():
			f.problemf("%s: %s", name, o.end())
		case o.status == abi.StatusNotImplemented:
			f.problemf("%s: skep_turn returns 2 (not implemented)", name)
		case o.Exit != "":
			last = name + ": " + o.end()
		}
		for _, op := range o.Ops {
			if op.Request != "" && !json.Valid([]byte(op.Request)) {
				f.problemf("%s: the request of %s is no JSON: %s", name, opName(op.Number), clip(op.Request))
			}
		}
	}
	f.detail = fmt.Sprintf("%s; %d ops called", counts(ends), ops)
	if ends[""] == 0 {
		f.notef("no turn was committed, so these checks have seen little of the module; the last one ended as %s", last)
	}
	return f
}

// counts summarizes how turns ended.
func counts(ends map[string]int) string {
	total, parts := 0, []string{}
	for _, kind := range []string{"", string(turn.ExitFailed), string(turn.ExitAbort)} {
		n := ends[kind]
		total += n
		switch {
		case n == 0:
		case kind == "":
			parts = append(parts, fmt.Sprintf("%d committed", n))
		default:
			parts = append(parts, fmt.Sprintf("%d ended as %s by the agent's own will", n, kind))
		}
	}
	return fmt.Sprintf("%d turns: %s", total, strings.Join(parts, ", "))
}

// unknownMembers adds members to inputs and answers.
func unknownMembers(ctx context.Context, s *subject) finding {
	f := finding{detail: fmt.Sprintf("%d turns, with members added to the input and to every answer", len(s.tries.Turns))}
	for i, t := range s.tries.Turns {
		usual := s.outcomes(ctx)[i]
		if !usual.own() {
			continue
		}
		input := s.play(ctx, s.module, trial{input: t.Unknown})
		answers := s.play(ctx, s.module, trial{input: t.Input, reply: func(_ context.Context, _ int, _ abi.Op, usual []byte) ([]byte, *abi.Error) {
			return conformance.With(usual, "added", "later"), nil
		}})
		switch {
		case input.Exit != usual.Exit:
			f.problemf("%s: ends as %s, with members added to the input as %s", t.Name, usual.end(), input.end())
		case answers.Exit != usual.Exit:
			f.problemf("%s: ends as %s, with members added to the answers as %s", t.Name, usual.end(), answers.end())
		default:
			if other := otherWords(usual, input); other != "" {
				f.notef("%s: with members added to the input %s\ndoes it pass on what it does not know?", t.Name, other)
			}
		}
		if f.full() {
			break
		}
	}
	return f
}

// largeInput plays inputs that fit in no buffer made for them.
func largeInput(ctx context.Context, s *subject) finding {
	var f finding
	most, ends := 0, map[string]int{}
	for _, t := range s.tries.Large {
		o := s.play(ctx, s.module, trial{input: t.Input})
		ends[o.Exit]++
		most = max(most, len(t.Input))
		if !o.own() && f.problemf("%s (%d bytes): %s", t.Name, len(t.Input), o.end()) {
			break
		}
	}
	f.detail = fmt.Sprintf("%s; the largest input has %d bytes", counts(ends), most)
	return f
}

// largeAnswers makes every answer too large for a usual buffer: by space behind
// it, and by a member before it.
func largeAnswers(ctx context.Context, s *subject) finding {
	if !s.asks(ctx) {
		return nothingAsked()
	}
	forms := map[string]func([]byte) []byte{
		"space behind it": func(a []byte) []byte { return append(a, bytes.Repeat([]byte(" "), s.tries.Padding)...) },
		"a member before": func(a []byte) []byte { return conformance.With(a, "added", strings.Repeat("x", s.tries.Padding)) },
	}
	f := finding{detail: fmt.Sprintf("every answer larger by %d bytes", s.tries.Padding)}
	for i, t := range s.tries.Turns {
		for what, form := range forms {
			o := s.play(ctx, s.module, trial{input: t.Input, reply: func(_ context.Context, _ int, _ abi.Op, usual []byte) ([]byte, *abi.Error) {
				return form(usual), nil
			}})
			if end := s.worse(ctx, i, o); end != "" && f.problemf("%s, with %s: %s", t.Name, what, end) {
				return f
			}
		}
	}
	return f
}

func nothingAsked() finding { return finding{idle: true, detail: "no turn calls an op"} }

// vectors holds a conformance guest to what it must do.
func vectors(ctx context.Context, s *subject) finding {
	if s.kind() != KindConformance {
		return finding{idle: true, detail: fmt.Sprintf("only for conformance guests, whose descriptor names them %q", guestName)}
	}
	cases, err := Vectors(ctx, s.module)
	if err != nil {
		return finding{problems: []string{err.Error()}}
	}
	f := finding{detail: fmt.Sprintf("%d vectors", len(cases))}
	for _, c := range cases {
		if len(c.Problems) > 0 {
			f.problems = append(f.problems, c.Name+": "+strings.Join(c.Problems, "\n"))
		}
	}
	return f
}
