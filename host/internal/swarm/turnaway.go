package swarm

import (
	"context"
	"errors"

	"skep/spec/mail"
)

// maxTurnedAway bounds what a task keeps of the wrappers that were refused.
const maxTurnedAway = 3

// wayBack says why nobody here could answer what a swarm asks: it would wait in
// vain until its time is up.
func (r *Runtime) wayBack(ctx context.Context, key InstanceKey, in Incoming) error {
	if in.Wrapper.Type != mail.Request && in.Wrapper.Type != mail.Interrupt {
		return nil
	}
	err := r.forward.Check(ctx, key, in.Peer)
	if err == nil {
		return nil
	}
	r.log.Warn("a swarm asks that cannot be answered", "peer", in.Peer, "task_id", in.Wrapper.Payload.TaskID, "err", err)
	return refuse(ErrInvalid, "swarm '%s' has no way back to '%s': add [peers.%s] with base_url and auth_token to its swarm.toml, or run `skep peer add %s` there",
		in.Swarm, in.Peer, in.Peer, in.Peer)
}

// TurnedAway notes in a task's log that a door has refused a wrapper for it. It
// does so at most 3 times a task, and only while the task is open and the swarm
// that calls has a part in it: what others send is not of the task.
func (r *Runtime) TurnedAway(ctx context.Context, in Incoming, reason string) error {
	runner, err := in.runner()
	if err != nil {
		return nil // it names no task of this host
	}
	t, err := r.existing(ctx, TaskKey{runner.instance(in.Swarm), in.Wrapper.Payload.TaskID})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.release(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	if in.belongs(t) != nil || t.rec.State.Ended() || t.rec.TurnedAway >= maxTurnedAway {
		return nil
	}
	t.mu.Lock()
	s := t.begin(r.now())
	s.Task.TurnedAway++
	s.event("interswarm_message_error", "a message from swarm "+in.Peer+" was refused: "+reason, map[string]any{
		"message_id": in.Wrapper.MessageID, "swarm": in.Peer, "error": reason,
	})
	t.mu.Unlock()
	r.log.Warn("a message for an open task was refused", "peer", in.Peer, "task_id", t.key.Task, "reason", reason)
	return r.applyStep(t, s)
}
