package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// A pause is no answer: who waits sees the calls, his results resume the turn over a
// restart, and the exchange gets the answer of that turn.
func TestExchangeOutlastsPause(t *testing.T) {
	r := newRealm(t, func(h *hive) {
		h.agents.by["math"] = func(_ context.Context, t *swarm.Turn) swarm.Outcome {
			prior := t.PriorAttempt()
			if prior == nil {
				return asks(t)
			}
			call(t, mail.ToolSendResponse, obj{"target": "x@acme", "subject": "said", "body": heard(prior.Answers)})
			return swarm.Outcome{}
		}
	})
	in := r.wrapper("job", "math", "x")
	in.Brief = true
	s := r.waitState(r.receive(in).Exchanges[0])
	if s.State != swarm.StatePaused || s.Calls == "" || !slices.Equal(s.Needs, []string{"t1.c1"}) || s.Answer.Cursor != 0 {
		t.Fatalf("state %+v", s)
	}
	r.restart()
	x := r.find(in)
	if s, err := r.rt.LookExchange(t.Context(), x, swarm.Event{}); err != nil || s.Answer.Cursor != 0 || len(s.Needs) != 1 {
		t.Errorf("after a restart: %+v, %v", s, err)
	}
	resume := func(call string) error {
		back := r.wrapper("job", "math", `[{"call_id":"`+call+`","content":"yes"}]`)
		back.Wrapper.Type = mail.Response
		back.Wrapper.Payload.Sender = mail.Address{Type: mail.System, Name: "acme"}
		back.Wrapper.Payload.Subject = mail.SubjectActionCompleteBcast
		_, err := r.rt.Receive(t.Context(), back)
		return err
	}
	if err := resume("t9.c1"); !errors.Is(err, swarm.ErrInvalid) {
		t.Errorf("results of a call that does not wait: %v", err)
	}
	answer := make(chan swarm.ExchangeState, 1)
	go func() { answer <- r.waitState(x, "t1.c1") }()
	if err := resume("t1.c1"); err != nil {
		t.Fatal(err)
	}
	if s := <-answer; s.Answer.Body != "yes" || s.Answer.Caller != "math" {
		t.Errorf("answer %+v", s)
	}
	if snap := r.snapshot("job"); snap.Task.State != swarm.StateCompleted {
		t.Errorf("the task is %s", snap.Task.State)
	}
}

// The conversation of a task with a swarm is the same on each attempt, after a restart too;
// tasks and swarms share none, and it has nothing of the task's id (G-022).
func TestConversationOfATask(t *testing.T) {
	r := newRealm(t, func(h *hive) {
		h.forward = ways{}
		h.def.Agents[1].Interswarm, h.def.Agents[1].Targets = true, []string{"*@*"}
		h.agents.by["math"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			for _, to := range []string{"a@acme", "a@depot"} {
				call(turn, mail.ToolSendRequest, obj{"target": to, "subject": "s", "body": "b"})
			}
			return swarm.Outcome{}
		}
	})
	for _, task := range []string{"job", "job2"} {
		r.receive(r.wrapper(task, "math", "x"))
	}
	read := func() (all []string) {
		for _, task := range []string{"job", "job2"} {
			for _, peer := range []string{"acme", "depot"} {
				box := swarm.OutboxKey{Task: guest("hive", "acme", task), Peer: peer}
				eventually(t, "a message", func() bool { _, ok, _ := r.rt.NextDelivery(t.Context(), box); return ok })
				d, _, err := r.rt.NextDelivery(t.Context(), box)
				if err != nil || !mail.ValidUUID(d.Conversation) || slices.Contains(all, d.Conversation) || strings.Contains(d.Conversation, task) {
					t.Errorf("conversation %q of %s with %s, %v", d.Conversation, task, peer, err)
				}
				all = append(all, d.Conversation)
			}
		}
		return all
	}
	first := read()
	r.restart()
	if again := read(); !slices.Equal(again, first) {
		t.Errorf("after a restart %q, before %q", again, first)
	}
}

