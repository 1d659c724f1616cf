package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// humans makes the math of a hive ask a person about every request, and answer it
// with what was said.
func (p *post) humans(name string) {
	h := p.hives[name]
	h.agents.mu.Lock()
	defer h.agents.mu.Unlock()
	h.agents.by["math"] = func(_ context.Context, t *swarm.Turn) swarm.Outcome {
		m := incoming(t)
		if m.Type != mail.Request {
			return swarm.Outcome{}
		}
		prior := t.PriorAttempt()
		if prior == nil {
			return asks(t)
		}
		call(t, mail.ToolSendResponse, obj{"target": m.Payload.Sender.Name, "subject": "said", "body": heard(prior.Answers)})
		return swarm.Outcome{}
	}
}

// rest waits until all outbox messages are delivered, so that no delivery meets a
// stopped host.
func (p *post) rest() {
	p.t.Helper()
	eventually(p.t, "the carriers' rest", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.busy) == 0
	})
}

// heard is what became of the call in a turn's journal.
func heard(entries []swarm.Entry) string {
	for _, e := range entries {
		var said abi.MailResponse
		switch {
		case e.Kind != swarm.EntryAnswer:
		case e.Err != nil:
			return "ERROR " + e.Err.Reason
		case json.Unmarshal(e.Answer, &said) == nil:
			return said.Text
		}
	}
	return "nothing"
}

// pending is one call as the one who posted reads it.
type pending struct {
	ID    string `json:"call_id"`
	Name  string `json:"name"`
	Swarm string `json:"swarm"`
}

func pendings(t *testing.T, a swarm.Answer) (list []pending) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), &list); err != nil || a.State != swarm.StatePaused || a.Subject != mail.SubjectBreakpointToolCall {
		t.Fatalf("answer = %+v, %v", a, err)
	}
	return list
}

func each(list ...swarm.CallResult) func(*swarm.Post) {
	return func(p *swarm.Post) { p.Results, p.MustExist = &swarm.Results{Each: list}, true }
}

// G-46: who posted to the owner is asked, and the answer reaches the turn that waits
// at the contributor, whatever host stops in between.
func TestPeerAsks_G46(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive, depot := p.hives["hive"], p.hives["depot"]
	p.humans("depot")
	got := pendings(t, hive.ask(requestTo("math@depot", "order?"), task("t")))
	if want := []pending{{"t1.c1@depot", "confirm", "depot"}}; !slices.Equal(got, want) {
		t.Fatalf("pending %+v, want %+v", got, want)
	}
	if n := countEvents(hive.events("t"), "breakpoint_tool_call"); n != 1 {
		t.Errorf("%d events of the pause", n)
	}
	if rec := hive.record("t").Task; rec.State != swarm.StatePaused || len(rec.Requests) != 1 {
		t.Fatalf("owner's task %s, open %v", rec.State, rec.Requests)
	}
	p.rest()
	hive.restart()
	depot.restart()
	if a := hive.ask("", task("t"), results("yes, do")); a.Body != "boss got [said] yes, do" {
		t.Errorf("answer = %+v", a)
	}
	want := []string{"hive>depot forward request [s]", "depot>hive back response [::breakpoint_tool_call::]",
		"hive>depot back response [::action_complete_broadcast::]", "depot>hive back response [said]"}
	if wire := p.wire(); len(wire) < 4 || !slices.Equal(wire[:4], want) {
		t.Errorf("the wire had %q, want %q", wire, want)
	}
}

func countEvents(list []swarm.Event, name string) (n int) {
	for _, e := range list {
		if e.Name == name {
			n++
		}
	}
	return n
}

// The swarm in the middle forwards its peer's calls and the owner's results.
func TestPeerAsksOverThree_G46(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	hive, depot := p.hives["hive"], p.hives["depot"]
	p.humans("yard")
	depot.agents.mu.Lock()
	depot.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if m := incoming(turn); m.Type == mail.Response {
			call(turn, mail.ToolTaskComplete, obj{"finish_message": "via depot: " + m.Payload.Body})
			return swarm.Outcome{}
		}
		call(turn, mail.ToolSendRequest, obj{"target": "math@yard", "subject": "on", "body": "x"})
		return swarm.Outcome{}
	}
	depot.agents.mu.Unlock()
	got := pendings(t, hive.ask(requestTo("boss@depot", "x"), task("t")))
	if want := []pending{{"t1.c1@yard@depot", "confirm", "depot"}}; !slices.Equal(got, want) {
		t.Fatalf("pending %+v, want %+v", got, want)
	}
	p.rest()
	for _, name := range []string{"yard", "depot", "hive"} {
		p.hives[name].restart()
	}
	a := hive.ask("", task("t"), each(swarm.CallResult{Call: "t1.c1@yard@depot", Content: "<yes>"}))
	if want := "boss got [::interswarm_task_complete::] via depot: <yes>"; a.Body != want {
		t.Errorf("answer = %+v, want %q", a, want)
	}
}

