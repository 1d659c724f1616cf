package swarm

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"skep/abi"
)

// CauseModule is the cause of a failed turn that an earlier attempt has begun on
// a module that cannot run any more.
const CauseModule = "module"

// Past is what an earlier attempt at a turn has left. The turn is run on it
// again: its header says from what, its entries what the agent was told.
type Past struct {
	Record
	// Given follow the record's entries and are not durable yet.
	Given []Entry
}

// Past is the record of an earlier attempt, nil for a turn that starts afresh.
// It must not be changed.
func (t *Turn) Past() *Past { return t.past }

// Header is what the turn starts from; the executor adds what it runs it on.
func (t *Turn) Header() TurnHeader {
	return TurnHeader{Agent: t.agent.Name, Start: t.start, Input: t.input, Attempt: 1}
}

// EffectKey is the key under which a call's effect is sent outside: the same on
// every attempt, and for no other call.
func (t *Turn) EffectKey(call string) string {
	sum := derive(t.rt.secret, t.rec, t.row.N, "effect "+call)
	return hex.EncodeToString(sum[:])
}

// Journal makes entries of the turn durable. It tries again while the store
// cannot, and fails when the turn has been stopped for good, or with [ErrQuota].
// Lines that the entries cover go to the host's log. It is safe for concurrent
// use; the caller keeps the entries in order.
func (t *Turn) Journal(w JournalWrite) (casOK bool, err error) {
	if err := t.mayJournal(); err != nil {
		return false, err
	}
	w.Day = dayOf(t.rt.now())
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		casOK, err = t.rt.store.Journal(context.WithoutCancel(t.rt.life), t.task.key, t.row.N, w)
		if err == nil {
			t.journaled.Store(true)
			t.releaseLogs(logged(w.Entries))
			return casOK, nil
		}
		if errors.Is(err, ErrQuota) {
			return false, err
		}
		t.rt.log.Error("cannot journal", "task_id", t.task.key.Task, "turn", t.row.N, "err", err)
		if errors.Is(err, ErrFenced) {
			t.rt.end(ErrFenced)
			return false, err
		}
		select {
		case <-time.After(wait):
		case <-t.rt.life.Done():
			return false, err
		}
	}
}

// mayJournal marks the turn as one that has a record, unless its task has ended
// under it.
func (t *Turn) mayJournal() error {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if t.run.killed {
		return errTaskEnded
	}
	t.run.row.Recorded = true
	return nil
}

// logged counts the lines of the agent's log among entries.
func logged(entries []Entry) (n int) {
	for _, e := range entries {
		if e.Op == abi.OpLog && e.Kind == EntryCall && e.Err == nil {
			n++
		}
	}
	return n
}

// Repeat says that the calls to come were made by an earlier attempt and ended
// as e says: they are staged as they were then, whatever they would lead to
// now, and shown to nobody. With nil the turn goes on as new.
func (t *Turn) Repeat(e *Entry) {
	t.again = e
	if e != nil {
		t.clock.Advance(e.Time)
	}
	t.clock.hold(e != nil)
}

// past looks for what an earlier attempt at a turn has left.
func (r *Runtime) past(t *live, row Row, now Task) (p *Past, err error) {
	if !row.Recorded {
		return nil, nil
	}
	b, _ := now.breakpoint(row.N)
	given := b.given()
	err = r.soon("read a turn's record", t, func() error {
		rec, err := r.store.Record(r.life, t.key, row.N)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err == nil && rec.Header != nil {
			p = &Past{Record: rec, Given: given}
		}
		return err
	})
	return p, err
}

// adopt makes the turn start from where an earlier attempt did.
func (t *Turn) adopt(p *Past) error {
	var in abi.TurnInput
	if err := json.Unmarshal(p.Header.Input, &in); err != nil {
		return fmt.Errorf("the recorded input of turn %d cannot be read: %w", t.row.N, err)
	}
	t.past, t.start, t.input = p, p.Header.Start, p.Header.Input
	t.rec.History[t.agent.Name] = in.History.Count
	return nil
}

// closing is what the commit writes of the turn's record; nil when the executor
// keeps none.
func (t *Turn) closing(out Outcome, now time.Time) *Record {
	rec := out.Record
	if rec == nil {
		if t.past == nil && !t.journaled.Load() {
			return nil
		}
		// The executor failed before it could tell; what is kept must not
		// look unfinished.
		rec = &Record{End: &TurnEnd{Exit: "host", Usage: out.Usage}}
	}
	rec.N = t.row.N
	if rec.End != nil {
		rec.End.At, rec.End.Spans = now, t.marked()
	}
	return rec
}
