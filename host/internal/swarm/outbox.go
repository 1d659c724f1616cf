package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skep/spec/mail"
)

// Parcel is a letter as it goes to its peer.
type Parcel struct {
	// N is the letter's number in its task, Since when it was put into the outbox.
	N     int64
	Since time.Time
	// Notice says that the host has written it, not an agent.
	Notice bool
	// Ending says that it tells the peer that the task is over. A peer which does
	// not know the task needs it no more; any other letter is then given up.
	Ending bool
	// Until is zero when somebody here waits for the letter to be answered, or to
	// be given up. Of others it is when they are given up at last.
	Until time.Time
	// Back says that the peer works on the task already.
	Back bool
	// Wrapper has no token yet.
	Wrapper mail.Interswarm
	// Hops counts the swarms between the peer and the task's owner.
	Hops  int
	Trace string
}

// Outboxes lists the tasks with letters to deliver, which an earlier host may
// have left, once for each peer.
func (r *Runtime) Outboxes(ctx context.Context) ([]Outbox, error) {
	list, err := r.store.Outboxes(ctx)
	return slices.DeleteFunc(list, func(b Outbox) bool {
		_, ok := r.definition(b.Task.Tenant, b.Task.Swarm)
		return !ok
	}), err
}

// NextLetter returns the oldest letter of a task for a peer that is to be
// delivered, but for those with the numbers given; ok is false when there is none.
func (r *Runtime) NextLetter(ctx context.Context, box Outbox, resting ...int64) (p Parcel, ok bool, err error) {
	t, err := r.existing(ctx, box.Task)
	if errors.Is(err, ErrNotFound) {
		return Parcel{}, false, nil
	}
	if err != nil {
		return Parcel{}, false, err
	}
	defer r.release(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.letters, func(l Letter) bool { return l.Peer == box.Peer && !slices.Contains(resting, l.N) })
	if i < 0 {
		return Parcel{}, false, nil
	}
	l := t.letters[i]
	return Parcel{
		N: l.N, Since: l.Since, Notice: l.Notice, Ending: t.rec.dismisses(l), Until: l.until(), Back: t.rec.contributes(box.Peer), Wrapper: t.rec.wrap(l, t.def.Name),
		Hops: t.rec.Hops + 1, Trace: l.Trace,
	}, true, nil
}

// wrap makes what a peer gets. The letter stays as it is.
func (t Task) wrap(l Letter, local string) mail.Interswarm {
	p := l.Message.Payload
	if p.Sender.Type == mail.Agent {
		p.Sender.Name = mail.FormatAddr(p.Sender.Name, local)
	}
	return mail.Interswarm{
		MessageID: l.ID, SourceSwarm: local, TargetSwarm: l.Peer, Timestamp: l.Message.Timestamp,
		Type: l.Message.Type, Payload: p, TaskOwner: t.Owner, TaskContributors: t.vouched(),
	}
}

// LetterDelivered takes a letter out of its outbox. runner is the owner string of
// the instance that works on the task there, as the peer told; empty or malformed
// for none.
func (r *Runtime) LetterDelivered(ctx context.Context, box Outbox, n int64, runner string) error {
	return r.letterStep(ctx, box, n, func(s *step, l Letter) {
		s.Sent = append(s.Sent, l.N)
		s.letters--
		switch {
		case swarmOf(runner) == box.Peer && (runner == s.Task.Owner || worker(runner)):
			s.Task.confirm(runner)
		case !s.Task.contributes(box.Peer):
			s.Task.confirm(mail.Owner{Role: mail.RoleSwarm, ID: mail.EncodeID(s.def.Name), Swarm: box.Peer}.String())
		}
		if s.Task.State == StateRunning {
			s.event("interswarm_message_sent", "sent interswarm message to swarm "+box.Peer, map[string]any{
				"message_id": l.ID, "swarm": box.Peer,
			})
		}
		s.settle()
	})
}

// LetterFailed gives a letter up: it becomes a dead letter, and the agent that
// sent it is told why.
func (r *Runtime) LetterFailed(ctx context.Context, box Outbox, n int64, reason string) error {
	return r.letterStep(ctx, box, n, func(s *step, l Letter) {
		l.Dead = &Death{At: s.now, Reason: reason}
		s.Letters = append(s.Letters, l)
		s.letters--
		s.recall(l)
		s.event("interswarm_message_error", "error sending interswarm message to swarm "+box.Peer+": "+reason, map[string]any{
			"message_id": l.ID, "swarm": box.Peer, "error": reason,
		})
		s.bounce(l, reason)
		s.settle()
	})
}

// recall takes back what the host has written to a swarm that, as it turns out,
// takes no part in the task.
func (s *step) recall(dead Letter) {
	if s.Task.contributes(dead.Peer) {
		return
	}
	for _, l := range s.live.letters {
		if l.Peer == dead.Peer && l.N != dead.N && l.Notice {
			s.Sent = append(s.Sent, l.N)
			s.letters--
		}
	}
}

