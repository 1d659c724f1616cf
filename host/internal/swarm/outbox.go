package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skep/spec/mail"
)

// Delivery is an outbox message in the form in which its peer gets it.
type Delivery struct {
	// Task is the task that sends it.
	Task TaskKey
	// Since is the time when the message was put into the outbox.
	Since time.Time
	// Notice means that the host has written it, not an agent.
	Notice bool
	// Ending means that it only reports the end of the task. A peer without the task
	// does not need it; any other message is then undeliverable.
	Ending bool
	// GiveUpAt is when the delivery is given up for good. It is zero while the task
	// waits for the answer or the failure.
	GiveUpAt time.Time
	// Back means that the peer already works on the task.
	Back bool
	// Wrapper has no token yet. Its message id names the message in the outbox: a task that
	// begins again after an erasure numbers its messages anew.
	Wrapper mail.Interswarm
	// Answers is the key of the exchange in whose course an agent sends it to the caller,
	// or which it answers, empty for other messages.
	Answers string
	// Conversation names the task to the peer, where its protocol has conversations. Only
	// this store can make it, and no other task or peer has the same.
	Conversation string
	// Hops counts the swarms between the peer and the task's owner.
	Hops  int
	Trace Trace
	// Last means that no other message that was wanted waits behind it. The forwarder is woken for
	// one that comes.
	Last bool
}

// Outboxes lists the tasks with outbox messages to deliver, once for each peer. An
// earlier host may have left them.
func (r *Runtime) Outboxes(ctx context.Context) ([]OutboxKey, error) {
	list, err := r.store.Outboxes(ctx)
	return slices.DeleteFunc(list, func(b OutboxKey) bool {
		_, ok := r.definition(b.Task.Tenant, b.Task.Swarm)
		return !ok || !r.share.hasTask(b.Task)
	}), err
}

// NextDelivery returns the oldest undelivered message of a task for a peer, without those
// whose ids rest; ok is false when there is none.
func (r *Runtime) NextDelivery(ctx context.Context, box OutboxKey, resting ...string) (p Delivery, ok bool, err error) {
	return r.NextWanted(ctx, box, func(msg OutboxMessage) bool { return !slices.Contains(resting, msg.ID) })
}

// NextWanted returns the oldest undelivered message of a task for a peer that is wanted.
// wanted is called with the task locked, in the order of the messages.
func (r *Runtime) NextWanted(ctx context.Context, box OutboxKey, wanted func(OutboxMessage) bool) (p Delivery, ok bool, err error) {
	t, err := r.acquireExisting(ctx, box.Task)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrElsewhere) {
		return Delivery{}, false, nil
	}
	if err != nil {
		return Delivery{}, false, err
	}
	defer r.releaseTask(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	isWanted := func(msg OutboxMessage) bool { return msg.Peer == box.Peer && wanted(msg) }
	i := slices.IndexFunc(t.outbox, isWanted)
	if i < 0 {
		return Delivery{}, false, nil
	}
	msg := t.outbox[i]
	return Delivery{
		Task: box.Task, Since: msg.Since, Notice: msg.Notice, Ending: t.rec.isDismissal(msg), GiveUpAt: msg.giveUpAt(), Back: t.rec.hasContributor(box.Peer), Wrapper: t.rec.wrapMessage(msg, t.def.Name),
		Answers: msg.Answers, Conversation: r.conversation(t.rec, box.Peer), Hops: t.rec.Hops + 1, Trace: msg.Trace,
		Last: !slices.ContainsFunc(t.outbox[i+1:], isWanted),
	}, true, nil
}

func (r *Runtime) conversation(t Task, peer string) string {
	sum := deriveBytes(r.secret, t, 0, "conversation "+peer)
	return mail.NewUUID([16]byte(sum[:16]))
}

// wrapMessage makes the wrapper for a peer.
func (t Task) wrapMessage(msg OutboxMessage, local string) mail.Interswarm {
	p := msg.Message.Payload
	if p.Sender.Type == mail.Agent {
		p.Sender.Name = mail.FormatAddr(p.Sender.Name, local)
	}
	return mail.Interswarm{
		MessageID: msg.ID, SourceSwarm: local, TargetSwarm: msg.Peer, Timestamp: msg.Message.Timestamp,
		Type: msg.Message.Type, Payload: p, TaskOwner: t.Owner, TaskContributors: t.confirmedContributors(),
	}
}

// MarkDelivered takes a message out of its outbox. runner is the owner string of the
// instance that works on the task there, as the peer reported it; it may be empty or
// malformed.
func (r *Runtime) MarkDelivered(ctx context.Context, box OutboxKey, id, runner string) error {
	return r.commitOutboxChange(ctx, box, id, func(mut *mutationBuilder, msg OutboxMessage) {
		mut.removeDelivered(msg, runner)
		mut.applyStallRule()
	})
}

