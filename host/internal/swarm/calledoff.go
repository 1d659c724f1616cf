package swarm

import (
	"slices"

	"skep/abi"
)

// cancelAsks answers what a reopened task waits for, and will ask: nobody will.
func (s *step) cancelAsks() {
	for i := range s.Task.Breakpoints {
		b := &s.Task.Breakpoints[i]
		b.Off, b.Asks = true, slices.Clone(b.Asks)
		for k := range b.Asks {
			if b.Asks[k].Told == nil {
				b.Asks[k].Told = &Told{Code: abi.CodeCancelled, Reason: reasonCancelled, Message: textCancelled, Time: s.now}
			}
		}
	}
}

// What a call is told that a person was to answer, and has written instead.
const (
	reasonCancelled = "cancelled"
	textCancelled   = "the user has written instead of answering this call"
)

// Unanswered says why nobody will answer what the turn asks; nil when somebody may.
func (t *Turn) Unanswered(op abi.Op) *abi.Error {
	if b, _ := t.rec.breakpoint(t.row.N); !b.Off {
		return nil
	}
	return abi.Errorf(abi.CodeCancelled, op, reasonCancelled, textCancelled)
}
