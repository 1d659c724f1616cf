package swarm

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"skep/abi"
)

// CauseModule is the cause of a failed turn whose earlier attempt ran on a module that
// cannot run any more.
const CauseModule = "module"

// PriorAttempt is the record of an earlier attempt at a turn. The turn runs again on
// it: from its header, with the recorded results of its entries.
type PriorAttempt struct {
	Record
	// Answers follow the record's entries and are not durable yet.
	Answers []Entry
}

// PriorAttempt is the record of an earlier attempt, nil for a fresh turn. It must not
// be changed.
func (t *Turn) PriorAttempt() *PriorAttempt { return t.prior }

// Header is the start of the turn; the executor adds the module and recipe.
func (t *Turn) Header() TurnHeader {
	return TurnHeader{Agent: t.agent.Name, Start: t.start, Input: t.input, Attempt: 1}
}

// EffectKey is the idempotency key of a call's effect: the same on every attempt, and
// for no other call.
func (t *Turn) EffectKey(call string) string {
	sum := deriveBytes(t.rt.secret, t.rec, t.row.N, "effect "+call)
	return hex.EncodeToString(sum[:])
}

// Journal makes entries of the turn durable. It retries while the store fails, until the
// turn's task ends, and fails with [ErrQuota]. Log lines that the
// entries cover go to the host's log. It is safe for concurrent use; the caller keeps
// the entries in order.
func (t *Turn) Journal(w JournalWrite) (casOK bool, err error) {
	w.Day = dayOf(t.rt.now())
	ctx := context.WithoutCancel(t.rt.lifetime)
	err = t.rt.retryStore(t.rt.lifetime, func() (err error) {
		if err := t.beginJournal(); err != nil {
			return err
		}
		casOK, err = t.rt.store.Journal(ctx, t.task.key, t.row.N, w)
		if hasOutcome(ctx, err) {
			return err
		}
		if ok, stored := t.isJournaled(w); stored {
			casOK = ok
			return nil
		}
		return err
	}, "journal", "task_id", t.task.key.Task, "turn", t.row.N)
	if err != nil {
		return false, err
	}
	t.journaled.Store(true)
	t.releaseLogs(countLogCalls(w.Entries))
	return casOK, nil
}

// RetryStore repeats a call of a store while it fails, until ctx ends: what fails for a moment must
// not end the turn. what is for the log, as attrs are.
func (t *Turn) RetryStore(ctx context.Context, call func() error, what string, attrs ...any) error {
	return t.rt.retryStore(ctx, call, what, append(attrs, "task_id", t.task.key.Task, "turn", t.row.N)...)
}

// isJournaled reports whether a write of the journal is in the store, and how it decided
// the write's Cas.
func (t *Turn) isJournaled(w JournalWrite) (casOK, stored bool) {
	rec, err := t.rt.store.Record(t.rt.lifetime, t.task.key, t.row.N)
	if err != nil {
		return false, false
	}
	n := len(rec.Entries)
	switch {
	case w.Cas != nil:
		stored = n > 0 && rec.Entries[n-1].N == w.Cas.Yes.N
		return stored && bytes.Equal(rec.Entries[n-1].Answer, w.Cas.Yes.Answer), stored
	case len(w.Entries) > 0:
		return false, n > 0 && rec.Entries[n-1].N == w.Entries[len(w.Entries)-1].N
	}
	return false, w.Header != nil
}

// beginJournal marks the turn as recorded, unless its task has ended under it.
func (t *Turn) beginJournal() error {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if t.run.killed {
		return errTaskEnded
	}
	t.run.row.MayHaveRecord = true
	return nil
}

// countLogCalls counts the calls of op log among entries.
func countLogCalls(entries []Entry) (n int) {
	for _, e := range entries {
		if e.Op == abi.OpLog && e.Kind == EntryCall && e.Err == nil {
			n++
		}
	}
	return n
}

// SetReplay makes the following calls repeat a call of an earlier attempt, which ended
// as e: they are staged as they were then, independent of the current state, and not
// shown. With nil the turn goes on as new.
func (t *Turn) SetReplay(e *Entry) {
	t.replay = e
	if e != nil {
		t.clock.Advance(e.Time)
	}
	t.clock.holdBack(e != nil)
}

// loadPriorAttempt reads the record of an earlier attempt at a turn, nil for none. It tries
// until ctx ends.
func (r *Runtime) loadPriorAttempt(ctx context.Context, t *activeTask, row Row, now Task) (prior *PriorAttempt, err error) {
	if !row.MayHaveRecord {
		return nil, nil
	}
	b, _ := now.findBreakpoint(row.N)
	given := b.journalEntries()
	err = r.retryStore(ctx, func() error {
		rec, err := r.store.Record(r.lifetime, t.key, row.N)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err == nil && rec.Header != nil {
			prior = &PriorAttempt{Record: rec, Answers: given}
		}
		return err
	}, "read a turn's record", "task_id", t.key.Task)
	return prior, err
}

// startFromPrior starts the turn from the header of an earlier attempt.
func (t *Turn) startFromPrior(prior *PriorAttempt) error {
	var in abi.TurnInput
	if err := json.Unmarshal(prior.Header.Input, &in); err != nil {
		return fmt.Errorf("the recorded input of turn %d cannot be read: %w", t.row.N, err)
	}
	t.prior, t.start, t.input = prior, prior.Header.Start, prior.Header.Input
	t.rec.History[t.agent.Name] = in.History.Count
	return nil
}

// finalRecord is the part of the turn's record that the commit writes; nil when the
// executor keeps no record.
func (t *Turn) finalRecord(out Outcome, now time.Time) *Record {
	rec := out.Record
	if rec == nil {
		if t.prior == nil && !t.journaled.Load() {
			return nil
		}
		// The executor failed before it made a record; the stored one must not look
		// unfinished.
		rec = &Record{End: &TurnEnd{Exit: "host", Usage: out.Usage}}
	}
	rec.N = t.row.N
	if rec.End != nil {
		rec.End.At, rec.End.Spans, rec.End.ModelFailures = now, t.closeSpans(), t.run.modelFailures
	}
	return rec
}
