package router_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// A task that is erased while its message is carried, and begins again, numbers its messages
// anew. What became of the erased message is not taken for the fate of its successor, which
// is sent, and the erased one is not sent again.
func TestErasedMessageHasNoSuccessor(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]router.Carried{
		"the partner is away": {State: router.Later, Reason: "connection refused"}, "it gives no answer": {State: router.Unanswered},
		"it is taken": {State: router.Taken}, "it is refused": {State: router.Refused, Reason: "no"},
	} {
		for outage, unmarked := range map[string]int{"": 0, " while the outbox cannot be written": 1} {
			t.Run(name+outage, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o, b := newFakeOutbox(), box("t", "depot")
					next := to(1, "a", mail.Request)
					next.Wrapper.MessageID = id(7)
					var sent []string
					c := &fakeCarrier{answer: func(_ context.Context, n int, d swarm.Delivery) router.Carried {
						sent = append(sent, d.Wrapper.MessageID)
						if n > 1 {
							return router.Carried{State: router.Taken}
						}
						o.erase()
						o.put(b, next)
						o.unmarked = unmarked
						return first
					}}
					o.put(b, to(1, "a", mail.Request))
					carry(t, realm(c), o)
					time.Sleep(time.Minute)
					synctest.Wait()
					if want := []string{id(1), id(7)}; !slices.Equal(sent, want) || len(o.failed) > 0 || !slices.Equal(o.taken, []string{id(7) + " "}) {
						t.Errorf("sent %q, want %q; delivered %q, failed %q", sent, want, o.taken, o.failed)
					}
				})
			})
		}
	}
}
