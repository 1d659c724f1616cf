package router_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
)

// lateOutbox gets a message when its worker has just found it empty.
type lateOutbox struct {
	*fakeOutbox
	found func()
}

func (o lateOutbox) NextDelivery(ctx context.Context, box swarm.OutboxKey, resting ...string) (swarm.Delivery, bool, error) {
	p, ok, err := o.fakeOutbox.NextDelivery(ctx, box, resting...)
	if err == nil && !ok {
		o.found()
	}
	return p, ok, err
}

// A wake that comes while the outbox's worker ends is not lost.
func TestWakeWhileWorkerEnds(t *testing.T) {
	t.Parallel()
	d, o, b := newFakePeer(t, ok), newFakeOutbox(), box("t", "depot")
	r := router.New(router.Options{Local: "hive", Peers: peers{"depot": d.peer()}})
	empty := make(chan struct{})
	late := lateOutbox{o, sync.OnceFunc(func() {
		o.put(b, newDelivery(1, false))
		r.Wake(b)
		close(empty)
	})}
	start(t, r, late)
	r.Wake(b)
	<-empty
	waitDeferred(t, r, 0)
	if n := len(o.settled); n != 1 {
		t.Errorf("%d messages are settled when no worker is left, want 1", n)
	}
}

// notingOutbox notes the calls of its workers, as many as calls holds.
type notingOutbox struct {
	*fakeOutbox
	calls chan string
}

func (o notingOutbox) note(call string) {
	select {
	case o.calls <- call:
	default:
	}
}

func (o notingOutbox) NextDelivery(ctx context.Context, box swarm.OutboxKey, resting ...string) (swarm.Delivery, bool, error) {
	o.note("next")
	return o.fakeOutbox.NextDelivery(ctx, box, resting...)
}

func (o notingOutbox) MarkDelivered(ctx context.Context, box swarm.OutboxKey, id, runner string) error {
	o.note("delivered")
	return o.fakeOutbox.MarkDelivered(ctx, box, id, runner)
}

// A message that its peer has taken leaves the outbox before the next one is read.
func TestDeliveredLeavesTheOutbox(t *testing.T) {
	t.Parallel()
	d, o, b := newFakePeer(t, ok), newFakeOutbox(), box("t", "depot")
	o.put(b, newDelivery(1, false))
	calls := make(chan string, 2)
	run(t, notingOutbox{o, calls}, peers{"depot": d.peer()})
	if got := []string{<-calls, <-calls}; !slices.Equal(got, []string{"next", "delivered"}) {
		t.Errorf("the outbox was asked %q", got)
	}
}
