package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

const toyDoor = swarm.GatewayDoor + "toy"

// realm asks the agents of a hive through a gateway.
type realm struct {
	*hive
	n int
}

// newRealm is a hive whose math and boss are exposed, and which has no way to any realm.
func newRealm(t *testing.T, change ...func(*hive)) *realm {
	t.Helper()
	return &realm{hive: newHive(t, append([]func(*hive){func(h *hive) {
		h.def.Agents[0].Expose, h.def.Agents[1].Expose = []string{"toy"}, []string{"other", "toy"}
	}}, change...)...)}
}

// wrapper makes the next message of agent x of the realm.
func (r *realm) wrapper(task, to, body string) swarm.Incoming {
	r.n++
	in := swarm.Incoming{
		Door: toyDoor, Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleSwarm, ID: "acme"},
		Peer: "acme", Swarm: "hive", Note: []byte("note"), Keep: time.Hour,
		Wrapper: foreign(task, func(w *mail.Interswarm) {
			w.MessageID = fmt.Sprintf("id-%d", r.n)
			w.SourceSwarm, w.TargetSwarm = "acme", "hive"
			w.TaskOwner, w.TaskContributors = "swarm:acme@acme", []string{"swarm:acme@acme"}
			w.Payload.ID = fmt.Sprintf("9a1f0000-0000-4000-8000-%012d", r.n)
			w.Payload.Sender.Name, w.Payload.SenderSwarm = "x@acme", "acme"
			w.Payload.Recipients, w.Payload.RecipientSwarms = nil, []string{"hive"}
			for _, name := range strings.Fields(to) {
				w.Payload.Recipients = append(w.Payload.Recipients, mail.Address{Type: mail.Agent, Name: name + "@hive"})
			}
			w.Payload.Subject, w.Payload.Body = "q", body
		}),
	}
	return in
}

func (r *realm) receive(in swarm.Incoming) swarm.IncomingReceipt {
	r.t.Helper()
	got, err := r.runtime().Receive(context.Background(), in)
	if err != nil {
		r.t.Fatal("Receive:", err)
	}
	return got
}

// wait waits for the answer.
func (r *realm) wait(x *swarm.Receipt) swarm.Answer {
	r.t.Helper()
	s := r.waitState(x)
	if s.Answer.Cursor == 0 {
		r.t.Fatalf("no answer: %+v", s)
	}
	return s.Answer
}

func (r *realm) waitState(x *swarm.Receipt, seen ...string) swarm.ExchangeState {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, err := r.runtime().WaitExchange(ctx, x, seen)
	if err != nil {
		r.t.Fatalf("the exchange has no answer, and asks for nothing but %q: %v; %s", seen, err, r.outline(x.Task))
	}
	return s
}

// find finds an exchange again, as after a restart.
func (r *realm) find(in swarm.Incoming) *swarm.Receipt {
	r.t.Helper()
	x, err := r.runtime().FindExchange(context.Background(), in.Principal.Instance("hive"), in.Door, swarm.RemoteKey("acme", in.Wrapper.MessageID))
	if err != nil {
		r.t.Fatal("FindExchange:", err)
	}
	return x
}

func (r *realm) snapshot(task string) swarm.Snapshot {
	r.t.Helper()
	return r.load(guest("hive", "acme", task))
}

// An agent's response answers the exchange, though nobody has listed the realm among its
// targets and no way leads there; it is there for each who asks again, and after a restart
// (G-024, G-025).
func TestHeldResponse(t *testing.T) {
	r := newRealm(t)
	in := r.wrapper("job", "math", "2+2")
	got := r.receive(in)
	if len(got.Exchanges) != 1 || got.Duplicate {
		t.Fatalf("receipt %+v", got)
	}
	want := swarm.Answer{State: swarm.StateCompleted, Subject: "Re: q", Body: "echo: 2+2", Caller: "math"}
	check := func(when string, a swarm.Answer) {
		t.Helper()
		if a.Cursor == 0 || a.At.IsZero() {
			t.Errorf("%s: no cursor or no time", when)
		}
		a.Cursor, a.At = 0, want.At
		if a != want {
			t.Errorf("%s: %+v", when, a)
		}
	}
	check("at once", r.wait(got.Exchanges[0]))
	again := r.receive(in)
	if !again.Duplicate || len(again.Exchanges) != 1 {
		t.Fatalf("again: %+v", again)
	}
	check("again", r.wait(again.Exchanges[0]))
	r.restart()
	x := r.find(in)
	check("after a restart", r.wait(x))
	if s := x.Submission(); string(s.Note) != "note" || s.Agent != "math" || s.Answer == 0 || s.Accepted.IsZero() || !s.Expires.After(s.Accepted) {
		t.Errorf("submission %+v", s)
	}
	in.Digest = []byte("another")
	if _, err := r.rt.Receive(t.Context(), in); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("another message under the id: %v", err)
	}
	if snap := r.snapshot("job"); len(snap.Outbox) > 0 || len(snap.Task.Requests) > 0 || len(snap.Posts) > 0 {
		t.Errorf("left: %+v", snap)
	}
}