// A turn that runs again answers the exchange that its record names, and no other,
// whatever has become of it: a first message was withdrawn while a person was asked, a
// second one came.
func TestRepeatedAnswerKeepsItsExchange(t *testing.T) {
	for name, c := range map[string]struct {
		target            string
		outbox, withdrawn int
	}{
		"of a message":             {"x@acme", 0, 1},
		"to one that asks nothing": {"y@acme", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var first swarm.Entry
			r := newRealm(t, func(h *hive) {
				h.forward = ways{}
				h.def.Agents[1].Interswarm, h.def.Agents[1].Targets = true, []string{"*@acme"}
				h.agents.by["math"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
					args := obj{"target": c.target, "subject": "said", "body": "the first answer"}
					if turn.PriorAttempt() != nil {
						turn.SetReplay(&first)
						call(turn, mail.ToolSendResponse, args)
						turn.SetReplay(nil)
						return swarm.Outcome{}
					}
					if incoming(turn).Payload.Body != "first" {
						return failed(errors.New("the second message"))
					}
					first = *answered(abi.MailResponse{Text: call(turn, mail.ToolSendResponse, args)}, nil)
					first.Ran = turn.MailRecord()
					return asks(turn)
				}
			})
			x := r.receive(r.wrapper("job", "math", "first")).Exchanges[0]
			r.waitState(x)
			second := r.receive(r.wrapper("job", "math", "second")).Exchanges[0]
			if err := r.rt.CancelExchange(t.Context(), x, "its caller"); err != nil {
				t.Fatal(err)
			}
			back := r.wrapper("job", "math", `[{"call_id":"t1.c1","content":"yes"}]`)
			back.Wrapper.Type = mail.Response
			back.Wrapper.Payload.Sender = mail.Address{Type: mail.System, Name: "acme"}
			back.Wrapper.Payload.Subject = mail.SubjectActionCompleteBcast
			r.receive(back)
			if a := r.wait(second); a.State != swarm.StateFailed {
				t.Errorf("the second message: %+v", a)
			}
			events, err := r.rt.Events(t.Context(), guest("hive", "acme", "job"), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			ignored := 0
			for _, e := range events {
				if e.Name == "interswarm_message_ignored" {
					ignored++
				}
			}
			if left := len(r.snapshot("job").Outbox); left != c.outbox || ignored != c.withdrawn {
				t.Errorf("%d messages leave, want %d; %d are ignored, want %d", left, c.outbox, ignored, c.withdrawn)
			}
		})
	}
}

// ways lets messages for a realm leave, and keeps who was woken.
type ways struct{ swarm.NoForwarder }

func (ways) Check(context.Context, swarm.InstanceKey, string) error { return nil }

// An agent asks its caller back: the question leaves through the outbox with the exchange
// in which it is asked, who waits sees it, and the reply reaches the agent in the same
// task, though it is not exposed itself (G-024).
func TestAgentAsksItsCaller(t *testing.T) {
	r := newRealm(t, func(h *hive) {
		h.forward = ways{}
		h.def.Agents[0].Expose, h.def.Agents[0].CanComplete = nil, false
		h.def.Agents[0].Interswarm, h.def.Agents[0].Targets = true, []string{"math", "*@acme"}
		h.def.Agents[2].CanComplete = true
		h.agents.by["math"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
			if m := incoming(t); m.Payload.Sender.Name == "x@acme" {
				call(t, mail.ToolSendRequest, obj{"target": "boss", "subject": "s", "body": "ask him"})
			} else {
				call(t, mail.ToolSendResponse, obj{"target": "x@acme", "subject": "done", "body": m.Payload.Body})
			}
			return swarm.Outcome{}
		}
		h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
			if m := incoming(t); m.Payload.Sender.Name == "math" {
				call(t, mail.ToolSendRequest, obj{"target": "x@acme", "subject": "which?", "body": "red or blue"})
			} else {
				call(t, mail.ToolSendResponse, obj{"target": "math", "subject": "he says", "body": m.Payload.Body})
			}
			return swarm.Outcome{}
		}
	})
	in := r.wrapper("job", "math", "x")
	in.Brief = true
	x := r.receive(in).Exchanges[0]
	s := r.waitState(x)
	if len(s.Questions) != 1 || s.Questions[0].Payload.Body != "red or blue" || len(s.Needs) != 1 || s.Needs[0] != s.Questions[0].Payload.ID || s.State != swarm.StateRunning {
		t.Fatalf("state %+v", s)
	}
	box := swarm.OutboxKey{Task: guest("hive", "acme", "job"), Peer: "acme"}
	d, ok, err := r.rt.NextDelivery(t.Context(), box)
	if err != nil || !ok || d.Answers != x.Submission().Key || d.Wrapper.Payload.Body != "red or blue" {
		t.Fatalf("delivery %+v, %t, %v", d, ok, err)
	}
	if err := r.rt.MarkDelivered(t.Context(), box, d.Wrapper.MessageID, ""); err != nil {
		t.Fatal(err)
	}
	r.restart()
	if s, err := r.rt.LookExchange(t.Context(), r.find(in), swarm.Event{}); err != nil || len(s.Questions) != 1 {
		t.Fatalf("after a restart: %+v, %v", s, err)
	}
	reply := r.wrapper("job", "boss", "blue")
	reply.Wrapper.Type, reply.Wrapper.Payload.ID = mail.Response, s.Needs[0]
	if got := r.receive(reply); len(got.Exchanges) > 0 {
		t.Errorf("a reply opens exchanges: %+v", got)
	}
	if got := r.find(reply).Submission(); string(got.Note) != "note" { // by which a gateway knows a reply that comes again
		t.Errorf("the reply is kept as %+v", got)
	}
	if s := r.waitState(r.find(in), s.Needs...); s.Answer.Body != "blue" || s.Answer.Subject != "done" {
		t.Errorf("answer %+v", s)
	}
	if snap := r.snapshot("job"); snap.Task.State != swarm.StateCompleted || len(snap.Task.Requests) > 0 {
		t.Errorf("left: %+v", snap.Task)
	}
}

