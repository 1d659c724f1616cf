package conform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
	"skep/spec/conformance"
)

// image compares the memory in which turns begin, in both engines.
func image(ctx context.Context, s *subject) finding {
	var sums [2][sha256.Size]byte
	size := 0
	for i, m := range []*wasm.Module{s.module, s.twin} {
		looks := 0
		s.play(ctx, m, trial{input: s.tries.Turns[0].Input, look: func(memory []byte, globals []uint64) {
			if looks++; looks == 1 {
				sums[i], size = sum(memory, globals), len(memory)
			}
		}})
	}
	f := finding{detail: fmt.Sprintf("a turn begins in the same %d bytes of memory, whoever starts the module", size)}
	switch {
	case sums[0] != sums[1]:
		f.problemf("the memory in which a turn begins is not the same in two engines")
	case s.module.NoImageReason() != "":
		f.notef("every turn starts the module anew, which takes longer: %s", s.module.NoImageReason())
	case s.first.Pool().Images == 0:
		f.notef("every turn starts the module anew, which takes longer: its image would be larger than a quarter of limits.memory (%d bytes)",
			turn.DefaultLimits().Memory)
	}
	return f
}

// sum is a digest of an instance.
func sum(memory []byte, globals []uint64) [sha256.Size]byte {
	h := sha256.New()
	for _, g := range globals {
		h.Write(binary.LittleEndian.AppendUint64(nil, g))
	}
	h.Write(memory)
	return [sha256.Size]byte(h.Sum(nil))
}

// determinism plays every turn three times, once in the other engine.
func determinism(ctx context.Context, s *subject) finding {
	f := finding{detail: "every turn three times: the same ops, the same output, the same fuel"}
	for i, t := range s.tries.Turns {
		again := s.play(ctx, s.module, trial{input: t.Input})
		elsewhere := s.play(ctx, s.twin, trial{input: t.Input})
		first := s.outcomes(ctx)[i]
		for _, p := range append(Repeats(first, again), Repeats(first, elsewhere)...) {
			if f.problemf("%s: %s", t.Name, p) {
				return f
			}
		}
	}
	return f
}

// ids are what looks random: UUIDs, and hexadecimal digits in a row.
var ids = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}`)

// randomness compares the ids of two turns that have nothing in common. What is
// the same in both came with the image, unless it is computed from nothing.
func randomness(ctx context.Context, s *subject) finding {
	var f finding
	seen := 0
	for _, t := range s.tries.Turns {
		one := s.idsOf(ctx, trial{input: t.Input}, t)
		two := s.idsOf(ctx, trial{input: t.Elsewhere, other: true, reply: otherRandom}, t)
		seen += len(one)
		for _, id := range one {
			if slices.Contains(two, id) {
				f.notef("%s: %s is in two turns with different seeds; if it is an id or a secret, take it from random_get or op 3 during the turn", t.Name, id)
			}
		}
	}
	f.detail = fmt.Sprintf("%d ids of turns that have nothing in common, none of them twice", seen)
	if seen == 0 {
		f.idle, f.detail = true, "no turn shows an id but those it was told or took from op random"
	}
	return f
}

// otherRandom answers op 3 with another number than usual.
func otherRandom(_ context.Context, _ int, op abi.Op, usual []byte) ([]byte, *abi.Error) {
	if op == abi.OpRandom {
		return []byte(`{"value":"d14b7c3390ae52f8c6015e7fb2a84d96"}`), nil
	}
	return usual, nil
}

// idsOf lists what looks random in what a turn says and was not told to it.
func (s *subject) idsOf(ctx context.Context, t trial, of conformance.AgentTurn) []string {
	o := s.play(ctx, s.module, t)
	said := string(o.Output)
	for _, op := range o.Ops {
		said += "\n" + op.Request
	}
	told := string(of.Input) + string(of.Elsewhere)
	for _, a := range s.tries.Answers {
		told += string(a)
	}
	var own []string
	for _, id := range ids.FindAllString(said, -1) {
		if !strings.Contains(told, id) && !bytes.Contains(s.wasm, []byte(id)) {
			own = append(own, id)
		}
	}
	return own
}

// cleanliness plants a secret in one turn and looks for it in the next.
func cleanliness(ctx context.Context, s *subject) finding {
	var f finding
	secret := []byte(s.tries.Secret)
	planted, clean := 0, [sha256.Size]byte{}
	for i, t := range s.tries.Turns {
		s.play(ctx, s.module, trial{input: t.Secret, look: func(memory []byte, _ []uint64) {
			planted += bytes.Count(memory, secret)
		}, reply: func(_ context.Context, _ int, _ abi.Op, usual []byte) ([]byte, *abi.Error) {
			return conformance.With(usual, "added", s.tries.Secret), nil
		}})
		looks := 0
		s.play(ctx, s.module, trial{input: t.Input, look: func(memory []byte, globals []uint64) {
			if n := bytes.Count(memory, secret); n > 0 {
				f.problemf("%s: %d copies of a secret of the turn before", t.Name, n)
			}
			if looks++; looks > 1 {
				return
			}
			now := sum(memory, globals)
			if i == 0 {
				clean = now
			}
			if now != clean {
				f.problemf("%s: the memory in which the turn begins is not that of the turns before", t.Name)
			}
		}})
	}
	f.detail = fmt.Sprintf("%d copies of a secret were in memory during %d turns, none in the turns after", planted, len(s.tries.Turns))
	return f
}
