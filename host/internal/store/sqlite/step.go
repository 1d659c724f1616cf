package sqlite

import (
	"context"
	"errors"
	"fmt"

	"skep/host/internal/swarm"
)

// step is a [swarm.Step] as the writer takes it: encoded and checked on its
// caller's goroutine, so that the writer only moves bytes.
type step struct {
	key            swarm.TaskKey
	state          swarm.State
	created        int64
	body           []byte
	consume        []int64
	restash, stash bool
	rows           []row
	events         []entry
	history        []agentEntry
	states         []agentState
	answers        []swarm.Answered
	size           int

	// post is recorded with the step, if there is one.
	post    *swarm.Submission
	updated int64
	// earlier is set instead of anything being written when post's key is
	// taken.
	earlier *swarm.Submission
}

type entry struct {
	seq  int64
	body []byte
}

type row struct {
	entry
	stash bool
}

type agentEntry struct {
	agent string
	entry
}

type agentState struct {
	agent string
	body  []byte // nil clears
}

// Accept implements [swarm.Store].
func (s *Store) Accept(ctx context.Context, st swarm.Step, post swarm.Submission) (swarm.Submission, error) {
	key := st.Task.Key
	if post.Instance != key.InstanceKey || post.Task != key.Task {
		return swarm.Submission{}, fmt.Errorf("accept: the submission is for task %q of %q, its step for task %q of %q",
			post.Task, post.Instance.Instance, key.Task, key.Instance)
	}
	e, err := encodeStep(st)
	if err != nil {
		return swarm.Submission{}, fmt.Errorf("accept for task %q: %w", key.Task, err)
	}
	e.post = &post
	if err := s.writer.do(ctx, e); err != nil {
		return swarm.Submission{}, fmt.Errorf("accept for task %q: %w", key.Task, err)
	}
	if e.earlier != nil {
		return *e.earlier, swarm.ErrDuplicate
	}
	return post, nil
}

// Commit implements [swarm.Store].
func (s *Store) Commit(ctx context.Context, st swarm.Step) error {
	e, err := encodeStep(st)
	if err == nil {
		err = s.writer.do(ctx, e)
	}
	if err != nil {
		return fmt.Errorf("commit to task %q: %w", st.Task.Key.Task, err)
	}
	return nil
}

func encodeStep(st swarm.Step) (*step, error) {
	if st.Stash && st.Unstash {
		return nil, errors.New("a step cannot both stash and unstash")
	}
	e := &step{
		key:     st.Task.Key,
		state:   st.Task.State,
		created: stamp(st.Task.Created),
		updated: stamp(st.Task.Updated),
		consume: st.Consume,
		restash: st.Stash || st.Unstash,
		stash:   st.Stash,
		answers: st.Answers,
	}
	var err error
	if e.body, err = encode(st.Task); err != nil {
		return nil, err
	}
	e.size = len(e.body)
	return e, errors.Join(e.encodeQueue(st), e.encodeEvents(st), e.encodeAgents(st))
}

func (e *step) encodeQueue(st swarm.Step) error {
	for _, n := range st.Consume {
		if err := checkSeq("row", n); err != nil {
			return err
		}
	}
	e.rows = make([]row, 0, len(st.Insert))
	for _, r := range st.Insert {
		en, err := e.entry("row", r.N, r)
		if err != nil {
			return err
		}
		e.rows = append(e.rows, row{en, r.Stash})
	}
	return nil
}

func (e *step) encodeEvents(st swarm.Step) error {
	e.events = make([]entry, 0, len(st.Events))
	for _, ev := range st.Events {
		en, err := e.entry("event", ev.Seq, ev)
		if err != nil {
			return err
		}
		e.events = append(e.events, en)
	}
	return nil
}