// removeDelivered takes a message out of its outbox that a peer has.
func (mut *mutationBuilder) removeDelivered(msg OutboxMessage, runner string) {
	mut.Delivered = append(mut.Delivered, msg.N)
	if msg.isQuestionNotice() {
		return
	}
	mut.undelivered--
	mut.markRequestTaken(msg)
	switch {
	case ownerSwarm(runner) == msg.Peer && (runner == mut.Task.Owner || isSwarmOwner(runner)):
		mut.Task.confirmRunner(runner)
	case !mut.Task.hasContributor(msg.Peer):
		mut.Task.confirmRunner(mail.Owner{Role: mail.RoleSwarm, ID: mail.EncodeID(mut.def.Name), Swarm: msg.Peer}.String())
	}
	if mut.Task.State == StateRunning {
		mut.logEvent("interswarm_message_sent", "sent interswarm message to swarm "+msg.Peer, map[string]any{
			"message_id": msg.ID, "swarm": msg.Peer,
		})
	}
}

// removeAnswered takes the request that a response from a gateway answers out of its outbox: the
// foreign agent has it, and owes no answer to a repeat. Another swarm's delivery reports who runs
// the task there, and is waited for.
func (mut *mutationBuilder) removeAnswered(in Incoming, id, agent string) {
	if !isGateway(in.Door) {
		return
	}
	for _, msg := range mut.active.outbox {
		request, asks := msg.openRequest()
		if asks && msg.Peer == in.Peer && request.ID == id && request.From == agent && !slices.Contains(mut.Delivered, msg.N) {
			mut.removeDelivered(msg, "")
			return
		}
	}
}

// MarkUndeliverable makes a message a dead letter and notifies its sender of the reason
//
func (r *Runtime) MarkUndeliverable(ctx context.Context, box OutboxKey, id, reason string) error {
	return r.commitOutboxChange(ctx, box, id, func(mut *mutationBuilder, msg OutboxMessage) {
		msg.Dead = &DeliveryFailure{At: mut.now, Reason: reason}
		mut.Outbox = append(mut.Outbox, msg)
		if msg.isQuestionNotice() {
			return // the operator's concern, not the task's
		}
		mut.undelivered--
		mut.withdrawNotices(msg)
		mut.logEvent("interswarm_message_error", "error sending interswarm message to swarm "+box.Peer+": "+reason, map[string]any{
			"message_id": msg.ID, "swarm": box.Peer, "error": reason,
		})
		mut.reportUndeliverable(msg, reason)
		mut.applyStallRule()
	})
}

// withdrawNotices removes the host's notices to a swarm that, as a failed delivery
// shows, takes no part in the task.
func (mut *mutationBuilder) withdrawNotices(dead OutboxMessage) {
	if mut.Task.hasContributor(dead.Peer) {
		return
	}
	for _, msg := range mut.active.outbox {
		if msg.Peer == dead.Peer && msg.N != dead.N && msg.Notice {
			mut.Delivered = append(mut.Delivered, msg.N)
			mut.undelivered--
		}
	}
}

// reportUndeliverable notifies the sender of an undeliverable message.
func (mut *mutationBuilder) reportUndeliverable(msg OutboxMessage, reason string) {
	p := msg.Message.Payload
	if p.Subject == mail.SubjectActionCompleteBcast && msg.Notice {
		mut.failUndeliveredResults(msg, reason)
		return
	}
	if p.Subject == mail.SubjectBreakpointToolCall && msg.Notice {
		mut.resumeUnreported()
		return
	}
	request, asks := msg.openRequest()
	if asks && msg.Post > 0 {
		mut.closeRequest(request.ID)
		mut.collectRemoteAnswer(request, fmt.Sprintf("The message to %s was not delivered: %s. It is kept as dead letter %s.", request.To, reason, msg.ID), true)
		return
	}
	if asks {
		mut.closeRequest(request.ID)
	}
	_, known := mut.def.agent(p.Sender.Name)
	if msg.Notice || !known || mut.Task.State.Ended() {
		return
	}
	var to string
	for i, r := range p.Recipients {
		if i > 0 {
			to += ", "
		}
		to += r.Name
	}
	mut.sendFailedAnswer(msg.Message.Type, p.ID, p.Sender.Name, mail.SubjectRouterError,
		fmt.Sprintf("The message [%s] to %s was not delivered: %s. It is kept as dead letter %s.", p.Subject, to, reason, msg.ID), msg.Message.ID)
}

