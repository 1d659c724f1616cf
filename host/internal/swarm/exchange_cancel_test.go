package swarm_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// One exchange is withdrawn, and its task with the last of them. What was not begun is not
// handled, and an answer that comes too late is none.
func TestCancelExchange(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, 10)
	r := newRealm(t, func(h *hive) {
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			begun <- struct{}{}
			<-release
			return script(ctx, turn)
		}
	})
	first := r.receive(r.wrapper("job", "math", "first")).Exchanges[0]
	<-begun
	second := r.receive(r.wrapper("job", "math", "second")).Exchanges[0]
	third := r.receive(r.wrapper("job", "math", "third")).Exchanges[0]
	for _, x := range []*swarm.Receipt{first, second} {
		if err := r.rt.CancelExchange(t.Context(), x, "x@acme"); err != nil {
			t.Fatal(err)
		}
		if a := r.wait(x); a.State != swarm.StateCancelled || a.Body != "The message was withdrawn by x@acme." {
			t.Errorf("answer %+v", a)
		}
		if err := r.rt.CancelExchange(t.Context(), x, "x@acme"); !errors.Is(err, swarm.ErrConflict) {
			t.Errorf("again: %v", err)
		}
	}
	close(release)
	if a := r.wait(third); a.Body != "echo: third" {
		t.Errorf("answer %+v", a)
	}
	if turns := r.agents.turns(); len(turns) != 2 {
		t.Errorf("turns %q", turns)
	}
	if snap := r.snapshot("job"); len(snap.Outbox)+len(snap.Task.Requests)+len(snap.Posts) > 0 || snap.Task.State != swarm.StateRunning {
		t.Errorf("left: %+v", snap)
	}
}

// A turn that begins while the withdrawal of its message is written is stopped: it sends
// nothing, and counts no more.
func TestCancelExchangeAsItsTurnBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &heldStore{goOn: make(chan struct{})}
		var withdraws atomic.Bool
		s.match = func(m swarm.Mutation) bool { return len(m.Consume) == 1 && withdraws.CompareAndSwap(true, false) }
		release, stopped := make(chan struct{}), 0
		r := newRealm(t, withTenants(map[string]swarm.Quota{swarm.DefaultTenant: {Queue: 3}}), func(h *hive) {
			h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
			h.opt.Turns = 1
			h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
				switch incoming(turn).Payload.Body {
				case "busy":
					<-release
				case "withdrawn":
					<-ctx.Done()
					stopped++
				}
				return script(ctx, turn)
			}
		})
		busy := r.receive(r.wrapper("other", "math", "busy")).Exchanges[0]
		synctest.Wait() // it has the only place
		x := r.receive(r.wrapper("job", "math", "withdrawn")).Exchanges[0]
		kept := r.receive(r.wrapper("job", "math", "kept")).Exchanges[0]
		synctest.Wait()
		withdraws.Store(true)
		done := make(chan error, 1)
		go func() { done <- r.rt.CancelExchange(context.Background(), x, "x@acme") }()
		synctest.Wait() // it is being written
		close(release)
		synctest.Wait() // the turn has begun
		close(s.goOn)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if a := r.wait(x); a.State != swarm.StateCancelled {
			t.Errorf("answer %+v", a)
		}
		for x, want := range map[*swarm.Receipt]string{busy: "echo: busy", kept: "echo: kept"} {
			if a := r.wait(x); a.Body != want {
				t.Errorf("answer %+v, want %s", a, want)
			}
		}
		synctest.Wait()
		snap := r.snapshot("job")
		if stopped != 1 || len(snap.Outbox)+len(snap.Task.Requests)+len(snap.Posts)+len(snap.Rows)+len(snap.Task.Metered) > 0 {
			t.Errorf("%d turns were stopped; left: %+v", stopped, snap)
		}
		for range 3 { // the quota is free again
			r.receive(r.wrapper("job", "math", "next"))
		}
		r.stop()
	})
}

// The last exchange takes its task along, which is not running for it any more.
func TestCancelLastExchange(t *testing.T) {
	begun := make(chan struct{})
	r := newRealm(t, func(h *hive) {
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			close(begun)
			<-ctx.Done()
			return failed(ctx.Err())
		}
	})
	in := r.wrapper("job", "math", "x")
	r.receive(in)
	<-begun
	x := r.find(in)
	if err := r.rt.CancelExchange(t.Context(), x, "x@acme"); err != nil {
		t.Fatal(err)
	}
	if a := r.wait(x); a.State != swarm.StateCancelled || a.Subject != mail.SubjectTaskCancelled {
		t.Errorf("answer %+v", a)
	}
	if snap := r.snapshot("job"); snap.Task.State != swarm.StateCancelled {
		t.Errorf("the task is %s", snap.Task.State)
	}
}

// The last exchange leaves its task running while an agent of another swarm waits in it,
// which then gets its answer.
func TestCancelExchangeBesideAPeer(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{})
	h := newHive(t, func(h *hive) {
		h.forward = anyForwarder{}
		h.def.Interswarm, h.def.Agents[0].Interswarm, h.def.Agents[1].Interswarm = true, true, true
		h.def.Agents[0].Targets = append(h.def.Agents[0].Targets, "chief@depot")
		h.def.Agents[1].Targets = append(h.def.Agents[1].Targets, "chief@depot")
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			close(begun)
			<-release
			call(turn, mail.ToolSendResponse, obj{"target": "chief@depot", "subject": "said", "body": "the answer"})
			return swarm.Outcome{}
		}
	})
	x := h.mustPost(requestTo("chief@depot", "x"), task("t"), func(p *swarm.Post) { p.Door, p.Key, p.Keep = toyDoor, "k", time.Hour })
	eventually(t, "the request leaves", func() bool { return len(h.record("t").Outbox) == 1 })
	_, err := h.rt.Receive(t.Context(), swarm.Incoming{
		Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleSwarm, ID: "depot"}, Peer: "depot", AnyTenant: true,
		Swarm: "hive", Back: true, Wrapper: foreign("t", func(w *mail.Interswarm) {
			w.TaskOwner, w.TaskContributors = "user:alice@hive", []string{"user:alice@hive", "swarm:hive@depot"}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := h.rt.CancelExchange(t.Context(), x, "alice"); err != nil {
		t.Fatal(err)
	}
	if a := (&realm{hive: h}).wait(x); a.State != swarm.StateCancelled || a.Body != "The message was withdrawn by alice." {
		t.Errorf("answer %+v", a)
	}
	close(release)
	eventually(t, "the peer's answer leaves", func() bool { return len(h.record("t").Outbox) == 2 })
	if snap := h.record("t"); snap.Task.State != swarm.StateRunning {
		t.Errorf("the task is %s", snap.Task.State)
	}
}
