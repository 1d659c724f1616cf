package swarm

import (
	"context"
	"time"

	"skep/spec/mail"
)

// RecordLook logs in a task, which may have ended, that somebody who does not own it may read what
// is said there until a time, and why. It is durable on return. created tells the task from a later
// one of the same name.
func (r *Runtime) RecordLook(ctx context.Context, key TaskKey, by, reason string, until time.Time) (created time.Time, err error) {
	t, err := r.acquireExisting(ctx, key)
	if err != nil {
		return time.Time{}, err
	}
	defer r.releaseTask(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	mut := t.beginMutation(r.now())
	if mut.Task.State.Ended() {
		mut.Task.Updated = t.rec.Updated // when it ended, by which it is deleted
	}
	end := mail.FormatTime(until)
	mut.logEvent("task_look", by+" reads this task until "+end+": "+reason, map[string]any{"by": by, "until": end, "reason": reason})
	created = mut.Task.Created
	t.mu.Unlock()
	return created, r.commitMutation(t, mut)
}
