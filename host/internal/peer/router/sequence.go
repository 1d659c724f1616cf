package router

import (
	"cmp"
	"context"
	"slices"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Bounds of the workers of a peer with a carrier. Of its attempts a fifth is for recipients at which none
// is, so that one that holds its messages delays no other. urgentWorkers are those beyond its attempts
// that take interrupts and answers, spareWorkers those beyond them that take the first sequence of an
// instance: held messages of one delay no other.
const (
	defaultAttempts = 40
	otherRecipients = 5 // one attempt in so many
	urgentWorkers   = 8
	spareWorkers    = 8
)

// attempts counts the workers of a peer.
type attempts struct {
	byInstance  map[swarm.InstanceKey]int
	byRecipient map[string]int
}

func newAttempts() attempts {
	return attempts{map[swarm.InstanceKey]int{}, map[string]int{}}
}

// add counts the worker of a sequence, or with -1 counts it no more.
func (a attempts) add(n sequence, by int) {
	addCount(a.byInstance, n.Task.InstanceKey, by)
	addCount(a.byRecipient, n.recipient, by)
}

// addCount adds to a key's count, and forgets one that is zero.
func addCount[K comparable](counts map[K]int, key K, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}

// compare orders sequences by the workers of their instances, then of their recipients.
func (a attempts) compare(m, n sequence) int {
	return cmp.Or(cmp.Compare(a.byInstance[m.Task.InstanceKey], a.byInstance[n.Task.InstanceKey]), cmp.Compare(a.byRecipient[m.recipient], a.byRecipient[n.recipient]))
}

// sequence is what is delivered in order: the messages of a task for a peer; with a
// carrier those for one recipient, as each may be held until it is answered. Interrupts
// are a sequence of their own and so overtake; so are answers, for which a foreign agent
// may wait before it answers a message that is held.
type sequence struct {
	swarm.OutboxKey
	recipient string    // empty for all
	overtakes mail.Type // Interrupt or Response, empty for the others
}

// sequenceOf returns the sequence of a message that a carrier takes.
func sequenceOf(box swarm.OutboxKey, m mail.Message) sequence {
	n := sequence{OutboxKey: box, recipient: "to " + m.Payload.Recipient().Name}
	if m.Type == mail.Interrupt || m.Type == mail.Response {
		n.overtakes = m.Type
	}
	return n
}

// isWhole reports whether it is all of an outbox.
func (n sequence) isWhole() bool { return n.recipient == "" }

// next returns the oldest message of the sequence, without those that rest.
func (n sequence) next(ctx context.Context, outbox Outbox, resting []string) (swarm.Delivery, bool, error) {
	if n.isWhole() {
		return outbox.NextDelivery(ctx, n.OutboxKey, resting...)
	}
	return outbox.NextWanted(ctx, n.OutboxKey, func(msg swarm.OutboxMessage) bool {
		return sequenceOf(n.OutboxKey, msg.Message) == n && !slices.Contains(resting, msg.ID)
	})
}

// splitOutbox wakes the sequences of an outbox if its peer has a carrier. It reports false
// for what is delivered as it is.
func (r *Router) splitOutbox(ctx context.Context, outbox Outbox, l *peerQueue, n sequence) (split bool, err error) {
	peer, err := r.opt.Peers.Peer(n.Peer)
	if err != nil || peer.Carrier == nil || !n.isWhole() {
		return false, nil // messages for an unknown peer fail one by one
	}
	r.mu.Lock()
	l.setMaxAttempts(peer.MaxAttempts)
	r.mu.Unlock()
	var found []sequence
	known := map[sequence]bool{}
	_, _, err = outbox.NextWanted(ctx, n.OutboxKey, func(msg swarm.OutboxMessage) bool {
		if at := sequenceOf(n.OutboxKey, msg.Message); !known[at] {
			known[at] = true
			found = append(found, at)
		}
		return false // all are looked at
	})
	for _, at := range found {
		r.wake(at)
	}
	return true, err
}

// setMaxAttempts bounds the workers of a peer with a carrier.
func (l *peerQueue) setMaxAttempts(most int) {
	if most <= 0 {
		most = defaultAttempts
	}
	l.carried, l.maxWorkers = true, most
}

// isUrgent reports whether a sequence goes before the others of a peer with a carrier: an
// interrupt, an answer, or an outbox in which there may be one.
func (l *peerQueue) isUrgent(n sequence) bool {
	return l.carried && (n.overtakes != "" || n.isWhole())
}

// hasWorker reports whether a worker may begin with a sequence beside so many others.
func (l *peerQueue) hasWorker(n sequence, others int) bool {
	most := l.maxWorkers
	switch {
	case l.isUrgent(n):
		most += urgentWorkers
	case l.carried && l.busy.byRecipient[n.recipient] > 0:
		most -= l.maxWorkers / otherRecipients
	}
	if l.carried && (n.isWhole() || l.busy.byInstance[n.Task.InstanceKey] == 0) {
		most = l.maxWorkers + urgentWorkers + spareWorkers
	}
	return others < most
}

// chooseWaiting returns the index of the sequence with which a worker may begin beside so
// many others, -1 for none: an urgent one, else one of the instance with the fewest
// workers, and there of the recipient with the fewest.
func (l *peerQueue) chooseWaiting(others int) (best int) {
	best = -1
	for i, n := range l.waiting {
		switch {
		case !l.hasWorker(n, others):
		case l.isUrgent(n):
			return i
		case best < 0, l.busy.compare(n, l.waiting[best]) < 0:
			best = i
		}
		if !l.carried {
			return best // no look through many outboxes of a peer
		}
	}
	return best
}
