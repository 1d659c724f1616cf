package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"skep/spec/mail"
)

// ExchangeState is what the caller of an exchange may see of it.
type ExchangeState struct {
	// State is the state of the task.
	State State
	// Answer is the answer; its Cursor is 0 while there is none.
	Answer Answer
	// Needs are the ids of what the caller is asked for: the ids of calls that wait for
	// people, and of the messages in Questions.
	Needs []string
	// Calls is the JSON list of these calls, empty for none, as in [Task.Calls].
	Calls string
	// Questions are what agents have asked the caller in the course of the exchange.
	Questions []mail.Message
}

// FindExchange returns the receipt of an earlier submission by its key, or ErrNotFound.
func (r *Runtime) FindExchange(ctx context.Context, key InstanceKey, door, id string) (*Receipt, error) {
	sub, err := r.store.Submission(ctx, key, door, id)
	if errors.Is(err, ErrNotFound) || err == nil && !sub.Expires.After(r.now()) {
		return nil, refuse(ErrNotFound, "there is no message '%s'", id)
	}
	if err != nil {
		return nil, err
	}
	receipt := newReceipt(sub)
	receipt.Duplicate = true
	return receipt, nil
}

// exchangePage is the least number of submissions that [Runtime.Exchanges] reads at once:
// many may have expired.
const exchangePage = 100

// Exchanges lists the submissions of a gateway's door in an instance that have not
// expired; see [TaskLog].
func (r *Runtime) Exchanges(ctx context.Context, key InstanceKey, door string, before Submission, limit int) (list []*Receipt, err error) {
	want := max(limit, exchangePage)
	for now := r.now(); len(list) < limit; {
		subs, err := r.store.Submissions(ctx, key, door, before, want)
		if err != nil {
			return nil, err
		}
		for _, sub := range subs {
			if before = sub; sub.Expires.After(now) && len(list) < limit {
				list = append(list, newReceipt(sub))
			}
		}
		if len(subs) < want {
			break
		}
	}
	return list, nil
}

// WaitExchange waits until an exchange is answered, or needs something of its caller that
// he has not seen: seen are the Needs of the state that an earlier call has returned. It
// ends as [Runtime.Wait] does.
func (r *Runtime) WaitExchange(ctx context.Context, x *Receipt, seen []string) (ExchangeState, error) {
	return r.followReceipt(ctx, x, Event{}, func(s ExchangeState) bool { return len(s.Needs) > 0 && !slices.Equal(s.Needs, seen) })
}

// LookExchange returns the state of an exchange now. Read is an event of the task's log that the
// caller has read, empty for none: the log is not read again for an answer in it. A task of another
// host is read from the store.
func (r *Runtime) LookExchange(ctx context.Context, x *Receipt, read Event) (ExchangeState, error) {
	s, err := r.followReceipt(ctx, x, read, func(ExchangeState) bool { return true })
	if errors.Is(err, ErrElsewhere) {
		return r.storedExchange(ctx, x, read)
	}
	return s, err
}

// storedExchange is the state of an exchange as its host has stored it. The task is read before the
// submission: an answer that comes between is found.
func (r *Runtime) storedExchange(ctx context.Context, x *Receipt, read Event) (ExchangeState, error) {
	snap, err := r.store.LoadQueue(ctx, x.Task)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return ExchangeState{}, err
	}
	pruned := err != nil
	sub, err := r.store.Submission(ctx, x.Task.InstanceKey, x.sub.Door, x.sub.Key)
	switch {
	case err != nil:
		return ExchangeState{}, err
	case pruned, sub.isBefore(snap.Task):
		return ExchangeState{}, x.answerPruned()
	}
	s, questions := snap.Task.exchangeState(x.sub.Key)
	if sub.Answer == 0 {
		s.Questions, err = r.readQuestions(ctx, x.Task, questions)
		return s, err
	}
	s.Answer, err = r.readAnswerWith(ctx, x.Task, sub.Answer, read)
	s.Answer.Metered = snap.Task.isMetered()
	return s, err
}

