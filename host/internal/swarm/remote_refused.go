package swarm

import (
	"context"
	"errors"
)

// maxRefusedWrappers bounds the refused wrappers in a task's log.
const maxRefusedWrappers = 3

// RecordRefusedWrapper logs in a task that a door has refused a wrapper for it. It does
// so at most 3 times a task, and only while the task is open and the calling swarm
// takes part in it.
func (r *Runtime) RecordRefusedWrapper(ctx context.Context, in Incoming, reason string) error {
	runner, err := in.findRunner()
	if err != nil {
		return nil // it names no local task
	}
	t, err := r.acquireExisting(ctx, TaskKey{runner.instance(in.Swarm), in.Wrapper.Payload.TaskID})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.releaseTask(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	if in.checkTask(t) != nil || t.rec.State.Ended() || t.rec.RefusedWrappers >= maxRefusedWrappers {
		return nil
	}
	t.mu.Lock()
	mut := t.beginMutation(r.now())
	mut.Task.RefusedWrappers++
	mut.logEvent("interswarm_message_error", "a message from swarm "+in.Peer+" was refused: "+reason, map[string]any{
		"message_id": in.Wrapper.MessageID, "swarm": in.Peer, "error": reason,
	})
	t.mu.Unlock()
	r.log.Warn("a message for an open task was refused", "peer", in.Peer, "task_id", t.key.Task, "reason", reason)
	return r.commitMutation(t, mut)
}
