package sqlite

import (
	"context"
	"errors"
	"time"

	"skep/host/internal/swarm"
)

// apply implements change.
func (e *encodedMutation) apply(ctx context.Context, t *tables) (steps int, err error) {
	if e.refused {
		return 0, nil
	}
	if err := t.useKey(ctx, e.closer.key(), e.key.Tenant); err != nil {
		return 0, err
	}
	iid, err := t.instance(ctx, e.key.InstanceKey)
	if err != nil {
		return 0, err
	}
	if recorded, err := e.applySubmissions(ctx, t, iid); !recorded || err != nil {
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
	t.delta.used.add(e.key.Tenant, e.updated, e.usage)
	return 1, e.applyAnswers(ctx, t, iid)
}

// applySubmissions reports whether the step may go on. Inside the write transaction
// the answer is final, also between two posts of one group.
func (e *encodedMutation) applySubmissions(ctx context.Context, t *tables, iid int64) (recorded bool, err error) {
	e.earlier = nil
	if len(e.posts) > 1 {
		if taken, err := e.findTaken(ctx, t); taken || err != nil {
			return false, err
		}
	}
	for i := range e.posts {
		one := &e.posts[i]
		if recorded, err = t.writeSubmission(ctx, iid, one, e.updated); err != nil {
			return false, err
		}
		if !recorded {
			p, err := t.submission(ctx, one.post.Instance, one.post.Door, one.post.Key)
			e.earlier = &p
			return false, err
		}
	}
	return true, nil
}

// findTaken looks for the keys of several posts before the first of them is written.
func (e *encodedMutation) findTaken(ctx context.Context, t *tables) (taken bool, err error) {
	for _, one := range e.posts {
		p, err := t.submission(ctx, one.post.Instance, one.post.Door, one.post.Key)
		switch {
		case errors.Is(err, swarm.ErrNotFound):
		case err != nil:
			return false, err
		case stamp(p.Expires) > e.updated:
			e.earlier = &p
			return true, nil
		}
	}
	return false, nil
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
	return t.writeRecord(ctx, e.key.Tenant, ref, e.record, e.day())
}

func (e *encodedMutation) applyAnswers(ctx context.Context, t *tables, iid int64) error {
	for _, a := range e.answers {
		if _, err := t.setAnswer.ExecContext(ctx, a.Cursor, e.updated, iid, []byte(a.Door), []byte(a.Key), []byte(e.key.Task)); err != nil {
			return err
		}
	}
	return nil
}
