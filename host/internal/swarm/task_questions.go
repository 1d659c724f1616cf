package swarm

import (
	"context"
	"slices"
	"time"
)

// Question is a call that waits for a person, in a paused task.
type Question struct {
	Task TaskKey
	// Call is the call's id, unique in the task.
	Call string
	// Agent made the call, Action is what it calls, with Arguments in JSON.
	Agent, Action, Arguments string
	Since                    time.Time
	// AnsweredAt is the MAIL swarm that handed the task in, whose user answers; empty for a
	// call that is answered here.
	AnsweredAt string
}

// questions lists the calls of a paused task that wait for people.
func (t Task) questions() (list []Question) {
	elsewhere := t.answeredAt()
	add := func(call, agent, action, args string, since time.Time) {
		if since.IsZero() {
			since = t.Updated
		}
		list = append(list, Question{t.Key, call, agent, action, args, since, elsewhere})
	}
	for _, b := range t.Breakpoints {
		for _, c := range b.Calls {
			if c.Result == nil {
				add(c.ID, b.Agent, c.Name, string(c.Args), b.Since)
			}
		}
	}
	for _, c := range t.PeerCalls {
		add(c.ID, c.Agent, c.Name, c.Args, c.Since)
	}
	return list
}

// answeredAt is the swarm whose user answers the calls of the task; empty for this one. What
// came through a gateway is answered here: few protocols have a word for it.
func (t Task) answeredAt() string {
	if isGateway(t.Door) {
		return ""
	}
	return t.Caller
}

// Questions lists what waits for people in a page of paused tasks; see
// [TaskLog.PausedTasks].
func (r *Runtime) Questions(ctx context.Context, within InstanceKey, after string, limit int) (list []Question, next string, err error) {
	tasks, next, err := r.store.PausedTasks(ctx, within, after, limit)
	for _, t := range tasks {
		list = append(list, t.questions()...)
	}
	return list, next, err
}

// AnswerQuestion gives a person's answer to one call of a paused task, which goes on when
// it has all answers. It is refused with ErrNotFound for an unknown task, and with
// ErrConflict for a call that waits no more, or is answered at another swarm.
func (r *Runtime) AnswerQuestion(ctx context.Context, key TaskKey, call, text string) error {
	t, err := r.acquireExisting(ctx, key)
	if err != nil {
		return err
	}
	defer r.releaseTask(t)
	if err := r.commitAnswer(t, call, text); err != nil {
		return err
	}
	r.claimTurns(t)
	return nil
}

func (r *Runtime) commitAnswer(t *activeTask, call, text string) error {
	t.commit.Lock()
	defer t.commit.Unlock()
	r.refreshDefinition(t)
	t.mu.Lock()
	if err := t.rec.checkAnswer(call, text); err != nil {
		t.mu.Unlock()
		return err
	}
	mut := t.beginMutation(r.now())
	mut.answerCalls(Results{Each: []CallResult{{Call: call, Content: text}}})
	mut.applyStallRule()
	t.mu.Unlock()
	return r.commitMutation(t, mut)
}

// checkAnswer refuses an answer to a call that waits for none.
func (t Task) checkAnswer(call, text string) error {
	size := len(text)
	for _, b := range t.Breakpoints {
		for _, c := range b.Calls {
			if c.Result != nil {
				size += len(c.Result.Text)
			}
		}
	}
	waits := func(c pendingCall) bool { return c.id == call }
	switch {
	case t.State != StatePaused || !slices.ContainsFunc(t.pendingCalls(), waits):
		return refuse(ErrConflict, "call '%s' of task '%s' waits for no answer", call, t.Key.Task)
	case t.answeredAt() != "":
		return refuse(ErrConflict, "task '%s' came from swarm '%s', where its owner answers", t.Key.Task, t.answeredAt())
	case size > MaxBreakpointBytes:
		return refuse(ErrInvalid, "the answers of task '%s' would have %d bytes, at most %d", t.Key.Task, size, MaxBreakpointBytes)
	}
	return nil
}
