package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// Replayed is what came of a recorded turn that was run on its record alone.
type Replayed struct {
	// Ops counts the calls that were answered.
	Ops  int
	Fuel uint64
	// Difference is the first thing that was not as recorded; empty when all
	// was.
	Difference string
	// Seen is the call that was looked for, if the turn made it.
	Seen *Seen
}

// Seen is what an agent asked in one call, and what it was told.
type Seen struct {
	Call    string
	Op      abi.Op
	Request []byte
	// Answer is what it was told up to the end of the turn.
	Answer []byte
	Err    *abi.Error
	// Time is the turn's clock afterwards.
	Time time.Time
}

// Look says which calls of a replayed turn are of interest.
type Look struct {
	// At is the path of the call to stop at, empty for none.
	At string
	// Modules finds those of actions; without it actions are answered from the
	// record and not run.
	Modules Modules
	// Each, where it is set, is told of every call, in their order.
	Each func(Seen)
}

// Replay runs a recorded turn again. Every op is answered from the record, and
// nothing leaves the process.
func Replay(ctx context.Context, m Module, rec swarm.Record, seed [32]byte, look Look) (Replayed, error) {
	limits := sandbox.Limits{}
	if err := json.Unmarshal(rec.Header.Limits, &limits); err != nil {
		return Replayed{}, fmt.Errorf("read the recorded limits of turn %d: %w", rec.N, err)
	}
	if rec.Header.Recipe != sandbox.Recipe() {
		return Replayed{}, fmt.Errorf("turn %d ran on another version of skep or another CPU (%s, here %s), where it cannot be repeated",
			rec.N, rec.Header.Recipe, sandbox.Recipe())
	}
	cut := cutShort(rec.End)
	if cut && rec.End != nil && rec.End.Usage.Fuel > 0 {
		limits.Fuel = max(1, rec.End.Usage.Fuel-fuelOfActions(rec))
	}
	limits.CPU = time.Hour // fuel is what repeats
	clock := &recordedClock{rec.Header.Start}
	j := newJournal(ctx, nil, clock, clock.Now)
	defer j.stop(nil)
	j.limit = limits.HostBytes + slack
	j.recall(&swarm.Past{Record: rec})
	j.past.offline, j.past.look = true, look
	o := &ops{clock: clock, now: clock.Now, j: j, table: builtin(), seed: seed, taken: &taken{}, modules: look.Modules}
	res := m.Turn(j.life, sandbox.Turn{
		Input: rec.Header.Input, Seed: seed, Clock: turnClock{clock, j}, Ops: o, Limits: limits,
	})
	res = o.taken.add(res)
	out := Replayed{Ops: o.calls, Fuel: res.Fuel, Seen: j.past.seen}
	if out.Seen == nil {
		out.Difference = j.difference(rec.End, res, cut)
	}
	return out, nil
}

// cutShort reports whether a turn did not come to its own end, so that only what
// happened before can be compared.
func cutShort(end *swarm.TurnEnd) bool {
	if end == nil {
		return true
	}
	return !slices.Contains(repeating(), end.Exit)
}

// fuelOfActions is what the actions of a turn have taken of its fuel. What runs
// inside one counts with it.
func fuelOfActions(rec swarm.Record) (fuel uint64) {
	for _, e := range rec.Entries {
		var r ran
		if e.Kind == swarm.EntryAnswer && !strings.Contains(e.Call, ".") && json.Unmarshal(e.Ran, &r) == nil {
			fuel += r.Fuel
		}
	}
	return min(fuel, rec.End.Usage.Fuel)
}

// difference names the first thing that was not as recorded.
func (j *journal) difference(end *swarm.TurnEnd, res sandbox.Result, cut bool) string {
	if j.ended != nil && !(cut && j.past.over) {
		return j.ended.Message
	}
	if e := j.next(); e != nil && e.Kind != swarm.EntryCancel {
		return fmt.Sprintf("the turn ended before entry %d of its record, %s", e.N, describe(e.Kind, e.Call, e.Op, e.Digest))
	}
	if cut {
		return ""
	}
	exit := exitOK
	if res.Exit != nil {
		exit = string(res.Exit.Kind)
	} else if _, err := parseResult(res.Output); err != nil {
		exit = "output"
	}
	switch {
	case exit != end.Exit:
		return fmt.Sprintf("the turn ended with %s, recorded %s", exit, end.Exit)
	case !bytes.Equal(res.Output, end.Output):
		return fmt.Sprintf("the turn wrote %d bytes of output that are not the %d recorded: %s",
			len(res.Output), len(end.Output), firstDifference(res.Output, end.Output))
	case res.HostCalls != end.Usage.HostCalls:
		return fmt.Sprintf("the turn made %d host calls, recorded %d", res.HostCalls, end.Usage.HostCalls)
	case res.Fuel != end.Usage.Fuel:
		return fmt.Sprintf("the turn used %d units of fuel, recorded %d", res.Fuel, end.Usage.Fuel)
	}
	return ""
}

func firstDifference(a, b []byte) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("at byte %d now %.20q, recorded %.20q", i, a[i:], b[i:])
}

// see tells of a call, and stops the turn at the one that is looked for.
func (j *journal) see(c call, e *swarm.Entry, req []byte) *abi.Error {
	look := j.past.look
	found := look.At != "" && c.path == look.At
	if !j.past.offline || !found && look.Each == nil {
		return nil
	}
	s := j.recorded(c, e, req)
	if look.Each != nil {
		look.Each(s)
	}
	if !found {
		return nil
	}
	j.past.seen = &s
	j.end("seen", "", "stopped at call "+c.path)
	return j.off(c.op)
}

// recorded is what became of a call.
func (j *journal) recorded(c call, e *swarm.Entry, req []byte) Seen {
	s := Seen{Call: c.path, Op: c.op, Request: req, Answer: e.Answer, Err: e.Err, Time: e.Time}
	for _, later := range j.past.entries[j.past.pos:] {
		if later.Call != c.path || later.Kind != swarm.EntryAnswer && (later.Kind != swarm.EntryRead || e.Kind != swarm.EntryIntent) {
			continue
		}
		s.Answer, s.Err, s.Time = slices.Concat(s.Answer, later.Answer), later.Err, later.Time
	}
	return s
}

// recordedClock moves with the record alone.
type recordedClock struct{ now time.Time }

// Now reads the clock.
func (c *recordedClock) Now() time.Time { return c.now }

// Advance moves it forward.
func (c *recordedClock) Advance(to time.Time) {
	if to.After(c.now) {
		c.now = to
	}
}

// Sleep waits for nothing.
func (c *recordedClock) Sleep(_ context.Context, d time.Duration) error {
	c.Advance(c.now.Add(d))
	return nil
}
