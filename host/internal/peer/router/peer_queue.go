package router

import (
	"context"
	"errors"
	"slices"
	"time"

	"skep/host/internal/swarm"
)

// peerQueue holds the outboxes for one peer. It is guarded by Router.mu; its
// breaker has a lock of its own.
type peerQueue struct {
	breaker breaker
	active  int
	// busy counts active by the instances and recipients of the sequences.
	busy attempts
	// maxWorkers bounds active. carried is set once the peer is known to have a carrier.
	maxWorkers int
	carried    bool
	waiting    []sequence
	// pending holds the sequences that have a worker or wait for one; true means
	// that the sequence was woken since.
	pending  map[sequence]bool
	deferred deferredAnswers
	counters counters
}

// popWaiting removes the next sequence, if a worker may begin with it beside so many
// others.
func (l *peerQueue) popWaiting(others int) (n sequence, ok bool) {
	i := l.chooseWaiting(others)
	if i < 0 {
		return sequence{}, false
	}
	n = l.waiting[i]
	if i == 0 {
		l.waiting = l.waiting[1:]
	} else {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return n, true
}

// Wake implements [swarm.Forwarder].
func (r *Router) Wake(box swarm.OutboxKey) { r.wake(sequence{OutboxKey: box}) }

func (r *Router) wake(n sequence) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.queues[n.Peer]
	if l == nil {
		l = &peerQueue{
			maxWorkers: r.opt.PeerWorkers, busy: newAttempts(), pending: map[sequence]bool{}, deferred: deferredAnswers{randomBelow: r.opt.RandomBelow},
		}
		r.queues[n.Peer] = l
	}
	if _, ok := l.pending[n]; ok {
		l.pending[n] = true
		return
	}
	l.pending[n] = false
	if r.outbox == nil || !l.hasWorker(n, l.active) {
		l.waiting = append(l.waiting, n)
		return
	}
	r.startWorker(l, n)
}

// MarkPeerUp closes a peer's circuit breaker, because the peer is known to be well. What
// waits for the peer is tried at once.
func (r *Router) MarkPeerUp(peer string) {
	r.mu.Lock()
	l := r.queues[peer]
	r.mu.Unlock()
	if l != nil {
		l.breaker.markUp()
	}
}

// startWorker starts a worker. The caller holds mu.
func (r *Router) startWorker(l *peerQueue, n sequence) {
	l.active++
	l.busy.add(n, 1)
	outbox, life := r.outbox, r.runCtx
	r.workers.Go(func() {
		for ok := true; ok; {
			r.drainSequence(life, outbox, l, n)
			n, ok = r.finishSequence(l, n)
		}
	})
}

// finishSequence returns the worker's next sequence: the same one if it was woken meanwhile, or
// a waiting one.
func (r *Router) finishSequence(l *peerQueue, n sequence) (next sequence, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stopped := r.outbox == nil
	if l.pending[n] && !stopped {
		l.pending[n] = false
		return n, true
	}
	delete(l.pending, n)
	l.busy.add(n, -1)
	if !stopped {
		next, ok = l.popWaiting(l.active - 1)
	}
	if !ok {
		l.active--
		return next, false
	}
	l.busy.add(next, 1)
	return next, true
}

// drainSequence delivers the messages of a sequence in their order, until none is left or
// the rest is deferred. An outbox whose peer has a carrier is split into its sequences.
func (r *Router) drainSequence(ctx context.Context, outbox Outbox, l *peerQueue, n sequence) {
	var last settlement
	for pause := minBackoff; ctx.Err() == nil; {
		done, err := r.splitOutbox(ctx, outbox, l, n)
		if err == nil && !done {
			done, err = r.deliverNext(ctx, outbox, l, n, &last)
		}
		switch {
		case err == nil && done, ctx.Err() != nil:
			return
		case err == nil:
			pause = minBackoff
			continue
		}
		r.opt.Logger.Error("cannot read or write an outbox", "peer", n.Peer, "task_id", n.Task.Task, "err", err)
		sleep(ctx, pause)
		pause = min(2*pause, maxBackoff)
	}
}

// settlement is what became of a message. A carrier is not asked again for one that could
// not be marked in its outbox.
type settlement struct {
	id string // of the message, empty for none
	outcome
}

// deliverNext handles the next message of a sequence; done means that none is left.
// Errors are the outbox's.
func (r *Router) deliverNext(ctx context.Context, outbox Outbox, l *peerQueue, n sequence, last *settlement) (done bool, err error) {
	resting := r.deferredOf(l, n)
	p, ok, err := n.next(ctx, outbox, resting)
	switch {
	case err != nil || !ok:
		return err == nil, err
	case len(resting) > 0 && !p.GiveUpAt.IsZero():
		r.deferAnswer(l, n, p, 0) // answers keep their order
		return false, nil
	}
	if n.isWhole() || last.id != p.Wrapper.MessageID {
		*last = settlement{p.Wrapper.MessageID, r.deliverWithRetry(ctx, outbox, l, n.OutboxKey, p)}
	}
	if err := r.settle(ctx, outbox, l, n, p, last.outcome); err != nil {
		return false, err
	}
	*last = settlement{}
	return p.Last, nil // the task of a last message is not loaded again for nothing
}

// settle marks in the outbox what became of a message. Errors are the outbox's.
func (r *Router) settle(ctx context.Context, outbox Outbox, l *peerQueue, n sequence, p swarm.Delivery, out outcome) error {
	box := n.OutboxKey
	log := r.opt.Logger.With("peer", box.Peer, "task_id", box.Task.Task, "message_id", p.Wrapper.MessageID)
	switch {
	case ctx.Err() != nil && !out.accepted:
		return nil
	case out.deferred:
		log.Debug("message waits until its peer answers")
		r.deferAnswer(l, n, p, out.wait)
		return nil
	}
	var err error
	switch {
	case out.gone:
		log.Debug("message is in the outbox no more")
	case out.accepted:
		log.Debug("message delivered")
		l.counters.delivered.Add(1)
		err = outbox.MarkDelivered(context.WithoutCancel(ctx), box, p.Wrapper.MessageID, out.runner)
	default:
		log.Warn("message not delivered", "reason", out.reason)
		l.counters.dead.Add(1)
		err = outbox.MarkUndeliverable(context.WithoutCancel(ctx), box, p.Wrapper.MessageID, out.reason)
	}
	if errors.Is(err, swarm.ErrNotFound) {
		err = nil // its task was erased meanwhile
	}
	if err == nil && !n.isWhole() {
		if peer, unknown := r.opt.Peers.Peer(box.Peer); unknown == nil {
			r.endAttempt(ctx, box, peer, p.Wrapper.MessageID)
		}
	}
	return err
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) { sleepUntil(ctx, d, nil) }

// sleepUntil waits for d, until woken is closed or until ctx ends.
func sleepUntil(ctx context.Context, d time.Duration, woken <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-woken:
	case <-ctx.Done():
	}
}
