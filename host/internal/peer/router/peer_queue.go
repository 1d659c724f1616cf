package router

import (
	"context"
	"time"

	"skep/host/internal/swarm"
)

// peerQueue holds the outboxes for one peer. It is guarded by Router.mu; its
// breaker has a lock of its own.
type peerQueue struct {
	breaker breaker
	active  int
	waiting []swarm.OutboxKey
	// pending holds the outboxes that have a worker or wait for one; true means
	// that the outbox was woken since.
	pending  map[swarm.OutboxKey]bool
	deferred deferredAnswers
	counters counters
}

func (l *peerQueue) popWaiting() swarm.OutboxKey {
	box := l.waiting[0]
	l.waiting = l.waiting[1:]
	return box
}

// Wake implements [swarm.Forwarder].
func (r *Router) Wake(box swarm.OutboxKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.queues[box.Peer]
	if l == nil {
		l = &peerQueue{pending: map[swarm.OutboxKey]bool{}, deferred: deferredAnswers{randomBelow: r.opt.RandomBelow}}
		r.queues[box.Peer] = l
	}
	if _, ok := l.pending[box]; ok {
		l.pending[box] = true
		return
	}
	l.pending[box] = false
	if r.outbox == nil || l.active >= r.opt.PeerWorkers {
		l.waiting = append(l.waiting, box)
		return
	}
	r.startWorker(l, box)
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
func (r *Router) startWorker(l *peerQueue, box swarm.OutboxKey) {
	l.active++
	outbox, life := r.outbox, r.runCtx
	r.workers.Go(func() {
		for ok := true; ok; {
			r.drainOutbox(life, outbox, l, box)
			box, ok = r.finishOutbox(l, box)
		}
	})
}

// finishOutbox returns the worker's next outbox: the same one if it was woken
// meanwhile, or a waiting one.
func (r *Router) finishOutbox(l *peerQueue, box swarm.OutboxKey) (next swarm.OutboxKey, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stopped := r.outbox == nil
	if l.pending[box] && !stopped {
		l.pending[box] = false
		return box, true
	}
	delete(l.pending, box)
	if len(l.waiting) > 0 && !stopped {
		return l.popWaiting(), true
	}
	l.active--
	return swarm.OutboxKey{}, false
}

// drainOutbox delivers the messages of an outbox in their order, until none is
// left or the rest is deferred.
func (r *Router) drainOutbox(ctx context.Context, outbox Outbox, l *peerQueue, box swarm.OutboxKey) {
	for pause := minBackoff; ctx.Err() == nil; {
		resting := r.deferredOf(l, box)
		p, ok, err := outbox.NextDelivery(ctx, box, resting...)
		if err == nil && !ok {
			return
		}
		if err == nil && len(resting) > 0 && !p.GiveUpAt.IsZero() {
			r.deferAnswer(l, box, p.N, 0) // answers keep their order
			continue
		}
		if err == nil {
			err = r.deliver(ctx, outbox, l, box, p)
		}
		if err == nil {
			pause = minBackoff
			continue
		}
		if ctx.Err() != nil {
			return
		}
		r.opt.Logger.Error("cannot read or write an outbox", "peer", box.Peer, "task_id", box.Task.Task, "err", err)
		sleep(ctx, pause)
		pause = min(2*pause, maxBackoff)
	}
}

// deliver handles one message until it is delivered, undeliverable or deferred.
// Errors are the outbox's.
func (r *Router) deliver(ctx context.Context, outbox Outbox, l *peerQueue, box swarm.OutboxKey, p swarm.Delivery) error {
	out := r.deliverWithRetry(ctx, l, box.Peer, p)
	log := r.opt.Logger.With("peer", box.Peer, "task_id", box.Task.Task, "message_id", p.Wrapper.MessageID)
	switch {
	case ctx.Err() != nil && !out.accepted:
		return nil
	case out.accepted:
		log.Debug("message delivered")
		l.counters.delivered.Add(1)
		return outbox.MarkDelivered(context.WithoutCancel(ctx), box, p.N, out.runner)
	case out.deferred:
		log.Debug("message waits until its peer answers")
		r.deferAnswer(l, box, p.N, out.wait)
		return nil
	}
	log.Warn("message not delivered", "reason", out.reason)
	l.counters.dead.Add(1)
	return outbox.MarkUndeliverable(context.WithoutCancel(ctx), box, p.N, out.reason)
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
