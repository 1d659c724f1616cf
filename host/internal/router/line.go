package router

import (
	"context"
	"time"

	"skep/host/internal/swarm"
)

// line is what is under way to one peer. It is guarded by Router.mu, its breaker
// by itself.
type line struct {
	breaker breaker
	active  int
	waiting []swarm.Outbox
	// known are the outboxes that have a lane or wait for one; true says that it
	// was woken since.
	known map[swarm.Outbox]bool
	rests rests
	tally tally
}

func (l *line) next() swarm.Outbox {
	box := l.waiting[0]
	l.waiting = l.waiting[1:]
	return box
}

// Wake implements [swarm.Forwarder].
func (r *Router) Wake(box swarm.Outbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[box.Peer]
	if l == nil {
		l = &line{known: map[swarm.Outbox]bool{}}
		r.lines[box.Peer] = l
	}
	if _, ok := l.known[box]; ok {
		l.known[box] = true
		return
	}
	l.known[box] = false
	if r.office == nil || l.active >= r.opt.Lanes {
		l.waiting = append(l.waiting, box)
		return
	}
	r.open(l, box)
}

// open begins a lane. The caller holds mu.
func (r *Router) open(l *line, box swarm.Outbox) {
	l.active++
	office, life := r.office, r.life
	r.lanes.Go(func() {
		for ok := true; ok; {
			r.drain(life, office, l, box)
			box, ok = r.leave(l, box)
		}
	})
}

// leave ends the lane of an outbox, or lets it go on with what came meanwhile or
// with an outbox that waits.
func (r *Router) leave(l *line, box swarm.Outbox) (next swarm.Outbox, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stopped := r.office == nil
	if l.known[box] && !stopped {
		l.known[box] = false
		return box, true
	}
	delete(l.known, box)
	if len(l.waiting) > 0 && !stopped {
		return l.next(), true
	}
	l.active--
	return swarm.Outbox{}, false
}

// drain delivers the letters of an outbox in their order, until there is none or
// the rest of them rests.
func (r *Router) drain(ctx context.Context, office Office, l *line, box swarm.Outbox) {
	for pause := firstPause; ctx.Err() == nil; {
		resting := r.resting(l, box)
		p, ok, err := office.NextLetter(ctx, box, resting...)
		if err == nil && !ok {
			return
		}
		if err == nil && len(resting) > 0 && !p.Until.IsZero() {
			r.rest(l, box, p.N, 0) // answers keep their order
			continue
		}
		if err == nil {
			err = r.deliver(ctx, office, l, box, p)
		}
		if err == nil {
			pause = firstPause
			continue
		}
		if ctx.Err() != nil {
			return
		}
		r.opt.Logger.Error("cannot read or write an outbox", "peer", box.Peer, "task_id", box.Task.Task, "err", err)
		sleep(ctx, pause)
		pause = min(2*pause, lastPause)
	}
}

// deliver brings one letter to its end. An error is the office's.
func (r *Router) deliver(ctx context.Context, office Office, l *line, box swarm.Outbox, p swarm.Parcel) error {
	out := r.attempts(ctx, l, box.Peer, p)
	log := r.opt.Logger.With("peer", box.Peer, "task_id", box.Task.Task, "message_id", p.Wrapper.MessageID)
	switch {
	case ctx.Err() != nil && !out.taken:
		return nil
	case out.taken:
		log.Debug("letter delivered")
		l.tally.delivered.Add(1)
		return office.LetterDelivered(context.WithoutCancel(ctx), box, p.N, out.runner)
	case out.rests:
		log.Debug("letter waits until its peer answers")
		r.rest(l, box, p.N, out.wait)
		return nil
	}
	log.Warn("letter not delivered", "reason", out.reason)
	l.tally.dead.Add(1)
	return office.LetterFailed(context.WithoutCancel(ctx), box, p.N, out.reason)
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