// With a reply address each answer leaves through the outbox besides: of an agent, of a
// completion, and of a failure.
func TestReplyLeavesBesides(t *testing.T) {
	r := newRealm(t, func(h *hive) {
		h.forward = ways{}
		h.agents.by["math"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
			if incoming(t).Payload.Body == "fail" {
				return failed(errors.New("no"))
			}
			return script(ctx, t)
		}
	})
	for body, to := range map[string]string{"answer": "math", "fail": "math", "complete": "boss"} {
		in := r.wrapper(body, to, body)
		in.Reply = true
		a := r.wait(r.receive(in).Exchanges[0])
		box := swarm.OutboxKey{Task: guest("hive", "acme", body), Peer: "acme"}
		d, ok, err := r.rt.NextDelivery(t.Context(), box)
		p := d.Wrapper.Payload
		if err != nil || !ok || p.ID != in.Wrapper.Payload.ID || p.Recipients[0].Name != "x@acme" || p.Body != a.Body || p.Subject != a.Subject {
			t.Errorf("%s: %+v, %t, %v; the answer is %+v", body, p, ok, err, a)
		}
		if _, more, _ := r.rt.NextDelivery(t.Context(), box, d.Wrapper.MessageID); more {
			t.Errorf("%s: more than one leaves", body)
		}
	}
}

// A user's post through a gateway is held as well: results that he sends let its turn go
// on, and both are answered by the completion.
func TestUserExchange(t *testing.T) {
	begun, open := make(chan struct{}, 2), make(chan struct{})
	close(open)
	h := newHive(t, asker(begun, open))
	r := &realm{hive: h}
	gateway := func(p *swarm.Post) { p.Door, p.Key, p.Note, p.Keep = toyDoor, "k"+p.Body, []byte("n"), time.Hour }
	post := h.mustPost("asks", task("t"), gateway)
	s := r.waitState(post)
	if len(s.Needs) != 1 || s.State != swarm.StatePaused {
		t.Fatalf("state %+v", s)
	}
	resumed := h.mustPost("", task("t"), results("yes"), gateway)
	if a, b := r.wait(post), r.wait(resumed); a.Body != "boss got [q] asks" || a != b {
		t.Errorf("answers %+v, %+v", a, b)
	}
	list, err := h.rt.Exchanges(t.Context(), alice().Instance("hive"), toyDoor, swarm.Submission{}, 10)
	if err != nil || len(list) != 2 || list[1].Submission().Key != "kasks" || list[1].Submission().Answer == 0 {
		t.Errorf("listed %+v, %v", list, err)
	}
	second := h.mustPost("asks", task("u"), gateway, func(p *swarm.Post) { p.Key = "other" })
	r.waitState(second)
	if err := h.rt.CancelExchange(t.Context(), second, "alice"); err != nil {
		t.Fatal(err)
	}
	if a := r.wait(second); a.State != swarm.StateCancelled {
		t.Errorf("answer %+v", a)
	}
}

// A list of exchanges has none that have expired, and as many as were asked for beside
// them.
func TestExpiredExchangesAreNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHive(t)
		r := &realm{hive: h}
		post := func(id string, keep time.Duration) {
			r.wait(h.mustPost(id, task(id), func(p *swarm.Post) { p.Door, p.Key, p.Keep = toyDoor, id, keep }))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute) // expired ones are removed each hour
		post("a", 10*time.Hour)
		post("b", 10*time.Minute)
		post("c", 10*time.Minute)
		post("d", 10*time.Hour)
		time.Sleep(20 * time.Minute)
		list, err := h.rt.Exchanges(t.Context(), alice().Instance("hive"), toyDoor, swarm.Submission{}, 2)
		if err != nil || len(list) != 2 || list[0].Submission().Key != "d" || list[1].Submission().Key != "a" {
			t.Errorf("listed %+v, %v", list, err)
		}
	})
}