// followReceipt returns the first state of a submission that is answered, or enough.
func (r *Runtime) followReceipt(ctx context.Context, x *Receipt, read Event, enough func(ExchangeState) bool) (ExchangeState, error) {
	if a, ok := x.takeAnswer(); ok {
		return ExchangeState{Answer: a}, nil
	}
	def, ok := r.definition(x.Task.Tenant, x.Task.Swarm)
	if !ok {
		return ExchangeState{}, refuse(ErrNotFound, "swarm '%s' not found", x.Task.Swarm)
	}
	t, err := r.acquireTask(ctx, x.Task, def)
	if err != nil {
		return ExchangeState{}, err
	}
	defer r.releaseTask(t)
	for applied := x.answer != nil; ; {
		t.mu.Lock()
		changed, open := t.changed, t.openPosts.has(x.sub.pendingPost())
		s, questions := t.rec.exchangeState(x.sub.Key)
		moved := t.checkMoved()
		t.mu.Unlock()
		if moved != nil {
			return ExchangeState{}, moved
		}
		if !open && !applied {
			t.awaitMutation()
			applied = true
			continue
		}
		if !open {
			s.Answer, err = r.storedAnswer(ctx, t, x, read)
			return s, err
		}
		if enough(s) {
			s.Questions, err = r.readQuestions(ctx, x.Task, questions)
			return s, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ExchangeState{}, context.Cause(ctx)
		case <-r.stopped:
			a, err := drainAnswer(x)
			return ExchangeState{Answer: a}, err
		}
	}
}

// awaitMutation waits until the mutation under way is in memory: a submission that was
// found in the store may be its.
func (t *activeTask) awaitMutation() {
	t.commit.Lock()
	defer t.commit.Unlock()
}

// exchangeState is the state of an exchange without its answer and its questions, whose
// cursors are returned.
func (t Task) exchangeState(key string) (s ExchangeState, questions []int64) {
	s.State = t.State
	if calls := t.pendingCalls(); t.State == StatePaused && len(calls) > 0 {
		s.Calls = t.Calls()
		for _, c := range calls {
			s.Needs = append(s.Needs, c.id)
		}
	}
	for _, r := range t.Requests {
		if r.Answers != "" && r.Answers == key {
			s.Needs, questions = append(s.Needs, r.ID), append(questions, r.Cursor)
		}
	}
	return s, questions
}

// readQuestions reads questions from the task's log.
func (r *Runtime) readQuestions(ctx context.Context, key TaskKey, cursors []int64) (list []mail.Message, err error) {
	for _, at := range cursors {
		events, err := r.store.Events(ctx, key, at-1, 1)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 || events[0].Seq != at {
			return nil, fmt.Errorf("task '%s': the event %d with a question is missing", key.Task, at)
		}
		if m, ok := events[0].message(); ok {
			list = append(list, m)
		}
	}
	return list, nil
}

// storedAnswer reads the answer to a submission that waits no more, which may be in an event that was
// read.
func (r *Runtime) storedAnswer(ctx context.Context, t *activeTask, x *Receipt, read Event) (Answer, error) {
	if a, ok := x.takeAnswer(); ok {
		return a, nil
	}
	if a, ok := t.leavingAnswer(x.sub.pendingPost()); ok {
		return a, nil
	}
	sub, err := r.store.Submission(ctx, x.Task.InstanceKey, x.sub.Door, x.sub.Key)
	erased, pruned := t.isErased(), t.isPruned(sub)
	if moved := t.checkHere(); moved != nil { // it was dropped here, and is not gone
		return Answer{}, moved
	}
	switch {
	case erased:
		return Answer{}, refuse(ErrNotFound, "the task '%s' was cancelled: all that is kept of its tenant was erased", x.Task.Task)
	case err != nil:
		return Answer{}, err
	case pruned, sub.Answer == 0:
		return Answer{}, x.answerPruned()
	}
	a, err := r.readAnswerWith(ctx, x.Task, sub.Answer, read)
	a.Metered = t.isMetered()
	return a, err
}

func (r *Receipt) answerPruned() error {
	return refuse(ErrNotFound, "the answer to this request is gone: its task '%s' was pruned", r.Task.Task)
}

// readAnswerWith reads the answer at a cursor, which may be in an event that was read.
func (r *Runtime) readAnswerWith(ctx context.Context, key TaskKey, cursor int64, read Event) (Answer, error) {
	if read.Seq == cursor {
		return answerIn(key, read)
	}
	return r.readAnswer(ctx, key, cursor)
}