// commitOutboxChange commits a change of an outbox message, if it is still to be
// delivered.
func (r *Runtime) commitOutboxChange(ctx context.Context, box OutboxKey, id string, change func(*mutationBuilder, OutboxMessage)) error {
	t, err := r.acquireExisting(ctx, box.Task)
	if err != nil {
		return err
	}
	defer r.releaseTask(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	i := slices.IndexFunc(t.outbox, func(msg OutboxMessage) bool { return msg.ID == id && msg.Peer == box.Peer })
	if i < 0 {
		t.mu.Unlock()
		return nil
	}
	mut := t.beginMutation(r.now())
	change(mut, t.outbox[i])
	t.mu.Unlock()
	return r.commitMutation(t, mut)
}

// DeadLetters returns a page of a tenant's dead letters; see [Store].
func (r *Runtime) DeadLetters(ctx context.Context, tenant string, before int64, limit int) ([]DeadLetter, error) {
	return r.store.DeadLetters(ctx, tenant, before, limit)
}

// ResendDeadLetter puts a dead letter of a tenant back into its outbox. It is refused
// with ErrNotFound for a message that is not dead any more.
func (r *Runtime) ResendDeadLetter(ctx context.Context, tenant, id string) (DeadLetter, error) {
	found, err := r.findDeadLetter(ctx, tenant, id)
	if err != nil {
		return DeadLetter{}, err
	}
	t, err := r.acquireExisting(ctx, found.Task)
	if err != nil {
		return DeadLetter{}, err
	}
	defer r.releaseTask(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	// Another call may have been first.
	if found, err = r.findDeadLetter(ctx, tenant, id); err != nil {
		return DeadLetter{}, err
	}
	t.mu.Lock()
	mut := t.beginMutation(r.now())
	mut.reviveDeadLetter(found.OutboxMessage)
	t.mu.Unlock()
	return found, r.commitMutation(t, mut)
}

func (r *Runtime) findDeadLetter(ctx context.Context, tenant, id string) (DeadLetter, error) {
	found, err := r.store.DeadLetter(ctx, tenant, id)
	if errors.Is(err, ErrNotFound) {
		return DeadLetter{}, refuse(ErrNotFound, "there is no dead letter '%s'", id)
	}
	return found, err
}

// reviveDeadLetter puts a dead letter back. If the task runs, an answer to it counts
// again.
func (mut *mutationBuilder) reviveDeadLetter(msg OutboxMessage) {
	msg.Dead, msg.Since = nil, mut.now
	if mut.Task.isResolved(msg) {
		mut.Delivered = append(mut.Delivered, msg.N)
		return
	}
	mut.Outbox = append(mut.Outbox, msg)
	if msg.isQuestionNotice() {
		return
	}
	mut.undelivered++
	request, ok := msg.openRequest()
	if ok && mut.Task.State == StateRunning && len(mut.Task.Requests) < maxOpenRequests {
		mut.Task.Requests = append(mut.Task.Requests, request)
	}
	mut.logEvent("interswarm_message_resent", "the dead letter to swarm "+msg.Peer+" is sent again", map[string]any{
		"message_id": msg.ID, "swarm": msg.Peer,
	})
}

// addToOutbox puts a message into the task's outbox. A message that a turn sends after
// the task has ended, or in its grace, is dead at once: its answer could not be used.
func (mut *mutationBuilder) addToOutbox(msg OutboxMessage) {
	mut.Task.OutboxMessages++
	msg.N, msg.Since = mut.Task.OutboxMessages, mut.now
	if name, _, err := mail.ParseAddr(msg.Message.Payload.Recipient().Name); err == nil {
		mut.Task.recordPeer(msg.Peer, name)
	}
	if !msg.Notice && (mut.Task.State.Ended() || mut.Task.Grace) {
		msg.Dead = &DeliveryFailure{At: mut.now, Reason: "the task had ended, or used up its messages, when the turn that sent it was over"}
	} else {
		mut.undelivered++
	}
	mut.Outbox = append(mut.Outbox, msg)
	if !msg.Notice {
		mut.logMessage(msg.Message, map[string]any{"recipient": msg.Message.Payload.Recipient().Name})
	}
}

// applyOutbox makes the outbox changes of a mutation visible.
func (t *activeTask) applyOutbox(s Mutation) {
	for _, msg := range s.Outbox {
		t.outbox = slices.DeleteFunc(t.outbox, func(old OutboxMessage) bool { return old.N == msg.N })
		if msg.Dead == nil {
			t.outbox = append(t.outbox, msg)
		}
	}
	t.outbox = slices.DeleteFunc(t.outbox, func(msg OutboxMessage) bool { return slices.Contains(s.Delivered, msg.N) })
	slices.SortFunc(t.outbox, func(a, b OutboxMessage) int { return int(a.N - b.N) })
}

// wakeForwarder notifies the forwarder of the task's undelivered messages. The caller
// holds t.commit.
func (r *Runtime) wakeForwarder(t *activeTask) {
	t.mu.Lock()
	var peers []string
	for _, msg := range t.outbox {
		if !slices.Contains(peers, msg.Peer) {
			peers = append(peers, msg.Peer)
		}
	}
	t.mu.Unlock()
	for _, peer := range peers {
		r.forward.Wake(OutboxKey{t.key, peer})
	}
}
