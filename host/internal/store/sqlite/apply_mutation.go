package sqlite

import (
	"context"
	"time"
)

// apply implements change.
func (e *encodedMutation) apply(ctx context.Context, t *tables) (steps int, err error) {
	if err := t.useKey(ctx, e.closer.key(), e.key.Tenant); err != nil {
		return 0, err
	}
	iid, err := t.instance(ctx, e.key.InstanceKey)
	if err != nil {
		return 0, err
	}
	if recorded, err := e.applySubmission(ctx, t, iid); !recorded || err != nil {
		return 0, err
	}
	ref, err := t.writeTask(ctx, iid, e)
	if err != nil {
		return 0, err
	}
	for _, write := range []func(context.Context, *tables, *taskRef) error{
		e.applyQueue, e.applyEvents, e.applyHistory, e.applyStates, e.applyRecord, e.applyOutbox, e.applyBlobs,
	} {
		if err := write(ctx, t, ref); err != nil {
			return 0, err
		}
	}
	if err := t.writeKV(ctx, e.closer.opener, e.key, spaceOf{iid, ref.tid}, e.kv); err != nil {
		return 0, err
	}
	return 1, e.applyAnswers(ctx, t, iid)
}

// applySubmission reports whether the step may go on. Inside the write transaction
// the answer is final, also between two posts of one group.
func (e *encodedMutation) applySubmission(ctx context.Context, t *tables, iid int64) (recorded bool, err error) {
	e.earlier = nil
	if e.post == nil {
		return true, nil
	}
	if recorded, err = t.writeSubmission(ctx, iid, e.post, e.digest, e.updated); recorded || err != nil {
		return recorded, err
	}
	p, err := t.submission(ctx, e.post.Instance, e.post.Door, e.post.Key)
	e.earlier = &p
	return false, err
}

// applyQueue flags between deleting and inserting, so that neither consumed
// nor inserted rows are touched.
func (e *encodedMutation) applyQueue(ctx context.Context, t *tables, ref *taskRef) error {
	for _, n := range e.consume {
		size, err := t.consumeRow(ctx, ref, n)
		if err != nil {
			return err
		}
		t.delta.add(e.key.Tenant, -size, 0)
	}
	if err := e.applyStash(ctx, t, ref); err != nil {
		return err
	}
	for _, r := range e.rows {
		if _, err := t.addRow.ExecContext(ctx, pack(ref.tid, r.seq), r.stash, r.body); err != nil {
			return err
		}
		ref.rows[r.seq] = int64(len(r.body))
		t.delta.add(e.key.Tenant, int64(len(r.body)), 0)
	}
	if len(e.rows) > 0 {
		t.delta.addRows(e.key.Tenant, e.day(), int64(len(e.rows)))
	}
	return nil
}

// day is the day of UTC to which the step counts.
func (e *encodedMutation) day() int64 { return e.updated / int64(24*time.Hour) }

func (e *encodedMutation) applyStash(ctx context.Context, t *tables, ref *taskRef) (err error) {
	lo, hi := pack(ref.tid, 0), pack(ref.tid, maxSeq)
	switch {
	case e.stash:
		_, err = t.stashRows.ExecContext(ctx, lo, hi)
	case e.unstash:
		_, err = t.unstashRows.ExecContext(ctx, lo, hi)
	}
	return err
}

func (e *encodedMutation) applyEvents(ctx context.Context, t *tables, ref *taskRef) error {
	for _, ev := range e.events {
		if _, err := t.addEvent.ExecContext(ctx, pack(ref.tid, ev.seq), ev.body); err != nil {
			return err
		}
		t.delta.add(e.key.Tenant, int64(len(ev.body)), 0)
	}
	return nil
}

func (e *encodedMutation) applyHistory(ctx context.Context, t *tables, ref *taskRef) error {
	for _, h := range e.history {
		a, err := t.agent(ctx, ref, h.agent)
		if err != nil {
			return err
		}
		if _, err := t.addHistory.ExecContext(ctx, pack(a.aid, h.seq), h.body); err != nil {
			return err
		}
		t.delta.add(e.key.Tenant, int64(len(h.body)), 0)
	}
	return nil
}

func (e *encodedMutation) applyStates(ctx context.Context, t *tables, ref *taskRef) error {
	for _, as := range e.states {
		a, err := t.agent(ctx, ref, as.agent)
		if err != nil {
			return err
		}
		if _, err := t.setState.ExecContext(ctx, as.body, a.aid); err != nil {
			return err
		}
		t.delta.add(e.key.Tenant, int64(len(as.body))-a.size, 0)
		a.size = int64(len(as.body))
	}
	return nil
}

func (e *encodedMutation) applyRecord(ctx context.Context, t *tables, ref *taskRef) error {
	if e.record == nil {
		return nil
	}
	return t.writeRecord(ctx, e.key.Tenant, ref.tid, e.record, e.day())
}

func (e *encodedMutation) applyAnswers(ctx context.Context, t *tables, iid int64) error {
	for _, a := range e.answers {
		if _, err := t.setAnswer.ExecContext(ctx, a.Cursor, iid, []byte(a.Door), []byte(a.Key), []byte(e.key.Task)); err != nil {
			return err
		}
	}
	return nil
}