func (e *step) encodeAgents(st swarm.Step) error {
	e.history = make([]agentEntry, 0, len(st.History))
	for _, h := range st.History {
		en, err := e.entry("history entry", h.Entry.Seq, h.Entry)
		if err != nil {
			return err
		}
		e.history = append(e.history, agentEntry{h.Agent, en})
	}
	e.states = make([]agentState, 0, len(st.States))
	for _, as := range st.States {
		if as.State == nil {
			e.states = append(e.states, agentState{agent: as.Agent})
			continue
		}
		body, err := wrap(as.State)
		if err != nil {
			return err
		}
		e.size += len(body)
		e.states = append(e.states, agentState{as.Agent, body})
	}
	return nil
}

func (e *step) entry(what string, seq int64, v any) (entry, error) {
	if err := checkSeq(what, seq); err != nil {
		return entry{}, err
	}
	body, err := encode(v)
	e.size += len(body)
	return entry{seq, body}, err
}

func (e *step) bytes() int { return e.size }

// apply implements change.
func (e *step) apply(ctx context.Context, t *tables) (steps int, err error) {
	iid, err := t.instance(ctx, e.key.InstanceKey)
	if err != nil {
		return 0, err
	}
	if recorded, err := e.applyPost(ctx, t, iid); !recorded || err != nil {
		return 0, err
	}
	ref, err := t.putTask(ctx, iid, e)
	if err != nil {
		return 0, err
	}
	for _, write := range []func(context.Context, *tables, *taskRef) error{
		e.applyQueue, e.applyEvents, e.applyHistory, e.applyStates,
	} {
		if err := write(ctx, t, ref); err != nil {
			return 0, err
		}
	}
	return 1, e.applyAnswers(ctx, t, iid)
}

// applyPost reports whether the step may go on. Inside the write transaction
// the answer is final, also between two posts of one group.
func (e *step) applyPost(ctx context.Context, t *tables, iid int64) (recorded bool, err error) {
	e.earlier = nil
	if e.post == nil {
		return true, nil
	}
	if recorded, err = t.putPost(ctx, iid, e.post, e.updated); recorded || err != nil {
		return recorded, err
	}
	p, err := t.post(ctx, e.post.Instance, e.post.Door, e.post.Key)
	e.earlier = &p
	return false, err
}

// applyQueue flags between deleting and inserting, so that neither consumed
// nor inserted rows are touched.
func (e *step) applyQueue(ctx context.Context, t *tables, ref *taskRef) error {
	for _, n := range e.consume {
		if _, err := t.deleteRow.ExecContext(ctx, pack(ref.tid, n)); err != nil {
			return err
		}
	}
	if e.restash {
		if _, err := t.stashRows.ExecContext(ctx, e.stash, pack(ref.tid, 0), pack(ref.tid, maxSeq)); err != nil {
			return err
		}
	}
	for _, r := range e.rows {
		if _, err := t.addRow.ExecContext(ctx, pack(ref.tid, r.seq), r.stash, r.body); err != nil {
			return err
		}
	}
	return nil
}

func (e *step) applyEvents(ctx context.Context, t *tables, ref *taskRef) error {
	for _, ev := range e.events {
		if _, err := t.addEvent.ExecContext(ctx, pack(ref.tid, ev.seq), ev.body); err != nil {
			return err
		}
	}
	return nil
}

func (e *step) applyHistory(ctx context.Context, t *tables, ref *taskRef) error {
	for _, h := range e.history {
		aid, err := t.agent(ctx, ref, h.agent)
		if err != nil {
			return err
		}
		if _, err := t.addHistory.ExecContext(ctx, pack(aid, h.seq), h.body); err != nil {
			return err
		}
	}
	return nil
}

func (e *step) applyStates(ctx context.Context, t *tables, ref *taskRef) error {
	for _, as := range e.states {
		aid, err := t.agent(ctx, ref, as.agent)
		if err != nil {
			return err
		}
		if _, err := t.setState.ExecContext(ctx, as.body, aid); err != nil {
			return err
		}
	}
	return nil
}

func (e *step) applyAnswers(ctx context.Context, t *tables, iid int64) error {
	for _, a := range e.answers {
		if _, err := t.setAnswer.ExecContext(ctx, a.Cursor, iid, []byte(a.Door), []byte(a.Key), []byte(e.key.Task)); err != nil {
			return err
		}
	}
	return nil
}