// A store that fails for a minute, or does not report what became of a write, neither
// loses an exchange nor answers it twice; an exchange that is open when the host stops is
// answered by the next.
func TestExchangesOutlastOutages(t *testing.T) {
	for _, kind := range []string{"accept", "commit", "unknown"} {
		synctest.Test(t, func(t *testing.T) {
			s := &faultyStore{kind: kind}
			r := newRealm(t, func(h *hive) {
				h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
			})
			in := r.wrapper("job", "math", "x")
			in.Brief = true
			var got swarm.IncomingReceipt
			for {
				var err error
				if got, err = r.rt.Receive(t.Context(), in); err == nil {
					break
				} else if !errors.Is(err, errOutage) {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
			}
			if a := r.wait(got.Exchanges[0]); a.Body != "echo: x" {
				t.Errorf("%s: %+v", kind, a)
			}
			r.restart()
			if a := r.wait(r.receive(in).Exchanges[0]); a.Body != "echo: x" || len(r.agents.turns()) != 1 {
				t.Errorf("%s: again %+v, turns %q", kind, a, r.agents.turns())
			}
			if s.failed == 0 {
				t.Errorf("%s: nothing failed", kind)
			}
			r.stop()
		})
	}
}

// faultyStore fails writes of a kind for a minute, or loses the outcome of each kind once.
type faultyStore struct {
	swarm.Store
	kind   string
	until  time.Time
	lost   [2]bool
	failed int
}

func (s *faultyStore) fault(kind string) error {
	if kind != s.kind {
		return nil
	}
	if s.until.IsZero() {
		s.until = time.Now().Add(time.Minute)
	}
	if time.Now().After(s.until) {
		return nil
	}
	s.failed++
	return errOutage
}

func (s *faultyStore) lose(n int, err error) error {
	if s.kind != "unknown" || s.lost[n] || err != nil {
		return err
	}
	s.lost[n], s.failed = true, s.failed+1
	return errOutage
}

func (s *faultyStore) Accept(ctx context.Context, m swarm.Mutation, sub swarm.Submission) (swarm.Submission, error) {
	if err := s.fault("accept"); err != nil {
		return swarm.Submission{}, err
	}
	first, err := s.Store.Accept(ctx, m, sub)
	return first, s.lose(0, err)
}

func (s *faultyStore) Commit(ctx context.Context, m swarm.Mutation) error {
	if err := s.fault("commit"); err != nil {
		return err
	}
	return s.lose(1, s.Store.Commit(ctx, m))
}

// A host that stops with an open exchange answers it after its start (G-023).
func TestOpenExchangeSurvives(t *testing.T) {
	begun := make(chan struct{}, 2)
	r := newRealm(t, func(h *hive) {
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			select {
			case begun <- struct{}{}:
			default:
			}
			if len(begun) == 1 {
				<-ctx.Done()
				return failed(ctx.Err())
			}
			return script(ctx, turn)
		}
	})
	in := r.wrapper("job", "math", "x")
	x := r.receive(in).Exchanges[0]
	ended := make(chan error, 1)
	go func() {
		_, err := r.runtime().WaitExchange(context.Background(), x, nil)
		ended <- err
	}()
	eventually(t, "the turn", func() bool { return len(begun) == 1 })
	r.restart()
	if err := <-ended; !errors.Is(err, swarm.ErrDraining) {
		t.Errorf("who waited gets %v", err)
	}
	if a := r.wait(r.find(in)); a.Body != "echo: x" {
		t.Errorf("answer %+v", a)
	}
}

// Answered exchanges leave no running task, and nothing in memory: SKEP_EXCHANGES of them,
// 500 by default.
func TestAnsweredExchangesLeaveNothing(t *testing.T) {
	t.Parallel()
	n := 500
	if more, err := strconv.Atoi(os.Getenv("SKEP_EXCHANGES")); err == nil {
		n = more
	}
	r := newRealm(t, func(h *hive) { h.def.Limits.PeerTasks = 50 })
	asks := make(chan swarm.Incoming)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for in := range asks {
				got, err := r.rt.Receive(t.Context(), in)
				if err != nil {
					t.Error(err)
					continue
				}
				if s, err := r.rt.WaitExchange(t.Context(), got.Exchanges[0], nil); err != nil || s.Answer.Caller != "math" {
					t.Errorf("state %+v, %v", s, err)
				}
			}
		})
	}
	for i := range n {
		in := r.wrapper("job"+strconv.Itoa(i), "math", "x")
		in.Brief = true
		asks <- in
	}
	close(asks)
	workers.Wait()
	if running, err := r.store.RunningTasks(t.Context()); err != nil || len(running) > 0 {
		t.Errorf("%d tasks run, %v", len(running), err)
	}
	eventually(t, "that no task is in memory", func() bool { return r.rt.InMemory() == 0 })
}

