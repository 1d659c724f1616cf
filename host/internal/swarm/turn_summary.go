package swarm

import (
	"time"

	"skep/abi"
)

// TurnSummary summarises a turn's record without its content.
type TurnSummary struct {
	// N is the number of the turn.
	N     int64
	Agent string
	Start time.Time
	// Attempt is the number of the last recorded attempt, from 1.
	Attempt int
	// Calls counts the calls of each op, refused ones as well.
	Calls map[abi.Op]int64
	// End is nil while the turn is unfinished or suspended.
	End *TurnSummaryEnd
}

// TurnSummaryEnd is the end and the cost of a turn.
type TurnSummaryEnd struct {
	// Exit is "ok", or the cause of the failure.
	Exit  string
	Usage Usage
	// Wall is the time from the turn's start to its commit, including waits for people
	// and the host's down time.
	Wall time.Duration
	At   time.Time
	// Spans are the spans that its agent has marked.
	Spans []Span
	// ModelFailures are the calls of models that have failed.
	ModelFailures []ModelFailure
}

// summarize summarises a record, which needs its entries unless it has an end.
func summarize(r Record) TurnSummary {
	s := TurnSummary{N: r.N, Agent: r.Header.Agent, Start: r.Header.Start, Attempt: max(1, r.Header.Attempt)}
	if e := r.End; e != nil {
		s.Attempt, s.Calls = max(s.Attempt, e.Attempt), e.Calls
		s.End = &TurnSummaryEnd{Exit: e.Exit, Usage: e.Usage, Wall: max(0, e.At.Sub(s.Start)), At: e.At, Spans: e.Spans, ModelFailures: e.ModelFailures}
		return s
	}
	s.Calls = map[abi.Op]int64{}
	for _, e := range r.Entries {
		switch {
		case e.Begins():
			s.Calls[e.Op]++
		case e.Kind == EntryRun:
			s.Attempt = max(s.Attempt, e.Index)
		}
	}
	return s
}

// Begins reports whether the entry is the first of a call.
func (e Entry) Begins() bool { return e.Kind == EntryCall || e.Kind == EntryIntent }

// size is the approximate number of bytes read for the record.
func (r Record) size() int {
	n := len(r.Header.Input)
	for _, e := range r.Entries {
		n += len(e.Answer)
	}
	if r.End != nil {
		for _, s := range r.End.Spans {
			n += s.size()
		}
	}
	return n
}