// An exposed agent without comm_targets answers its caller, and writes to no other agent:
// the tool for answers is open, the one for requests is missing (G-024, G-005).
func TestExposedAgentNeedsNoTargets(t *testing.T) {
	tools := make(chan []byte, 1)
	r := newRealm(t, func(h *hive) {
		h.def.Agents[1].Targets = nil
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			tools <- turn.Input()
			return script(ctx, turn)
		}
	})
	if a := r.wait(r.receive(r.wrapper("job", "math", "2+2")).Exchanges[0]); a.Body != "echo: 2+2" {
		t.Errorf("answer %+v", a)
	}
	var input abi.TurnInput
	if err := json.Unmarshal(<-tools, &input); err != nil {
		t.Fatal(err)
	}
	given := map[string]string{}
	for _, tool := range input.Tools {
		given[tool.Name] = string(tool.Parameters)
	}
	if answer := given[mail.ToolSendResponse]; answer == "" || strings.Contains(answer, `"enum"`) || given[mail.ToolSendRequest] != "" {
		t.Errorf("the agent has the tools %v", given)
	}
}

// Unknown and unexposed agents give the same bytes (G-053).
func TestUnexposedIsUnknown(t *testing.T) {
	r := newRealm(t)
	refusal := func(to string) string {
		in := r.wrapper("job", to, "x")
		_, err := r.rt.Receive(t.Context(), in)
		if !errors.Is(err, swarm.ErrNotFound) {
			t.Errorf("%s: %v", to, err)
		}
		return strings.ReplaceAll(fmt.Sprint(err), to, "NAME")
	}
	if a, b := refusal("text"), refusal("nobody"); a != b {
		t.Errorf("%q and %q", a, b)
	}
	in := r.wrapper("job", "math", "x")
	in.Door = swarm.GatewayDoor + "third"
	if _, err := r.rt.Receive(t.Context(), in); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("another gateway: %v", err)
	}
	if _, err := r.rt.Task(t.Context(), guest("hive", "acme", "job")); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("a task was made: %v", err)
	}
}

// One accept for several recipients; each answers for itself, and the unknown ones are
// named.
func TestHeldRecipients(t *testing.T) {
	r := newRealm(t, func(h *hive) { h.def.Agents[0].CanComplete = false; h.def.Agents[2].CanComplete = true })
	in := r.wrapper("job", "math nobody boss", "x")
	got := r.receive(in)
	if len(got.Exchanges) != 2 || !slices.Equal(got.Unknown, []string{"nobody"}) {
		t.Fatalf("receipt %+v", got)
	}
	for _, receipt := range []swarm.IncomingReceipt{got, r.receive(in)} {
		by := map[string]string{}
		for _, x := range receipt.Exchanges {
			by[x.Submission().Agent] = r.wait(x).Caller
		}
		if len(by) != 2 || by["math"] != "math" || by["boss"] != "boss" {
			t.Errorf("answers %v", by)
		}
	}
}

// A completion answers every exchange whose message was handled; the others keep the task
// running and get answers of their own (G-003, G-004).
func TestCompletionAnswersEveryExchange(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, 10)
	r := newRealm(t, func(h *hive) {
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			begun <- struct{}{} // it never answers
			return swarm.Outcome{}
		}
		h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			begun <- struct{}{}
			<-release
			return script(ctx, turn)
		}
	})
	first := r.receive(r.wrapper("job", "boss", "keep it running")).Exchanges[0]
	<-begun
	second := r.receive(r.wrapper("job", "math", "one")).Exchanges[0]
	<-begun
	eventually(t, "the turn of math", func() bool { return len(r.snapshot("job").Rows) == 1 })
	third := r.receive(r.wrapper("job", "boss", "later")).Exchanges[0]
	close(release)
	a, b, c := r.wait(first), r.wait(second), r.wait(third)
	if a.Body != "boss got [q] keep it running" || b != a || c.Body != "boss got [q] later" {
		t.Errorf("answers %+v, %+v, %+v", a, b, c)
	}
	if snap := r.snapshot("job"); snap.Task.State != swarm.StateCompleted || len(snap.Task.Requests)+len(snap.Posts)+len(snap.Outbox) > 0 {
		t.Errorf("left: %+v", snap)
	}
}

