package swarm

import (
	"context"
	"fmt"

	"skep/spec/mail"
)

// countsTowardsLimit reports whether a row counts towards the message limit: all rows
// but system messages without a causing turn and late ones, each once.
func countsTowardsLimit(row Row) bool {
	if row.Suspended || row.Late {
		return false // it was counted, or no local agent requested it
	}
	p := row.Message.Payload
	if p.Subject == mail.SubjectMaximumStepsReached {
		return false
	}
	return p.Sender.Type != mail.System || row.Cause != ""
}

// enforceMessageLimit replaces the next message, when the task has used up its
// messages, by a message to the entrypoint that demands completion. All waiting rows
// are stashed.
func (r *Runtime) enforceMessageLimit(ctx context.Context, t *activeTask) {
	text := r.limitText(ctx, t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	if t.rec.State != StateRunning || t.rec.Grace || !t.limitReached() {
		t.mu.Unlock()
		return
	}
	mut := t.beginMutation(r.now())
	mut.Task.Grace = true
	mut.Stash = true
	mut.progressing = len(t.running)
	mut.sendSystem(mail.Response, mut.Task.Entrypoint, mail.SubjectMaximumStepsReached, text, "")
	t.mu.Unlock()
	_ = r.commitMutation(t, mut) // the host stops
}

// limitReached reports whether completed and running turns use up the limit.
func (t *activeTask) limitReached() bool {
	if t.rec.MaxSteps <= 0 {
		return false
	}
	n := t.rec.Steps
	for _, rn := range t.running {
		if rn.counted {
			n++
		}
	}
	return n >= t.rec.MaxSteps
}

// maxTranscript bounds the transcript in the limit message, in bytes.
const maxTranscript = 32 << 10

// limitText demands completion and has a transcript of the task.
func (r *Runtime) limitText(ctx context.Context, t *activeTask) string {
	t.mu.Lock()
	after, limit := max(0, t.rec.Cursor-200), t.rec.MaxSteps
	t.mu.Unlock()
	events, err := r.store.Events(ctx, t.key, after, 200)
	if err != nil {
		r.log.Error("cannot read the task's events", "task_id", t.key.Task, "err", err)
	}
	text := fmt.Sprintf("The task has used its limit of %d messages. Call task_complete now with the best answer you have; anything else ends the task without one.\n", limit)
	for _, e := range events {
		if m, ok := e.message(); ok && len(text) < maxTranscript {
			p := m.Payload
			text += fmt.Sprintf("\n%s -> %s [%s] %s\n", p.Sender.Name, p.Recipient().Name, p.Subject, p.Body)
		}
	}
	if len(text) > maxTranscript {
		text = text[:runeStart(text, maxTranscript)] + "…"
	}
	return text
}
