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
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// ReplayResult is the result of an offline replay.
type ReplayResult struct {
	// Ops counts the answered calls.
	Ops  int
	Fuel uint64
	// Difference is the first deviation from the record; empty if there is none.
	Difference string
	// StoppedAt is the call to stop at, if the turn made it.
	StoppedAt *ReplayedCall
}

// ReplayedCall is one call of a replayed turn with its answer.
type ReplayedCall struct {
	Call    string
	Op      abi.Op
	Request []byte
	// Answer is the answer up to the end of the turn.
	Answer []byte
	Err    *abi.Error
	// Time is the turn's clock after the call.
	Time time.Time
}

// ReplayOptions select the calls of a replayed turn to report.
type ReplayOptions struct {
	// StopAt is the path of the call to stop at, empty for none.
	StopAt string
	// Modules finds the modules of actions; if nil, actions are answered from the record
	// and not run.
	Modules Modules
	// OnCall, if set, is called for each call, in order.
	OnCall func(ReplayedCall)
}

// Replay runs a recorded turn again. Every op is answered from the record, and nothing
// leaves the process. For the recipe see [NewExecutor].
func Replay(ctx context.Context, m Module, recipe string, rec swarm.Record, seed [32]byte, look ReplayOptions) (ReplayResult, error) {
	limits := turn.Limits{}
	if err := json.Unmarshal(rec.Header.Limits, &limits); err != nil {
		return ReplayResult{}, fmt.Errorf("read the recorded limits of turn %d: %w", rec.N, err)
	}
	if rec.Header.Recipe != recipe {
		return ReplayResult{}, fmt.Errorf("turn %d ran on another version of skep or another CPU (%s, here %s), where it cannot be repeated",
			rec.N, rec.Header.Recipe, recipe)
	}
	cut := cutShort(rec.End)
	if cut && rec.End != nil && rec.End.Usage.Fuel > 0 {
		limits.Fuel = max(1, rec.End.Usage.Fuel-fuelOfActions(rec))
	}
	limits.CPU = time.Hour // fuel is the limit that repeats
	clock := &recordedClock{rec.Header.Start}
	j := newJournal(ctx, nil, nil, clock, clock.Now)
	defer j.stop(nil)
	j.limit = limits.HostBytes + journalSlack
	j.loadPrior(&swarm.PriorAttempt{Record: rec})
	j.prior.offline, j.prior.options = true, look
	o := &ops{clock: clock, now: clock.Now, j: j, table: builtinOps(), seed: seed, actionUsage: &actionUsage{}, modules: look.Modules}
	res := m.Turn(j.ctx, turn.Turn{
		Input: rec.Header.Input, Seed: seed, Clock: turnClock{clock, j}, Ops: o, Limits: limits,
	})
	res = o.actionUsage.add(res)
	out := ReplayResult{Ops: o.calls, Fuel: res.Fuel, StoppedAt: j.prior.stoppedAt}
	if out.StoppedAt == nil {
		out.Difference = j.difference(rec.End, res, cut)
	}
	return out, nil
}

// cutShort reports whether a turn was ended from outside, so that only its calls can be
// compared.
func cutShort(end *swarm.TurnEnd) bool {
	if end == nil {
		return true
	}
	return !slices.Contains(repeatableExits(), end.Exit)
}

// fuelOfActions is the fuel that a turn's actions used. The fuel of an action includes
// nested actions.
func fuelOfActions(rec swarm.Record) (fuel uint64) {
	for _, e := range rec.Entries {
		var r actionRecord
		if e.Kind == swarm.EntryAnswer && !strings.Contains(e.Call, ".") && json.Unmarshal(e.Ran, &r) == nil {
			fuel += r.Fuel
		}
	}
	return min(fuel, rec.End.Usage.Fuel)
}

// difference describes the first deviation from the record.
func (j *journal) difference(end *swarm.TurnEnd, res turn.Result, cut bool) string {
	if j.failure != nil && !(cut && j.prior.atEnd) {
		return j.failure.Message
	}
	if e := j.nextEntry(); e != nil && e.Kind != swarm.EntryCancel {
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

// observeCall reports a call, and stops the turn at the call to stop at.
func (j *journal) observeCall(c call, e *swarm.Entry, req []byte) *abi.Error {
	look := j.prior.options
	found := look.StopAt != "" && c.path == look.StopAt
	if !j.prior.offline || !found && look.OnCall == nil {
		return nil
	}
	s := j.replayedCall(c, e, req)
	if look.OnCall != nil {
		look.OnCall(s)
	}
	if !found {
		return nil
	}
	j.prior.stoppedAt = &s
	j.fail("seen", "", "stopped at call "+c.path)
	return j.stoppedError(c.op)
}

// replayedCall collects the record of a call.
func (j *journal) replayedCall(c call, e *swarm.Entry, req []byte) ReplayedCall {
	s := ReplayedCall{Call: c.path, Op: c.op, Request: req, Answer: e.Answer, Err: e.Err, Time: e.Time}
	for _, later := range j.prior.entries[j.prior.pos:] {
		if later.Call != c.path || later.Kind != swarm.EntryAnswer && (later.Kind != swarm.EntryRead || e.Kind != swarm.EntryIntent) {
			continue
		}
		s.Answer, s.Err, s.Time = slices.Concat(s.Answer, later.Answer), later.Err, later.Time
	}
	return s
}

// recordedClock moves only with the record.
type recordedClock struct{ now time.Time }

// Now reads the clock.
func (c *recordedClock) Now() time.Time { return c.now }

// Advance moves it forward.
func (c *recordedClock) Advance(to time.Time) {
	if to.After(c.now) {
		c.now = to
	}
}

// Sleep advances the clock without waiting.
func (c *recordedClock) Sleep(_ context.Context, d time.Duration) error {
	c.Advance(c.now.Add(d))
	return nil
}