// Failures are answers: of the agent, of the task by its time and its limit, by a
// cancellation, and when nothing could happen any more.
func TestHeldFailures(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	r := newRealm(t, func(h *hive) {
		h.def.Limits.TaskMessages = 2
		h.def.Agents[0].CanComplete, h.def.Agents[2].CanComplete = false, true
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			switch incoming(turn).Payload.Body {
			case "fail":
				return failed(errors.New("no"))
			case "hang":
				select {
				case <-hang:
				case <-ctx.Done():
				}
				return failed(ctx.Err())
			case "loop":
				call(turn, "no_such_tool", obj{})
			}
			return swarm.Outcome{}
		}
	})
	ask := func(body string) (*swarm.Receipt, swarm.TaskKey) {
		got := r.receive(r.wrapper(body, "math", body))
		return got.Exchanges[0], got.Task
	}
	want := func(x *swarm.Receipt, state swarm.State, subject string) {
		t.Helper()
		if a := r.wait(x); a.State != state || a.Subject != subject || a.Caller != "" {
			t.Errorf("answer %+v, want %s %s", a, state, subject)
		}
	}
	x, _ := ask("fail")
	want(x, swarm.StateFailed, mail.SubjectAgentError)
	x, _ = ask("silent")
	want(x, swarm.StateFailed, mail.SubjectRuntimeError)
	x, _ = ask("loop")
	want(x, swarm.StateFailed, mail.SubjectRuntimeError)
	x, key := ask("hang")
	if err := r.rt.CancelTask(t.Context(), key, "the operator"); err != nil {
		t.Fatal(err)
	}
	want(x, swarm.StateCancelled, mail.SubjectTaskCancelled)
	for _, task := range []string{"silent", "loop", "hang"} {
		if snap := r.snapshot(task); len(snap.Task.Requests)+len(snap.Posts)+len(snap.Outbox) > 0 {
			t.Errorf("left in %s: %+v", task, snap)
		}
	}
}

// The request beyond what a task keeps is refused, and nothing of it is stored (G-057).
func TestOpenExchangesAreBounded(t *testing.T) {
	hang := make(chan struct{})
	r := newRealm(t, func(h *hive) {
		h.def.Limits.Queue = 1000
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			select {
			case <-hang:
			case <-ctx.Done():
			}
			return failed(errors.New("stopped"))
		}
	})
	defer close(hang)
	for range 256 {
		r.receive(r.wrapper("job", "math", "x"))
	}
	before := r.snapshot("job").Task
	in := r.wrapper("job", "math", "x")
	if _, err := r.rt.Receive(t.Context(), in); !errors.Is(err, swarm.ErrLimit) {
		t.Fatalf("the 257th: %v", err)
	}
	if after := r.snapshot("job").Task; len(before.Requests) != 256 || after.Mutations > before.Mutations+1 || len(after.Requests) > 256 {
		t.Errorf("%d requests, then %d", len(before.Requests), len(after.Requests))
	}
	if _, err := r.rt.FindExchange(t.Context(), in.Principal.Instance("hive"), toyDoor, swarm.RemoteKey("acme", in.Wrapper.MessageID)); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("the refused one: %v", err)
	}
}

// countingStore counts durable writes.
type countingStore struct {
	swarm.Store
	writes atomic.Int64
}

func (s *countingStore) Accept(ctx context.Context, m swarm.Mutation, sub swarm.Submission) (swarm.Submission, error) {
	s.writes.Add(1)
	return s.Store.Accept(ctx, m, sub)
}

func (s *countingStore) Commit(ctx context.Context, m swarm.Mutation) error {
	s.writes.Add(1)
	return s.Store.Commit(ctx, m)
}

func (s *countingStore) Journal(ctx context.Context, key swarm.TaskKey, turn int64, w swarm.JournalWrite) (bool, error) {
	s.writes.Add(1)
	return s.Store.Journal(ctx, key, turn, w)
}

// A held ask with a trivial turn takes two durable writes, and its brief task has ended
// with the second; the next message opens it again (G-026).
func TestTwoWrites(t *testing.T) {
	store := &countingStore{}
	r := newRealm(t, func(h *hive) {
		h.wrap = func(s swarm.Store) swarm.Store { store.Store = s; return store }
	})
	for i, to := range []string{"math", "boss", "math"} {
		before := store.writes.Load()
		in := r.wrapper("job", to, "x")
		in.Brief = true
		if a := r.wait(r.receive(in).Exchanges[0]); a.State != swarm.StateCompleted || a.Caller != to {
			t.Fatalf("answer %+v", a)
		}
		snap := r.snapshot("job")
		if n := store.writes.Load() - before; n != 2 {
			t.Errorf("ask %d of %s took %d writes", i, to, n)
		}
		if snap.Task.State != swarm.StateCompleted || len(snap.Rows)+len(snap.Outbox)+len(snap.Task.Requests) > 0 {
			t.Errorf("after ask %d: %+v", i, snap)
		}
	}
}

// A tenant whose queue is full can still answer: an answer takes no place.
func TestAnswerNeedsNoPlace(t *testing.T) {
	r := newRealm(t, func(h *hive) {
		h.opt.Tenants = swarm.NewTenantSet(map[string]swarm.Tenant{swarm.DefaultTenant: {Quota: swarm.Quota{Queue: 2}}})
		h.def.Agents[1].Targets = []string{"text"}
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			if incoming(turn).Payload.Sender.Name == "x@acme" {
				for range 3 {
					call(turn, mail.ToolSendRequest, obj{"target": "text", "subject": "s", "body": "b"})
				}
				return script(ctx, turn)
			}
			return swarm.Outcome{}
		}
	})
	if a := r.wait(r.receive(r.wrapper("job", "math", "x")).Exchanges[0]); a.Body != "echo: x" || a.State != swarm.StateCompleted {
		t.Errorf("answer %+v", a)
	}
}