// bounce tells the agent that sent a letter what became of it.
func (s *step) bounce(l Letter, reason string) {
	p := l.Message.Payload
	if p.Subject == mail.SubjectActionCompleteBcast && l.Notice {
		s.bounceResults(l, reason)
		return
	}
	if p.Subject == mail.SubjectBreakpointToolCall && l.Notice {
		s.unreported()
		return
	}
	request, asks := l.opens()
	if asks && l.Post > 0 {
		s.closeRequest(request.ID)
		s.gather(request, fmt.Sprintf("The message to %s was not delivered: %s. It is kept as dead letter %s.", request.To, reason, l.ID), true)
		return
	}
	if asks {
		s.closeRequest(request.ID)
	}
	_, known := s.def.agent(p.Sender.Name)
	if l.Notice || !known || s.Task.State.Ended() {
		return
	}
	var to string
	for i, r := range p.Recipients {
		if i > 0 {
			to += ", "
		}
		to += r.Name
	}
	s.sendSystem(mail.Response, p.Sender.Name, mail.SubjectRouterError,
		fmt.Sprintf("The message [%s] to %s was not delivered: %s. It is kept as dead letter %s.", p.Subject, to, reason, l.ID), l.Message.ID)
}

// letterStep commits what became of a letter, if it is still to be delivered.
func (r *Runtime) letterStep(ctx context.Context, box Outbox, n int64, change func(*step, Letter)) error {
	t, err := r.existing(ctx, box.Task)
	if err != nil {
		return err
	}
	defer r.release(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	i := slices.IndexFunc(t.letters, func(l Letter) bool { return l.N == n && l.Peer == box.Peer })
	if i < 0 {
		t.mu.Unlock()
		return nil
	}
	s := t.begin(r.now())
	change(s, t.letters[i])
	t.mu.Unlock()
	return r.applyStep(t, s)
}

// applyStep commits a step that is no turn's. The caller holds t.commit.
func (r *Runtime) applyStep(t *live, s *step) error {
	if !r.write(s.Step) {
		return ErrDraining
	}
	t.mu.Lock()
	t.apply(s)
	t.mu.Unlock()
	r.applied(t)
	return nil
}

// DeadLetters returns a page of a tenant's dead letters; see [Store].
func (r *Runtime) DeadLetters(ctx context.Context, tenant string, before int64, limit int) ([]DeadLetter, error) {
	return r.store.DeadLetters(ctx, tenant, before, limit)
}

// Resend puts a dead letter of a tenant back into its outbox. It is refused with
// ErrNotFound for one that is not, or not any more.
func (r *Runtime) Resend(ctx context.Context, tenant, id string) (DeadLetter, error) {
	found, err := r.deadLetter(ctx, tenant, id)
	if err != nil {
		return DeadLetter{}, err
	}
	t, err := r.existing(ctx, found.Task)
	if err != nil {
		return DeadLetter{}, err
	}
	defer r.release(t)
	t.commit.Lock()
	defer t.commit.Unlock()
	// Somebody else may have come first.
	if found, err = r.deadLetter(ctx, tenant, id); err != nil {
		return DeadLetter{}, err
	}
	t.mu.Lock()
	s := t.begin(r.now())
	s.revive(found.Letter)
	t.mu.Unlock()
	return found, r.applyStep(t, s)
}

func (r *Runtime) deadLetter(ctx context.Context, tenant, id string) (DeadLetter, error) {
	found, err := r.store.DeadLetter(ctx, tenant, id)
	if errors.Is(err, ErrNotFound) {
		return DeadLetter{}, refuse(ErrNotFound, "there is no dead letter '%s'", id)
	}
	return found, err
}

// revive puts a dead letter back. An answer to it counts again, if the task runs.
func (s *step) revive(l Letter) {
	l.Dead, l.Since = nil, s.now
	s.Letters = append(s.Letters, l)
	s.letters++
	request, ok := l.opens()
	if ok && s.Task.State == StateRunning && len(s.Task.Requests) < maxOpenRequests {
		s.Task.Requests = append(s.Task.Requests, request)
	}
	s.event("interswarm_message_resent", "the dead letter to swarm "+l.Peer+" is sent again", map[string]any{
		"message_id": l.ID, "swarm": l.Peer,
	})
}

// post puts a letter into the task's outbox. What a turn sends after the task has
// ended, or in its grace, is dead at once: nobody could use an answer.
func (s *step) post(l Letter) {
	s.Task.Letters++
	l.N, l.Since = s.Task.Letters, s.now
	if name, _, err := mail.ParseAddr(l.Message.Payload.Recipient().Name); err == nil {
		s.Task.meet(l.Peer, name)
	}
	if !l.Notice && (s.Task.State.Ended() || s.Task.Grace) {
		l.Dead = &Death{At: s.now, Reason: "the task had ended, or used up its messages, when the turn that sent it was over"}
	} else {
		s.letters++
	}
	s.Letters = append(s.Letters, l)
	if !l.Notice {
		s.newMessage(l.Message, map[string]any{"recipient": l.Message.Payload.Recipient().Name})
	}
}

// applyLetters makes what a step did to the outbox visible.
func (t *live) applyLetters(s Step) {
	for _, l := range s.Letters {
		t.letters = slices.DeleteFunc(t.letters, func(old Letter) bool { return old.N == l.N })
		if l.Dead == nil {
			t.letters = append(t.letters, l)
		}
	}
	t.letters = slices.DeleteFunc(t.letters, func(l Letter) bool { return slices.Contains(s.Sent, l.N) })
	slices.SortFunc(t.letters, func(a, b Letter) int { return int(a.N - b.N) })
}

// wakeForwarder tells the forwarder what the task has for it. The caller holds
// t.commit.
func (r *Runtime) wakeForwarder(t *live) {
	t.mu.Lock()
	var peers []string
	for _, l := range t.letters {
		if !slices.Contains(peers, l.Peer) {
			peers = append(peers, l.Peer)
		}
	}
	t.mu.Unlock()
	for _, peer := range peers {
		r.forward.Wake(Outbox{t.key, peer})
	}
}
