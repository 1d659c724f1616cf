package swarm

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"skep/spec/mail"
)

// acceptPost writes a post as one mutation of its task.
func (r *Runtime) acceptPost(ctx context.Context, t *activeTask, p Post) (*Receipt, error) {
	t.commit.Lock()
	defer t.commit.Unlock()

	if err := t.checkHere(); err != nil {
		return nil, err
	}
	r.refreshDefinition(t)
	to, err := r.routePost(ctx, t, &p)
	if err != nil {
		return nil, err
	}
	part, err := r.reserveQuota(ctx, t, p)
	if err != nil {
		return nil, err
	}
	defer part.release()
	token, err := r.acquireHostToken(ctx, t.key.InstanceKey)
	if err != nil {
		return nil, err
	}
	defer token.release()
	t.mu.Lock()
	mut, sub, err := r.buildPostMutation(t, p, to)
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	mut.Encoded = token.release
	mut.Admission = part.admission
	first, err := r.acceptMutation(ctx, mut.build(), sub)
	if errors.Is(err, ErrDuplicate) {
		return r.repeat(p, first)
	}
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	receipt := t.addReceipt(sub)
	change := r.applyMutation(t, mut, part)
	t.mu.Unlock()
	r.afterCommit(t)
	r.observer.Committed(change)
	return receipt, nil
}

// addReceipt makes the receipt of a new submission, which waits for its answer. The caller
// holds t.mu.
func (t *activeTask) addReceipt(sub Submission) *Receipt {
	receipt := newReceipt(sub)
	receipt.answer = make(chan Answer, 1)
	p := sub.pendingPost()
	t.waiters[p] = append(t.waiters[p], receipt.answer)
	return receipt
}

func (r *Runtime) buildPostMutation(t *activeTask, p Post, to recipientSet) (*mutationBuilder, Submission, error) {
	if p.Results != nil {
		if err := p.Results.checkTask(t.rec); err != nil {
			return nil, Submission{}, err
		}
	}
	mut := t.beginMutation(r.now())
	mut.Blobs = p.Blobs
	sub := Submission{
		Instance: t.key.InstanceKey, Door: p.Door, Key: cmp.Or(p.Key, newID()), Digest: p.Digest,
		Task: t.key.Task, Expires: mut.now.Add(keyLife),
	}
	if isGateway(p.Door) {
		sub.makeHeld(mut.now, p.Keep, p.Note)
	}
	if p.Results != nil {
		sub.Row = mut.resumeTask(*p.Results)
		mut.overrideTaskLimits(p)
		mut.postChanges.handled = append(mut.postChanges.handled, sub.pendingPost())
	} else {
		mut.openTask(p)
		sub.Row = mut.dispatchPost(p, to)
		mut.postChanges.added = append(mut.postChanges.added, sub.pendingPost())
	}
	if isGateway(p.Door) {
		sub.Agent = mut.Task.Entrypoint
	}
	sub.Cursor = mut.Task.Cursor
	mut.applyStallRule()
	return mut, sub, nil
}

// openTask makes the task's record ready for a post: created, running or reopened.
func (mut *mutationBuilder) openTask(p Post) {
	if !mut.active.exists {
		mut.createTask(p)
	} else if mut.Task.State != StateRunning {
		mut.reopenTask(p.Trace)
	}
	mut.Task.Entrypoint = p.Entrypoint
	if isGateway(p.Door) {
		mut.Task.Door = p.Door
	}
	mut.setTaskLimits(p)
}

// setTaskLimits sets the limits of the task from a post on: the swarm's, or what the
// post has of its own. What an earlier post had of its own does not last.
func (mut *mutationBuilder) setTaskLimits(p Post) {
	mut.Task.MaxSteps, mut.Task.Timeout = mut.def.Limits.TaskMessages, mut.def.Limits.TaskTimeout
	mut.overrideTaskLimits(p)
}

// overrideTaskLimits replaces limits of the task by a post's own, and restarts its
// time.
func (mut *mutationBuilder) overrideTaskLimits(p Post) {
	admin := p.Principal.Role == mail.RoleAdmin
	if p.MaxSteps > 0 {
		mut.Task.MaxSteps = override(p.MaxSteps, mut.def.Limits.TaskMessages, admin)
	}
	if p.Timeout > 0 {
		mut.Task.Timeout = override(p.Timeout, mut.def.Limits.TaskTimeout, admin)
	}
	mut.resetDeadline()
}

// resetDeadline restarts the task's time.
func (mut *mutationBuilder) resetDeadline() {
	mut.Task.Deadline = time.Time{}
	if mut.Task.Timeout > 0 {
		mut.Task.Deadline = mut.now.Add(mut.Task.Timeout)
	}
}

// override returns a caller's limit, bounded by the operator's for all but admins. A
// ceiling of 0 is none.
func override[T int | time.Duration](want, ceiling T, admin bool) T {
	if ceiling > 0 && !admin {
		return min(want, ceiling)
	}
	return want
}

func (mut *mutationBuilder) createTask(p Post) {
	owner := mail.Owner{Role: p.Principal.Role, ID: mail.PrincipalID(p.Principal.Tenant, p.Principal.ID), Swarm: p.Swarm}
	mut.Task = mut.newTask(owner.String(), p.Trace)
}

// newTask makes the record of a task, with the definition's limits of a task. The owner
// is its first contributor. caller is the context of the message that creates the task.
func (mut *mutationBuilder) newTask(owner string, caller Trace) Task {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	task := Task{
		Key: mut.active.key, Owner: owner, Contributors: []string{owner},
		State: StateRunning, Created: mut.now, Updated: mut.now, Nonce: nonce, Definition: mut.def.Digest,
		MaxSteps: mut.def.Limits.TaskMessages, Timeout: mut.def.Limits.TaskTimeout,
		History: map[string]int64{},
	}
	task.Trace = mut.active.traces.begin(task, caller, mut.now)
	return task
}

// newPostRow makes a post's message to one local agent.
func (mut *mutationBuilder) newPostRow(p Post, agent string) Row {
	m := newMessage(p.Type, messageParts{
		task: mut.Task.Key.Task, swarm: mut.def.Name, id: newID(), payloadID: newID(), at: mut.now,
		sender:     mail.Address{Type: mail.AddressType(p.Principal.Role), Name: p.Principal.ID},
		recipients: []mail.Address{{Type: mail.Agent, Name: agent}},
		subject:    p.Subject, body: p.Body,
	})
	if p.Info != nil {
		m.Payload.RoutingInfo = p.Info
	}
	return Row{
		Agent: agent, Tier: mail.Tier(m), Message: m, Trace: p.Trace,
		Origin: Origin{Door: p.Door, Realm: p.Principal.Tenant, Principal: string(p.Principal.Role) + ":" + p.Principal.ID},
		Cause:  m.ID,
	}
}
