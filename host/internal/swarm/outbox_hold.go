package swarm

import "slices"

// A delivery reads its task several times: to find the message, for the answer of the exchange, and
// to mark it delivered. So a task that has ended stays in memory until its outbox is empty.

// maxOutboxHolds bounds the tasks that only their outbox keeps in memory: a peer that is away leaves
// any number of them.
const maxOutboxHolds = 128

// holdForOutbox holds a task that does not run and has messages to deliver, and releases it when it
// has none. Beyond maxOutboxHolds the oldest is released: the next delivery loads it. The caller
// has a hold on t.
func (r *Runtime) holdForOutbox(t *activeTask) {
	t.mu.Lock()
	wanted := t.exists && t.rec.State != StateRunning && len(t.outbox) > 0
	t.mu.Unlock()
	if gone := r.changeOutboxHold(t, wanted); gone != nil {
		r.releaseTask(gone)
	}
}

// changeOutboxHold returns the task that is held no more, nil for none.
func (r *Runtime) changeOutboxHold(t *activeTask, wanted bool) (gone *activeTask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case wanted == t.outboxHeld:
		return nil
	case !wanted:
		gone = t
	default:
		t.outboxHeld = true
		t.holders, t.holdGeneration = t.holders+1, t.holdGeneration+1
		if r.outboxHolds = append(r.outboxHolds, t); len(r.outboxHolds) <= maxOutboxHolds {
			return nil
		}
		gone = r.outboxHolds[0]
	}
	gone.outboxHeld = false
	i := slices.Index(r.outboxHolds, gone)
	r.outboxHolds = slices.Delete(r.outboxHolds, i, i+1)
	return gone
}

// keepAnswers keeps the answers to exchanges with the messages that take them to their callers. The
// caller holds t.mu.
func (t *activeTask) keepAnswers(resolved map[PendingPost]Answer) {
	for post, answer := range resolved {
		i := slices.IndexFunc(t.outbox, func(msg OutboxMessage) bool { return post.Key != "" && msg.Answers == post.Key && msg.answered == nil })
		if i >= 0 {
			t.outbox[i].answered = &answeredPost{post, answer}
		}
	}
}

// leavingAnswer is the answer to a post while the message that takes it to its caller is in the outbox.
func (t *activeTask) leavingAnswer(post PendingPost) (Answer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, msg := range t.outbox {
		if msg.answered != nil && msg.answered.post == post {
			return msg.answered.answer, true
		}
	}
	return Answer{}, false
}