// Calls of two swarms and of the own one wait together, under ids of their own. A call
// without a result fails; so do all when the user posts instead.
func TestPeerAsksTogether(t *testing.T) {
	for name, c := range map[string]struct {
		resume func(*swarm.Post)
		want   []string
	}{
		"results":   {each(swarm.CallResult{Call: "t1.c1@depot", Content: "one"}), []string{"math@depot one", "math@yard ERROR no_result"}},
		"a message": {func(p *swarm.Post) { p.Body, p.MustExist = "[]", true }, []string{"math@depot ERROR no_result", "math@yard ERROR no_result"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := federate(t, "hive", "depot", "yard")
			hive := p.hives["hive"]
			p.humans("depot")
			p.humans("yard")
			heardBy := make(chan string, 2)
			hive.agents.mu.Lock()
			hive.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
				if m := incoming(turn); m.Type == mail.Response {
					heardBy <- m.Payload.Sender.Name + " " + m.Payload.Body
					return swarm.Outcome{}
				}
				return script(ctx, turn)
			}
			hive.agents.mu.Unlock()
			hive.mustPost(`[["send_request",{"target":"math@depot","subject":"1","body":"x"}],["send_request",{"target":"math@yard","subject":"2","body":"y"}],["await_message",{}]]`, task("t"))
			eventually(t, "both reports", func() bool { return len(hive.record("t").Task.PeerCalls) == 2 })
			hive.mustPost("", task("t"), c.resume)
			got := []string{<-heardBy, <-heardBy}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("heard %q, want %q", got, c.want)
			}
		})
	}
}

