package swarm_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Who follows a task sees that a foreign message came again, and that one of its own is sent
// again (G-044).
func TestDeliveryEvents(t *testing.T) {
	begun, free := make(chan struct{}, 2), make(chan struct{})
	r := newRealm(t, func(h *hive) {
		wait := func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			begun <- struct{}{}
			<-free
			return script(ctx, turn)
		}
		h.agents.by["math"], h.agents.by["boss"] = wait, wait
	})
	in := r.wrapper("job", "math", "x")
	first := r.receive(in).Exchanges[0]
	post := swarm.Post{
		Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "alice"}, Swarm: "hive", Door: toyDoor, Key: "k",
		Task: "own", Type: mail.Request, Subject: "s", Body: "x",
	}
	own, err := r.rt.Submit(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	<-begun
	next := func(feed *swarm.Feed, name string) map[string]string {
		t.Helper()
		for {
			events, err := feed.Next(t.Context())
			if err != nil {
				t.Fatalf("no event %s: %v", name, err)
			}
			i := slices.IndexFunc(events, func(e swarm.Event) bool { return e.Name == name })
			if i < 0 {
				continue
			}
			var extra map[string]string
			if err := json.Unmarshal(events[i].Extra, &extra); err != nil || events[i].Seq != 0 || events[i].Description == "" {
				t.Errorf("%s is %+v, %v", name, events[i], err)
			}
			return extra
		}
	}
	for _, x := range []struct {
		key     swarm.TaskKey
		repeat  func() error
		message string
	}{
		{first.Task, func() error { r.receive(in); return nil }, in.Wrapper.MessageID},
		{own.Task, func() error { _, err := r.rt.Submit(t.Context(), post); return err }, "k"},
	} {
		feed, err := r.rt.Follow(t.Context(), x.key, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		if err := x.repeat(); err != nil {
			t.Fatal(err)
		}
		if got := next(feed, "interswarm_message_repeated"); got["message_id"] != x.message {
			t.Errorf("a repeat is shown as %v", got)
		}
		r.rt.ShowRetry(swarm.OutboxKey{Task: x.key, Peer: "depot"}, "m9", "it is down")
		if got := next(feed, "interswarm_message_retried"); got["message_id"] != "m9" || got["swarm"] != "depot" || got["error"] != "it is down" {
			t.Errorf("a retry is shown as %v", got)
		}
	}
	close(free)
	r.wait(first)
	r.rt.ShowRetry(swarm.OutboxKey{Task: swarm.TaskKey{Task: "none"}}, "m9", "it is down") // nobody reads, and nothing is loaded
}
