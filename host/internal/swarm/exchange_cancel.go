package swarm

import (
	"context"
	"slices"

	"skep/spec/mail"
)

// CancelExchange withdraws an exchange: it is answered by the cancellation, and a message
// that no turn has begun is not handled. A task that nothing else waits for is cancelled
// with it. It is refused with ErrNotFound for an unknown task and with ErrConflict for an
// answered exchange.
func (r *Runtime) CancelExchange(ctx context.Context, x *Receipt, by string) error {
	t, err := r.acquireExisting(ctx, x.Task)
	if err != nil {
		return err
	}
	defer r.releaseTask(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	p := x.sub.pendingPost()
	if !p.Held || !t.openPosts.has(p) {
		t.mu.Unlock()
		return refuse(ErrConflict, "the message was answered already")
	}
	mut := t.beginMutation(r.now())
	if t.waitsOnlyFor(p) {
		mut.endBySystem(StateCancelled, mail.SubjectTaskCancelled, "The task was cancelled by "+by+".")
	} else {
		mut.withdrawPost(p, "The message was withdrawn by "+by+".")
		mut.applyStallRule()
	}
	t.mu.Unlock()
	return r.commitMutation(t, mut)
}

// waitsOnlyFor reports whether nothing else waits for the task than a post.
func (t *activeTask) waitsOnlyFor(p PendingPost) bool {
	others := func(o PendingPost) bool { return o.Key != "" && o != p }
	for _, o := range t.openPosts.waiting {
		if others(o) {
			return false
		}
	}
	peers := func(r OpenRequest) bool { return r.Exchange == nil && isRemote(r.From) }
	return !slices.ContainsFunc(t.openPosts.handled, others) && !slices.ContainsFunc(t.rec.Requests, peers)
}

// withdrawPost answers a held post that its caller has withdrawn.
func (mut *mutationBuilder) withdrawPost(p PendingPost, text string) {
	if _, waits := mut.active.openPosts.waiting[p.Row]; waits {
		mut.voidWaiting(p.Row)
	}
	i := mut.Task.requestOf(p)
	if i >= 0 {
		mut.failExchange(i, mail.SubjectTaskCancelled, text)
		return
	}
	m := mut.systemMessage(mail.Response, "user", mail.SubjectTaskCancelled, text)
	mut.logMessage(m, map[string]any{"recipient": "user"})
	mut.answerHeld(p, answerInMessage(m, mut.Task.Cursor))
}

// voidWaiting takes a row that no turn has out of the queue or the stash.
func (mut *mutationBuilder) voidWaiting(n int64) {
	rows := slices.Clone(mut.active.delayed)
	for _, q := range mut.active.queue {
		rows = append(rows, *q...)
	}
	queued := len(rows)
	rows = append(rows, mut.active.stash...)
	i := slices.IndexFunc(rows, func(row Row) bool { return row.N == n })
	if i < 0 {
		return // its turn runs
	}
	mut.voidRow(rows[i])
	if i < queued {
		mut.progressing--
	}
}