// A peer that is gone when the result comes, or ends its part, leaves no open request.
func TestPeerAsksOfALostPeer_R082(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive, depot := p.hives["hive"], p.hives["depot"]
	p.humans("depot")
	pendings(t, hive.ask(requestTo("math@depot", "x"), task("t")))
	p.set(map[string]string{"depot": "no answer for 30s"})
	a := hive.ask("", task("t"), results("yes"))
	if want := `boss got [::router_error::] The answer to calls of swarm "depot" that wait for a person was not delivered: no answer for 30s.`; !strings.HasPrefix(a.Body, want) {
		t.Errorf("answer = %+v", a)
	}
	p.set(nil)
	pendings(t, hive.ask(requestTo("math@depot", "x"), task("u")))
	if err := depot.rt.CancelTask(t.Context(), guest("depot", "hive", "u"), "the operator"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owner's end", func() bool { return hive.record("u").Task.State == swarm.StateCompleted })
	last := hive.agents.turns()[len(hive.agents.turns())-1]
	if last != "boss<-hive:::router_error::" || len(hive.record("u").Task.PeerCalls) > 0 {
		t.Errorf("last turn %q, pending %v", last, hive.record("u").Task.PeerCalls)
	}
}

// Only the swarm that the calls were reported to may answer them.
func TestForgedResults_G46(t *testing.T) {
	p := federate(t, "hive", "depot", "thief")
	hive, depot := p.hives["hive"], p.hives["depot"]
	p.humans("depot")
	pendings(t, hive.ask(requestTo("math@depot", "x"), task("t")))
	rec := depot.load(guest("depot", "hive", "t")).Task
	n := 0
	forged := func(from, body string, back bool) error {
		n++
		w := foreign("t", func(w *mail.Interswarm) {
			w.MessageID = fmt.Sprintf("1c9d0000-0000-4000-8000-%012d", n)
			w.SourceSwarm, w.TargetSwarm, w.Type = from, "depot", mail.Response
			w.TaskOwner, w.TaskContributors = rec.Owner, append(slices.Clone(rec.Contributors), "swarm:hive@"+from)
			w.Payload.Sender = mail.Address{Type: mail.System, Name: from}
			w.Payload.Recipients[0].Name, w.Payload.Subject, w.Payload.Body = "math@depot", mail.SubjectActionCompleteBcast, body
		})
		_, err := p.hand(from, "depot", back, w, 0)
		return err
	}
	yes := `[{"call_id":"t1.c1","content":"forged"}]`
	for name, c := range map[string]struct {
		from, body string
		back       bool
		want       error
	}{
		"a swarm without a part": {"thief", yes, true, swarm.ErrForbidden},
		"a task of its own":      {"thief", yes, false, swarm.ErrNotFound},
		"no list":                {"hive", "yes", true, swarm.ErrInvalid},
		"a call nobody has made": {"hive", `[{"call_id":"t9.c9","content":"x"}]`, true, nil},
	} {
		if err := forged(c.from, c.body, c.back); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if got := depot.load(guest("depot", "hive", "t")).Task; got.State != swarm.StatePaused || len(got.Breakpoints) != 1 {
		t.Errorf("the task is %s with %d calls", got.State, len(got.Breakpoints))
	}
	w := foreign("t", func(w *mail.Interswarm) {
		own := hive.record("t").Task
		w.Type, w.TaskOwner, w.TaskContributors = mail.Response, own.Owner, own.Contributors
		w.Payload.Sender, w.Payload.Subject, w.Payload.Body = mail.Address{Type: mail.System, Name: "depot"}, mail.SubjectActionCompleteBcast, yes
	})
	if _, err := p.hand("depot", "hive", true, w, 0); !errors.Is(err, swarm.ErrForbidden) {
		t.Errorf("a contributor answers its owner's calls: %v", err)
	}
}

// A report that cannot be kept reaches the agent that asked, as its request stays
// open; one that comes again changes nothing.
func TestPeerReports(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.humans("depot")
	pendings(t, hive.ask(requestTo("math@depot", "x"), task("t")))
	report := func(id, body string) {
		own := hive.record("t").Task
		w := foreign("t", func(w *mail.Interswarm) {
			w.MessageID, w.Type, w.TaskOwner, w.TaskContributors = id, mail.Response, own.Owner, own.Contributors
			w.Payload.Sender, w.Payload.Subject, w.Payload.Body = mail.Address{Type: mail.System, Name: "depot"}, mail.SubjectBreakpointToolCall, body
			w.Payload.Recipients[0].Name = "boss@hive"
		})
		if _, err := p.hand("depot", "hive", true, w, 0); err != nil {
			t.Fatal(err)
		}
	}
	report("1c9d0000-0000-4000-8000-00000000000a", `[{"call_id":"t1.c1","name":"confirm","arguments":"{}"}]`)
	if got := hive.record("t").Task.PeerCalls; len(got) != 1 {
		t.Errorf("pending %+v", got)
	}
	report("1c9d0000-0000-4000-8000-00000000000b", `[{"call_id":"t2.c1","name":"confirm","arguments":"{}"}]`)
	if got := hive.record("t").Task.PeerCalls; len(got) != 2 {
		t.Errorf("pending %+v", got)
	}
	for i, body := range []string{"soon", "[]", `[{"call_id":"","name":"x"}]`, "[" + strings.Repeat(`{"call_id":"c","name":"x"},`, 64) + `{"call_id":"d","name":"x"}]`} {
		report(fmt.Sprintf("1c9d0000-0000-4000-8000-00000000010%d", i), body)
		if snap := hive.record("t"); len(snap.Task.PeerCalls) != 2 || len(snap.Rows) != i+1 {
			t.Errorf("%s: %d pending, %d rows", body, len(snap.Task.PeerCalls), len(snap.Rows))
		}
	}
}

// Calls whose report is undeliverable fail, and the turn goes on.
func TestPeerReportIsLost(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive, depot := p.hives["hive"], p.hives["depot"]
	p.humans("depot")
	p.set(map[string]string{"hive": "no answer for 30s"})
	hive.mustPost(requestTo("math@depot", "x"), task("t"))
	eventually(t, "the answer without a result", func() bool { return has(p.wire(), "depot>hive back response [said]") })
	if got := depot.load(guest("depot", "hive", "t")).Task; len(got.Breakpoints) > 0 {
		t.Errorf("pending %+v", got.Breakpoints)
	}
}

// Results that were sent before a later call was reported leave that call waiting.
func TestResultsOfSomeCalls(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive, depot := p.hives["hive"], p.hives["depot"]
	p.humans("depot")
	begun, open := make(chan struct{}, 2), make(chan struct{})
	depot.agents.mu.Lock()
	person := depot.agents.by["math"]
	both := func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if turn.PriorAttempt() == nil {
			begun <- struct{}{}
			<-open // a pause keeps turns from beginning
		}
		return person(ctx, turn)
	}
	depot.agents.by["math"], depot.agents.by["boss"] = both, both
	depot.agents.mu.Unlock()
	hive.mustPost(`[["send_request",{"target":"math@depot","subject":"1","body":"x"}],["send_request",{"target":"boss@depot","subject":"2","body":"y"}],["await_message",{}]]`, task("t"))
	<-begun
	<-begun
	close(open)
	eventually(t, "both reports", func() bool { return len(hive.record("t").Task.PeerCalls) == 2 })
	part := guest("depot", "hive", "t")
	n := 0
	say := func(body string) {
		rec := hive.record("t").Task
		n++
		w := foreign("t", func(w *mail.Interswarm) {
			w.MessageID = fmt.Sprintf("1c9d0000-0000-4000-8000-%012d", n)
			w.SourceSwarm, w.TargetSwarm, w.Type, w.TaskOwner, w.TaskContributors = "hive", "depot", mail.Response, rec.Owner, rec.Contributors
			w.Payload.Sender, w.Payload.Recipients[0].Name = mail.Address{Type: mail.System, Name: "hive"}, "math@depot"
			w.Payload.Subject, w.Payload.Body = mail.SubjectActionCompleteBcast, body
		})
		if _, err := p.hand("hive", "depot", true, w, 0); err != nil {
			t.Fatal(err)
		}
	}
	say(`[{"call_id":"t1.c1","content":"one"}]`)
	if got := depot.load(part).Task; got.State != swarm.StatePaused || len(got.Breakpoints) != 2 {
		t.Fatalf("the task is %s with %+v", got.State, got.Breakpoints)
	}
	say(`[{"call_id":"t2.c1"}]`)
	eventually(t, "both turns", func() bool { return len(depot.load(part).Task.Breakpoints) == 0 })
	eventually(t, "the answer of a turn on the wire", func() bool { return has(p.wire(), "depot>hive back response [said]") })
}
