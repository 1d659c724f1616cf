package swarm_test

import (
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

// A request that a peer took before it was started is failed, whoever made it. One that
// waits in the outbox, that was taken later or by another peer, stays open.
func TestFailForgotten(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait", "yard": "wait"})
	ask := hive.mustPost(requestTo("math@depot", "x"), task("asked"))
	post := hive.mustPost("x", task("posted"), func(p *swarm.Post) { p.To = []string{"math@depot"} })
	hive.mustPost(requestTo("math@yard", "x"), task("elsewhere"))
	for _, name := range []string{"asked", "posted", "elsewhere"} {
		eventually(t, "the request of "+name, func() bool { return len(hive.record(name).Task.Requests) == 1 })
	}
	fail := func(peer string, started time.Time, open int) {
		t.Helper()
		if err := hive.rt.FailForgotten(t.Context(), peer, started); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"asked", "posted"} {
			if got := len(hive.record(name).Task.Requests); got != open {
				t.Fatalf("%s has %d open requests, want %d", name, got, open)
			}
		}
	}
	fail("depot", time.Now().Add(time.Hour), 1) // not taken yet
	before := time.Now()
	for _, name := range []string{"asked", "posted", "elsewhere"} {
		peer := map[bool]string{true: "yard", false: "depot"}[name == "elsewhere"]
		box := swarm.OutboxKey{Task: key(name), Peer: peer}
		d, ok, err := hive.rt.NextDelivery(t.Context(), box)
		if err != nil || !ok {
			t.Fatal(name, ok, err)
		}
		if err := hive.rt.MarkDelivered(t.Context(), box, d.Wrapper.MessageID, "swarm:hive@"+peer); err != nil {
			t.Fatal(err)
		}
	}
	hive.restart() // it is kept with the task
	fail("depot", before, 1)
	fail("gone", time.Now().Add(time.Hour), 1)
	fail("depot", time.Now().Add(time.Hour), 0)
	const why = `Swarm "depot" was started again after it took the request to math@depot`
	if a := hive.answer(ask); !strings.HasPrefix(a.Body, "boss got [::router_error::] "+why) {
		t.Errorf("the agent got %+v", a)
	}
	if a := hive.answer(post); a.State != swarm.StateFailed || !strings.HasPrefix(a.Body, why) {
		t.Errorf("the poster got %+v", a)
	}
	if got := hive.record("elsewhere").Task; got.State != swarm.StateRunning || len(got.Requests) != 1 {
		t.Errorf("the task of another peer: %+v", got)
	}
}

// A task that cannot be read for a moment is told later: the caller learns that it has to
// come again.
func TestFailForgottenOutlastsAStoreThatFails(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	outage := &outageStore{kind: "load"}
	hive.wrap = func(st swarm.Store) swarm.Store { outage.Store = st; return outage }
	p.set(map[string]string{"depot": "wait"})
	ask := hive.mustPost(requestTo("math@depot", "x"), task("asked"))
	box := swarm.OutboxKey{Task: key("asked"), Peer: "depot"}
	eventually(t, "the request", func() bool { return len(hive.record("asked").Outbox) == 1 })
	d, _, err := hive.rt.NextDelivery(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	if err := hive.rt.MarkDelivered(t.Context(), box, d.Wrapper.MessageID, "swarm:hive@depot"); err != nil {
		t.Fatal(err)
	}
	hive.restart()
	eventually(t, "the task is read", func() bool {
		outage.arm()
		err := hive.rt.FailForgotten(t.Context(), "depot", time.Now().Add(-time.Hour))
		failed := outage.disarm()
		if err != nil && !failed {
			t.Fatal(err)
		}
		return err != nil // the read of another may fail in place of this one
	})
	started := time.Now().Add(time.Hour)
	if err := hive.rt.FailForgotten(t.Context(), "depot", started); err != nil {
		t.Fatal(err)
	}
	if a := hive.answer(ask); !strings.HasPrefix(a.Body, "boss got [::router_error::] Swarm \"depot\" was started again") {
		t.Errorf("the agent got %+v", a)
	}
}