// A gateway's reader cuts the output of a turn into the pieces that were emitted; a user's
// task has them not.
func TestCuts(t *testing.T) {
	r := newRealm(t, func(h *hive) {
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			for _, text := range []string{"ab", "", "cdé"} {
				turn.Emit(abi.EmitRequest{Chunk: &text})
			}
			note := "n"
			turn.Emit(abi.EmitRequest{Note: &note})
			return script(ctx, turn)
		}
	})
	output := func(key swarm.TaskKey) string {
		events, err := r.rt.Events(t.Context(), key, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(events, func(e swarm.Event) bool { return e.Name == "agent_output" })
		return string(events[i].Extra)
	}
	r.wait(r.receive(r.wrapper("job", "math", "x")).Exchanges[0])
	if got, want := output(guest("hive", "acme", "job")), `{"caller":"math","cuts":[2,0,4],"exchange":1,"n":4,"text":"abcdé","turn":1}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r.ask(`[["send_request",{"target":"math","subject":"s","body":"x"}],["await_message",{}]]`, task("t"))
	if got, want := output(key("t")), `{"caller":"math","n":4,"text":"abcdé","turn":2}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A turn that is run again shows the readers of gateways what its earlier attempt has shown, under
// the same numbers: they came before the turn, after the host's start. A user's see it in its output.
func TestEmitRepeatsForGateways(t *testing.T) {
	begin := make(chan struct{})
	r := newRealm(t, func(h *hive) {
		h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			<-begin
			for n, text := range []string{"recorded", "new"} {
				turn.SetReplay(nil)
				if n == 0 {
					turn.SetReplay(&swarm.Entry{Answer: json.RawMessage(`{"status":"ok"}`)})
				}
				turn.Emit(abi.EmitRequest{Chunk: &text})
			}
			return script(ctx, turn)
		}
	})
	shown := func(of swarm.TaskKey) (chunks int) {
		feed, err := r.rt.Follow(t.Context(), of, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		begin <- struct{}{}
		for {
			events, err := feed.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				switch e.Name {
				case "agent_chunk":
					chunks++
				case "agent_output":
					return chunks
				}
			}
		}
	}
	r.receive(r.wrapper("job", "math", "x"))
	if n := shown(guest("hive", "acme", "job")); n != 2 {
		t.Errorf("a gateway's reader is shown %d chunks, want 2", n)
	}
	r.mustPost(`[["send_request",{"target":"math","subject":"s","body":"x"}],["await_message",{}]]`, task("t"))
	if n := shown(key("t")); n != 1 {
		t.Errorf("a user is shown %d chunks, want 1", n)
	}
}

// A peer's request beyond what a task keeps is refused as well: its failure would reach
// nobody. The peer sends it again.
func TestPeersRequestsAreBounded(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	hang := make(chan struct{})
	hive.agents.mu.Lock()
	hive.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		select {
		case <-hang:
		case <-ctx.Done():
		}
		return failed(errors.New("stopped"))
	}
	hive.agents.mu.Unlock()
	def := hive.def
	def.Limits.Queue = 1000
	if err := hive.rt.ReplaceDefinitions([]swarm.Definition{def}); err != nil {
		t.Fatal(err)
	}
	send := func(n int, kind mail.Type) error {
		_, err := p.hand("depot", "hive", false, foreign("t", func(w *mail.Interswarm) {
			w.MessageID = fmt.Sprintf("1c9d0000-0000-4000-8000-%012d", n)
			w.Payload.ID, w.Type = fmt.Sprintf("2c9d0000-0000-4000-8000-%012d", n), kind
		}), 0)
		return err
	}
	for n := range 256 {
		if err := send(n, mail.Request); err != nil {
			t.Fatal(err)
		}
	}
	if err := send(256, mail.Request); !errors.Is(err, swarm.ErrLimit) {
		t.Errorf("the 257th: %v", err)
	}
	if err := send(257, mail.Broadcast); err != nil {
		t.Errorf("what asks nothing: %v", err)
	}
	close(hang)
	eventually(t, "a place", func() bool { return send(256, mail.Request) == nil })
}
