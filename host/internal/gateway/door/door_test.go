package door_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/api/auth"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/door"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// A realm's and a user's asks are answered, found again, and count once (G-025).
func TestAskAndAnswer(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for name, c := range map[string]struct {
		caller gateway.Caller
		to     string
	}{"realm": {acme(), "calc"}, "user": {alice(), "boss"}} {
		t.Run(name, func(t *testing.T) {
			a := ask("m1", c.to, "hello", in("c "+name), func(a *gateway.Ask) { a.Note = []byte("note") })
			x := k.mustAsk(t, c.caller, a)
			wantAnswer(t, k.wait(t, x), gateway.Done, "echo: hello")
			if x.ID != "m1" || x.Agent != c.to || x.Conversation != "c "+name || x.Duplicate || string(x.Note) != "note" || x.Accepted.IsZero() {
				t.Errorf("exchange %+v", x)
			}
			turns := k.agents.count()
			again := k.mustAsk(t, c.caller, a)
			if !again.Duplicate || k.agents.count() != turns {
				t.Errorf("the repeat: %+v, %d turns after %d", again, k.agents.count(), turns)
			}
			wantAnswer(t, k.wait(t, again), gateway.Done, "echo: hello")
			found, err := k.Find(t.Context(), c.caller, "m1")
			if err != nil || found.Answered == 0 || found.Conversation != x.Conversation || found.Agent != c.to {
				t.Errorf("found %+v, %v", found, err)
			}
			if _, err := k.Ask(t.Context(), c.caller, ask("m1", c.to, "other")); !errors.Is(err, gateway.ErrConflict) || !strings.Contains(err.Error(), "id") || strings.Contains(err.Error(), "message_id") {
				t.Errorf("another message under the id: %v", err)
			}
			next := k.mustAsk(t, c.caller, ask("m2", c.to, "more", in(x.Conversation)))
			wantAnswer(t, k.wait(t, next), gateway.Done, "echo: more")
			if next.Task != x.Task {
				t.Errorf("the conversation went on in %v, not %v", next.Task, x.Task)
			}
			list, err := k.List(t.Context(), c.caller, "", 10)
			if err != nil || len(list) != 2 || list[0].ID != "m2" || list[1].ID != "m1" {
				t.Errorf("listed %+v, %v", list, err)
			}
			if list, err = k.List(t.Context(), c.caller, "m2", 10); err != nil || len(list) != 1 || list[0].ID != "m1" {
				t.Errorf("listed after m2 %+v, %v", list, err)
			}
		})
	}
}

// Messages without an id are each new, and each can be found by the id that its exchange
// has.
func TestMessagesWithoutID(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, c := range []struct {
		caller gateway.Caller
		to     string
	}{{acme(), "calc"}, {alice(), "boss"}} {
		a := ask("", c.to, "hello")
		one, two := k.mustAsk(t, c.caller, a), k.mustAsk(t, c.caller, a)
		if one.ID == "" || one.ID == two.ID || one.Task == two.Task || one.Duplicate || two.Duplicate {
			t.Errorf("exchanges %+v and %+v", one, two)
		}
		for _, x := range []gateway.Exchange{one, two} {
			found, err := k.Find(t.Context(), c.caller, x.ID)
			if err != nil || found.Task != x.Task {
				t.Errorf("found %+v, %v", found, err)
				continue
			}
			wantAnswer(t, k.wait(t, found), gateway.Done, "echo: hello")
		}
	}
}

// Unknown, unexposed and foreign agents, messages and conversations are refused alike
// (G-005, G-020).
func TestUnknownIsOneAnswer(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	stranger := acme()
	stranger.Principal.Tenant = "other"
	wait := k.mustAsk(t, acme(), ask("m1", "calc", "hello", in("c")))
	k.wait(t, wait)
	for name, c := range map[string]struct {
		caller gateway.Caller
		ask    gateway.Ask
		want   string
	}{
		"no such agent":      {acme(), ask("u1", "nobody", "x"), `there is no agent "nobody"`},
		"unexposed":          {acme(), ask("u2", "hidden", "x"), `there is no agent "hidden"`},
		"of another tenant":  {stranger, ask("u3", "calc", "x"), `there is no agent "calc"`},
		"no entrypoint":      {alice(), ask("u4", "calc", "x"), `there is no agent "calc"`},
		"unexposed, to user": {alice(), ask("u5", "hidden", "x"), `there is no agent "hidden"`},
	} {
		_, err := k.Ask(t.Context(), c.caller, c.ask)
		if !errors.Is(err, gateway.ErrUnknown) || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	other := acme()
	other.Realm, other.Principal.ID = "evil", "evil"
	for name, c := range map[string]gateway.Caller{"another realm": other, "a user": alice()} {
		if _, err := k.Find(t.Context(), c, "m1"); !errors.Is(err, gateway.ErrUnknown) {
			t.Errorf("%s finds the message: %v", name, err)
		}
		if err := k.Cancel(t.Context(), c, "m1", ""); !errors.Is(err, gateway.ErrUnknown) {
			t.Errorf("%s cancels the message: %v", name, err)
		}
	}
	x := k.mustAsk(t, other, ask("m1", "calc", "hello", in("c")))
	if x.Duplicate || x.Task == wait.Task {
		t.Errorf("two realms share a conversation: %+v", x)
	}
}

func TestRightsOfRealms(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	mute := acme()
	mute.May = nil
	broadcaster := acme()
	broadcaster.May = gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayBroadcast}
	tell := ask("t", "calc", "x", func(a *gateway.Ask) { a.Kind = gateway.Tells })
	both := ask("b", "calc", "x", func(a *gateway.Ask) { a.To = []string{"calc", "boss"} })
	for name, c := range map[string]struct {
		caller gateway.Caller
		ask    gateway.Ask
		want   error
	}{
		"no right to ask":                 {mute, ask("a", "calc", "x"), gateway.ErrDenied},
		"no right to tell":                {acme(), tell, gateway.ErrDenied},
		"no right to several":             {acme(), both, gateway.ErrDenied},
		"tells":                           {broadcaster, tell, nil},
		"asks several":                    {broadcaster, both, nil},
		"a user to several":               {alice(), both, gateway.ErrDenied},
		"the system's subject":            {acme(), ask("s", "calc", "x", func(a *gateway.Ask) { a.Subject = mail.SubjectTaskComplete }), gateway.ErrInvalid},
		"data that is no JSON":            {acme(), ask("j", "calc", "x", func(a *gateway.Ask) { a.Info = map[string]any{"f": func() {}} }), gateway.ErrInvalid},
		"a note that is too long":         {acme(), ask("n", "calc", "x", func(a *gateway.Ask) { a.Note = make([]byte, gateway.MaxNote+1) }), gateway.ErrInvalid},
		"a body that is too long":         {acme(), ask("l", "calc", strings.Repeat("x", swarm.MaxBody+1)), gateway.ErrInvalid},
		"an answer to no question":        {acme(), ask("q", "calc", "x", in("none"), func(a *gateway.Ask) { a.Kind, a.Answers = gateway.Answers, "q" }), gateway.ErrUnknown},
		"a user who answers by a message": {alice(), ask("q", "boss", "x", func(a *gateway.Ask) { a.Kind = gateway.Answers }), gateway.ErrInvalid},
	} {
		_, err := k.Ask(t.Context(), c.caller, c.ask)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "realm") || strings.HasPrefix(name, "no right to ask") && !strings.HasSuffix(err.Error(), `lacks the right "ask": add it to may of [gateways.toy.partners.acme]`)) {
			t.Errorf("%s: the text for the partner is %q", name, err)
		}
	}
}

// What is told gets no answer: to wait for one is refused (G-030).
func TestNothingIsOwedForWhatIsTold(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	teller := acme()
	teller.May = gateway.Rights{gateway.MayTell}
	x := k.mustAsk(t, teller, ask("t", "calc", "x", func(a *gateway.Ask) { a.Kind = gateway.Tells }))
	_, waited := k.Wait(t.Context(), x)
	_, _, looked := k.Look(t.Context(), x)
	_, followed := k.Follow(t.Context(), x, 0)
	for _, err := range []error{waited, looked, followed} {
		if !errors.Is(err, gateway.ErrUnknown) {
			t.Errorf("%v, want %v", err, gateway.ErrUnknown)
		}
	}
}

// An agent asks its caller back, and the reply reaches the same task.
func TestAgentAsksItsCaller(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.agents.set("calc", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		switch m := incoming(tn); m.Type {
		case mail.Request:
			call(tn, mail.ToolSendRequest, map[string]any{"target": m.Payload.Sender.Name, "subject": "?", "body": "which unit?"})
		default:
			call(tn, mail.ToolSendResponse, map[string]any{"target": "x@acme", "subject": "re", "body": "in " + m.Payload.Body})
		}
		return swarm.Outcome{}
	})
	x := k.mustAsk(t, acme(), ask("m1", "calc", "convert"))
	a := k.wait(t, x)
	if a.Outcome != gateway.NeedsInput || a.At.IsZero() || len(a.Questions) != 1 || a.Questions[0].Text != "which unit?" || a.Questions[0].From != "calc" {
		t.Fatalf("answer %+v", a)
	}
	reply := gateway.Ask{Kind: gateway.Answers, ID: "m2", From: "x", Swarm: "hive", Conversation: x.Conversation, Answers: a.Questions[0].ID, Body: "metres"}
	k.mustAsk(t, acme(), reply)
	wantAnswer(t, k.wait(t, x), gateway.Done, "in metres")
	if _, err := k.Ask(t.Context(), acme(), reply); err != nil && !errors.Is(err, gateway.ErrUnknown) {
		t.Errorf("the reply again: %v", err)
	}
}

// A call that waits for a person is answered by the caller.
func TestCallOfAPersonIsAnswered(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	approve := func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		if p := tn.PriorAttempt(); p != nil && len(p.Answers) > 0 {
			var r abi.MailResponse
			_ = json.Unmarshal(p.Answers[0].Answer, &r)
			return respond(tn, "approved: "+r.Text)
		}
		header := tn.Header()
		return swarm.Outcome{Record: &swarm.Record{Header: &header}, Suspended: []swarm.BreakpointCall{{Call: "1", Op: abi.OpMail, ID: tn.CallID("1"), Name: "approve", Args: json.RawMessage(`{"sum":7}`)}}}
	}
	k.agents.set("calc", approve)
	k.agents.set("boss", approve)
	for name, c := range map[string]struct {
		caller gateway.Caller
		to     string
	}{"realm": {acme(), "calc"}, "user": {alice(), "boss"}} {
		x := k.mustAsk(t, c.caller, ask("m1", c.to, "pay"))
		a := k.wait(t, x)
		if a.Outcome != gateway.NeedsInput || len(a.Questions) != 1 || a.Questions[0].Call == "" || !strings.Contains(a.Questions[0].Text, `{"sum":7}`) {
			t.Fatalf("%s: answer %+v", name, a)
		}
		k.mustAsk(t, c.caller, gateway.Ask{
			Kind: gateway.Resumes, ID: "m2", From: "x", Swarm: "hive", Conversation: x.Conversation,
			Results: []gateway.CallResult{{Call: a.Questions[0].Call, Content: "yes"}},
		})
		wantAnswer(t, k.wait(t, x), gateway.Done, "approved: yes")
	}
}

// What went wrong inside stays inside. A caller sees the id of a task of its own, and none of
// another user's.
func TestFailuresShowNothingInternal(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	failing := swarm.Outcome{Failure: &swarm.Failure{Cause: "trap", Message: "secret at /srv/module", Limit: "memory"}}
	k.agents.set("calc", func(context.Context, *swarm.Turn) swarm.Outcome { return failing })
	x := k.mustAsk(t, acme(), ask("m1", "calc", "x"))
	wantAnswer(t, k.wait(t, x), gateway.Failed, "The agent could not complete the request. The task is "+x.Task.Task+".")
	k.agents.set("calc", func(context.Context, *swarm.Turn) swarm.Outcome { return swarm.Outcome{} })
	x = k.mustAsk(t, acme(), ask("m2", "calc", "x"))
	wantAnswer(t, k.wait(t, x), gateway.Failed, "The task ended, and no agent has answered the request. The task is "+x.Task.Task+".")
	k.agents.set("boss", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		if incoming(tn).Payload.Sender.Type == mail.Agent {
			return failing
		}
		call(tn, mail.ToolSendRequest, map[string]any{"target": "expert@acme", "subject": "?", "body": "how many?"})
		return swarm.Outcome{}
	})
	sent := k.next(t, k.post(t).Task)
	x = k.mustAsk(t, acme(), gateway.Ask{Kind: gateway.Asks, ID: "8c7b2a4e-0c4b-4f6c-9a57-0f6a3a1d2b3c", Of: &sent, Body: "of what?"})
	wantAnswer(t, k.wait(t, x), gateway.Failed, "The agent could not complete the request.")
}

func TestCancelledExchange(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	begun := make(chan struct{})
	k.agents.set("calc", func(ctx context.Context, _ *swarm.Turn) swarm.Outcome {
		close(begun)
		<-ctx.Done()
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "test", Message: context.Cause(ctx).Error()}}
	})
	x := k.mustAsk(t, acme(), ask("m1", "calc", "x"))
	<-begun
	if err := k.Cancel(t.Context(), acme(), "m1", "no longer needed"); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, k.wait(t, x), gateway.Cancelled, "The request was cancelled.")
	if err := k.Cancel(t.Context(), acme(), "m1", ""); !errors.Is(err, gateway.ErrConflict) {
		t.Errorf("cancelled again: %v", err)
	}
}

// A stream has the agent's chunks, and its answer last, live and afterwards.
func TestFollow(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	step := make(chan struct{})
	k.agents.set("calc", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		for _, text := range []string{"one", "", "two"} {
			<-step
			tn.Emit(abi.EmitRequest{Chunk: &text})
		}
		return respond(tn, "done")
	})
	x := k.mustAsk(t, acme(), ask("m1", "calc", "x"))
	live, err := k.Follow(t.Context(), x, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	var got []string
	for i := range 3 {
		step <- struct{}{}
		p, err := live.Next(t.Context())
		if err != nil || p.Kind != gateway.Chunk || p.N != int64(i) {
			t.Fatalf("piece %d: %+v, %v", i, p, err)
		}
		got = append(got, p.Text)
	}
	if end, err := live.Next(t.Context()); err != nil || end.Kind != gateway.End || end.Answer.Body != "done" || end.N != 3 {
		t.Fatalf("end %+v, %v", end, err)
	}
	for from := range int64(4) {
		later, err := k.Follow(t.Context(), x, from)
		if err != nil {
			t.Fatal(err)
		}
		var again []string
		for p, err := later.Next(t.Context()); err != io.EOF; p, err = later.Next(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if p.Kind == gateway.Chunk {
				again = append(again, p.Text)
			}
		}
		if !slices.Equal(again, got[from:]) {
			t.Errorf("from %d: %q, want %q", from, again, got[from:])
		}
		later.Close()
	}
}

// A reader that comes while a turn runs has all that it has emitted, and what follows as it comes;
// one of the whole has progress in its place, the same afterwards.
func TestFollowLate(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	step := make(chan string)
	k.agents.set("calc", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		for text := range step {
			if tn.Emit(abi.EmitRequest{Chunk: &text}); text == "one" {
				tn.Emit(abi.EmitRequest{Progress: &abi.Progress{Text: "half"}})
			}
		}
		return respond(tn, "done")
	})
	x := k.mustAsk(t, acme(), ask("m1", "calc", "x"))
	step <- "one"
	step <- "two"
	step <- "three" // all before it is emitted
	late, err := k.Follow(t.Context(), x, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	whole, err := k.FollowWhole(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	next := func(s gateway.Stream, want ...string) {
		t.Helper()
		for _, text := range want {
			if p, err := s.Next(t.Context()); err != nil || p.Text != text || (p.Kind == gateway.Progress) != (text == "half") {
				t.Fatalf("%+v, %v, want %s", p, err, text)
			}
		}
	}
	next(late, "one", "two", "three")
	next(whole, "one", "half", "two", "three")
	step <- "four"
	next(late, "four")
	next(whole, "four")
	close(step)
	for _, s := range []gateway.Stream{late, whole} {
		if end, err := s.Next(t.Context()); err != nil || end.Kind != gateway.End || end.N != 4 {
			t.Errorf("%+v, %v", end, err)
		}
	}
	again, err := k.FollowWhole(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	next(again, "one", "half", "two", "three", "four")
}

// A stream that is open ends when a reload hides its agent from the caller, or the caller's
// realm is no partner any more: nothing said afterwards is shown.
func TestFollowEndsWithItsRights(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hide, expel bool }{"agent hidden": {hide: true}, "partner gone": {expel: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var narrowed atomic.Bool
			k := newKit(t, func(o *door.Options) {
				all := o.ExposedAgents
				o.ExposedAgents = func(caller gateway.Caller) []gateway.ExposedAgent {
					return slices.DeleteFunc(all(caller), func(a gateway.ExposedAgent) bool { return c.hide && narrowed.Load() && a.Name == "calc" })
				}
				o.Renew = func(caller gateway.Caller) (gateway.Caller, error) {
					if c.expel && narrowed.Load() {
						return caller, gateway.ErrDenied
					}
					return caller, nil
				}
			})
			step := make(chan struct{})
			k.agents.set("calc", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
				for _, text := range []string{"before", "after"} {
					<-step
					tn.Emit(abi.EmitRequest{Chunk: &text})
				}
				return respond(tn, "done")
			})
			x := k.mustAsk(t, acme(), ask("m1", "calc", "x"))
			live, err := k.Follow(t.Context(), x, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer live.Close()
			step <- struct{}{}
			if p, err := live.Next(t.Context()); err != nil || p.Text != "before" {
				t.Fatalf("piece %+v, %v", p, err)
			}
			narrowed.Store(true)
			step <- struct{}{}
			if p, err := live.Next(t.Context()); !errors.Is(err, gateway.ErrDenied) || p.Text != "" {
				t.Errorf("afterwards %+v, %v", p, err)
			}
		})
	}
}

// A reload that hides the agent of an open stream ends it while the agent says nothing; one that does not
// ends none.
func TestFollowEndsAtReload(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*kit, gateway.Exchange) (gateway.Stream, error){
		"from a chunk": func(k *kit, x gateway.Exchange) (gateway.Stream, error) { return k.Follow(t.Context(), x, 0) },
		"whole":        func(k *kit, x gateway.Exchange) (gateway.Stream, error) { return k.FollowWhole(t.Context(), x) },
		"several": func(k *kit, x gateway.Exchange) (gateway.Stream, error) {
			return k.FollowEach(t.Context(), []gateway.Exchange{x})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hidden atomic.Bool
			k := newKit(t, func(o *door.Options) {
				all := o.ExposedAgents
				o.ExposedAgents = func(caller gateway.Caller) []gateway.ExposedAgent {
					return slices.DeleteFunc(all(caller), func(gateway.ExposedAgent) bool { return hidden.Load() })
				}
			})
			reload := func() {
				if err := k.swarm.ReplaceDefinitions([]swarm.Definition{k.hive}); err != nil {
					t.Fatal(err)
				}
			}
			step := make(chan struct{})
			k.agents.set("calc", func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
				<-step
				fraction := 0.5
				tn.Emit(abi.EmitRequest{Progress: &abi.Progress{Text: "half", Fraction: &fraction}})
				<-ctx.Done()
				return swarm.Outcome{}
			})
			s, err := open(k, k.mustAsk(t, acme(), ask("m1", "calc", "x")))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			reload()
			step <- struct{}{}
			if p, err := s.Next(t.Context()); err != nil || p.Text != "half" {
				t.Fatalf("after a reload %+v, %v", p, err)
			}
			hidden.Store(true)
			reload()
			if p, err := s.Next(t.Context()); !errors.Is(err, gateway.ErrDenied) {
				t.Errorf("hidden: %+v, %v", p, err)
			}
		})
	}
}

// Two asks of one caller to one agent in one task: each stream has the chunks of the turns
// that work on its ask, while they run and afterwards.
func TestFollowTwoAsksOfOneTask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		caller gateway.Caller
		agent  string
	}{{acme(), "calc"}, {alice(), "boss"}} {
		t.Run(string(c.caller.Principal.Role), func(t *testing.T) {
			t.Parallel()
			followTwoAsks(t, c.caller, c.agent)
		})
	}
}

func followTwoAsks(t *testing.T, c gateway.Caller, agent string) {
	k := newKit(t)
	step := make(chan struct{})
	k.agents.set(agent, func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		body := incoming(tn).Payload.Body
		for _, text := range []string{body + " ", body + ", "} {
			<-step
			tn.Emit(abi.EmitRequest{Chunk: &text})
		}
		if body == "second" {
			return respond(tn, "done")
		}
		return swarm.Outcome{}
	})
	first := k.mustAsk(t, c, ask("m1", agent, "first", in("talk")))
	second := k.mustAsk(t, c, ask("m2", agent, "second", in("talk")))
	read := func(x gateway.Exchange, want string) (rest func()) {
		s, err := k.Follow(t.Context(), x, 0)
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			defer s.Close()
			var got string
			for got != want {
				p, err := s.Next(t.Context())
				if err != nil || p.Kind != gateway.Chunk {
					t.Fatalf("%s: %+v, %v after %q, want %q", x.ID, p, err, got, want)
				}
				if got += p.Text; !strings.HasPrefix(want, got) {
					t.Fatalf("%s: %q, want %q", x.ID, got, want)
				}
			}
		}
	}
	live := []func(){read(first, "first first, "), read(second, "second second, ")}
	for range 4 {
		step <- struct{}{}
	}
	for _, rest := range live {
		rest()
	}
	wantAnswer(t, k.wait(t, second), gateway.Done, "done")
	read(first, "first first, ")()
	read(second, "second second, ")()
}

// A stream ends with the answer though the turn whose chunks it has shown is discarded:
// by the end of the task, or because it waited for a person and cannot go on.
func TestFollowDiscardedTurns(t *testing.T) {
	t.Parallel()
	emit := func(tn *swarm.Turn, text string) { tn.Emit(abi.EmitRequest{Chunk: &text}) }
	waits := func(again behave) behave {
		return func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
			if incoming(tn).Payload.Subject == mail.SubjectActionCompleteBcast {
				emit(tn, "anew ")
				call(tn, mail.ToolSendResponse, map[string]any{"target": "x@acme", "subject": "re", "body": "done"})
				return swarm.Outcome{}
			}
			if p := tn.PriorAttempt(); p != nil && len(p.Answers) > 0 {
				return again(ctx, tn)
			}
			emit(tn, "one ")
			emit(tn, "two ")
			header := tn.Header()
			return swarm.Outcome{Record: &swarm.Record{Header: &header}, Suspended: []swarm.BreakpointCall{{Call: "1", Op: abi.OpMail, ID: tn.CallID("1"), Name: "approve", Args: json.RawMessage(`{}`)}}}
		}
	}
	repeats := func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		for _, text := range []string{"one ", "two "} {
			tn.SetReplay(&swarm.Entry{Answer: json.RawMessage(`{"status":"ok"}`)})
			emit(tn, text)
		}
		tn.SetReplay(nil)
		emit(tn, "three ")
		return respond(tn, "done")
	}
	gone := func(context.Context, *swarm.Turn) swarm.Outcome {
		return swarm.Outcome{Failure: &swarm.Failure{Cause: swarm.CauseModule, Message: "the module is gone"}}
	}
	cancelled := func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		emit(tn, "one ")
		<-ctx.Done()
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "test", Message: "stopped"}}
	}
	for name, c := range map[string]struct {
		calc       behave
		live, read string
	}{
		"the task is cancelled":     {cancelled, "one cancelled", "cancelled"},
		"a turn that goes on":       {waits(repeats), "asked: one two three done", "one two three done"},
		"a turn that cannot go on":  {waits(gone), "asked: one two anew done", "one two anew done"},
		"nothing of it is repeated": {waits(func(_ context.Context, tn *swarm.Turn) swarm.Outcome { return respond(tn, "done") }), "asked: one two done", "one two done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			begin := make(chan struct{})
			k.agents.set("calc", func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
				<-begin
				return c.calc(ctx, tn)
			})
			x := k.mustAsk(t, acme(), ask("m1", "calc", "x"))
			live, err := k.Follow(t.Context(), x, 0)
			if err != nil {
				t.Fatal(err)
			}
			close(begin)
			// A slow reader may be shown the question before chunks of the turn that asks it.
			got := k.readStream(t, live, x, name == "the task is cancelled")
			if withoutQuestion := strings.NewReplacer("asked ", ""); withoutQuestion.Replace(got) != withoutQuestion.Replace(c.live) || len(got) != len(c.live) {
				t.Errorf("live %q, want %q", got, c.live)
			}
			later, err := k.Follow(t.Context(), x, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := k.readStream(t, later, x, false); got != c.read {
				t.Errorf("afterwards %q, want %q", got, c.read)
			}
		})
	}
}

// readStream reads a stream to its end. It answers the call that waits for a person, and
// with cancel cancels the exchange at the first chunk.
func (k *kit) readStream(t *testing.T, s gateway.Stream, x gateway.Exchange, cancel bool) (got string) {
	t.Helper()
	defer s.Close()
	asked := ""
	for chunks := int64(0); ; {
		p, err := s.Next(t.Context())
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		if p.N != chunks {
			t.Errorf("after %q: piece %+v has the number %d, want %d", got, p, p.N, chunks)
		}
		switch p.Kind {
		case gateway.Chunk:
			got += p.Text
			chunks++
			if cancel {
				if err := k.Cancel(t.Context(), acme(), x.ID, ""); err != nil {
					t.Fatal(err)
				}
			}
		case gateway.Asked:
			asked = "asked: " // between any of the chunks
			k.mustAsk(t, acme(), gateway.Ask{
				Kind: gateway.Resumes, ID: "m2", From: "x", Swarm: "hive", Conversation: x.Conversation,
				Results: []gateway.CallResult{{Call: p.Answer.Questions[0].Call, Content: "yes"}},
			})
		case gateway.End:
			return asked + got + cmp.Or(map[gateway.Outcome]string{gateway.Cancelled: "cancelled"}[p.Answer.Outcome], p.Answer.Body)
		}
	}
}

// Binary goes in and out as blobs: the agent reads what came, the caller what it names,
// and nothing else (G-040, G-041).
func TestPartsAreBlobs(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	picture := bytes.Repeat([]byte{0, 1, 2, 255}, 1<<19)
	k.agents.set("calc", func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		var info struct {
			Gateway struct {
				Parts []struct{ Sha256, Type, Name string }
				Kind  string
			}
		}
		_ = json.Unmarshal(incoming(tn).Payload.RoutingInfo, &info)
		id, _ := swarm.ParseBlobID(info.Gateway.Parts[0].Sha256)
		data, err := tn.Blob(ctx, id)
		if err != nil {
			return respond(tn, err.Error())
		}
		slices.Reverse(data)
		out, fault := tn.PutBlob(data)
		if fault != nil {
			return respond(tn, fault.Error())
		}
		return respond(tn, fmt.Sprintf("see [it](blob:%s?type=image/png&name=a%%20b.png) and blob:%s", out, out))
	})
	x := k.mustAsk(t, acme(), ask("m1", "calc", "x", func(a *gateway.Ask) {
		a.Parts, a.Info = []gateway.Part{{Name: "in.png", Type: "image/png", Data: picture}}, map[string]any{"kind": "image"}
	}))
	a := k.wait(t, x)
	if len(a.Parts) != 1 || a.Parts[0].Type != "image/png" || a.Parts[0].Name != "a b.png" {
		t.Fatalf("answer %+v", a)
	}
	data, err := k.Blob(t.Context(), x, a.Parts[0])
	slices.Reverse(data)
	if err != nil || !bytes.Equal(data, picture) {
		t.Errorf("%d bytes came back, %v", len(data), err)
	}
	if _, err := k.Blob(t.Context(), x, gateway.PartRef{Blob: sha256.Sum256(picture)}); !errors.Is(err, gateway.ErrUnknown) {
		t.Errorf("a blob that the answer does not name: %v", err)
	}
}

// A hash opens no blob of another task, though an agent repeats it: who knows a hash need
// not have the bytes.
func TestBlobsOfOtherTasks(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	secret := []byte("alice's picture")
	k.wait(t, k.mustAsk(t, alice(), ask("m1", "boss", "x", func(a *gateway.Ask) {
		a.Parts = []gateway.Part{{Name: "in.png", Type: "image/png", Data: secret}}
	})))
	x := k.mustAsk(t, acme(), ask("m2", "calc", fmt.Sprintf("blob:%x", sha256.Sum256(secret))))
	a := k.wait(t, x)
	if len(a.Parts) != 1 {
		t.Fatalf("answer %+v", a)
	}
	if data, err := k.Blob(t.Context(), x, a.Parts[0]); !errors.Is(err, gateway.ErrUnknown) {
		t.Errorf("read %q, %v", data, err)
	}
}

// post has a user ask hive.
func (k *kit) post(t *testing.T) *swarm.Receipt {
	t.Helper()
	return k.postTraced(t, swarm.Trace{})
}

func (k *kit) postTraced(t *testing.T, trace swarm.Trace) *swarm.Receipt {
	t.Helper()
	r, err := k.swarm.Submit(t.Context(), swarm.Post{
		Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "bob"}, Swarm: "hive", Door: "rest",
		Type: mail.Request, Subject: "q", Body: "go", Trace: trace,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The answer to an outbox message continues the task that sent it, whoever owns it (G-023).
func TestAnswerToAnOutboxMessage(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.agents.set("boss", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		if m := incoming(tn); m.Type == mail.Response {
			call(tn, mail.ToolTaskComplete, map[string]any{"finish_message": m.Payload.Sender.Name + " says " + m.Payload.Body})
			return swarm.Outcome{}
		}
		call(tn, mail.ToolSendRequest, map[string]any{"target": "expert@acme", "subject": "?", "body": "how many?"})
		return swarm.Outcome{}
	})
	r := k.post(t)
	sent := k.next(t, r.Task)
	loads := k.store.n.Load()
	if waits, err := k.Waits(t.Context(), sent); !waits || err != nil {
		t.Errorf("before its answer the request waits: %v, %v", waits, err)
	}
	if n := k.store.n.Load() - loads; n > 0 {
		t.Errorf("the running task was read %d times from the store", n)
	}
	if err := k.Show(t.Context(), sent, gateway.Piece{Kind: gateway.Chunk, Text: "counting"}); err != nil {
		t.Error(err)
	}
	k.mustAsk(t, acme(), gateway.Ask{Kind: gateway.Answers, ID: "a1", Of: &sent, Body: "seven"})
	a, err := k.swarm.Wait(t.Context(), r)
	if err != nil || a.Body != "expert@acme says seven" {
		t.Errorf("answer %q, %v", a.Body, err)
	}
	if again := k.mustAsk(t, acme(), gateway.Ask{Kind: gateway.Answers, ID: "a1", Of: &sent, Body: "seven"}); !again.Duplicate {
		t.Error("after the end of the task its answer is no repeat")
	}
	if waits, err := k.Waits(t.Context(), sent); waits || err != nil {
		t.Errorf("after its answer the request waits: %v, %v", waits, err)
	}
	sent.Task.Task = "none"
	if waits, err := k.Waits(t.Context(), sent); waits || err != nil {
		t.Errorf("the request of no task waits: %v, %v", waits, err)
	}
}

// next is the next message that leaves for a realm.
func (k *kit) next(t *testing.T, task swarm.TaskKey) swarm.Delivery {
	t.Helper()
	for {
		select {
		case box := <-k.out:
			d, ok, err := k.swarm.NextDelivery(t.Context(), box)
			if err != nil {
				t.Fatal(err)
			}
			if ok && d.Task == task {
				return d
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing leaves")
		}
	}
}

// A foreign agent asks about the message that it got, also an agent that is not exposed;
// the response finds the question again, and the answer the message. A realm without the
// right to ask may, and the task does not become brief.
func TestQuestionAboutAnOutboxMessage(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.agents.set("hidden", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		switch m := incoming(tn); {
		case m.Type == mail.Response:
			call(tn, mail.ToolSendResponse, map[string]any{"target": "boss", "subject": "re", "body": m.Payload.Body})
		case m.Payload.Sender.Name == "boss":
			call(tn, mail.ToolSendRequest, map[string]any{"target": "clerk@acme", "subject": "?", "body": "sell"})
		default:
			call(tn, mail.ToolSendResponse, map[string]any{"target": m.Payload.Sender.Name, "subject": "re", "body": "tea"})
		}
		return swarm.Outcome{}
	})
	k.agents.set("boss", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		if m := incoming(tn); m.Type == mail.Response {
			call(tn, mail.ToolTaskComplete, map[string]any{"finish_message": m.Payload.Body})
			return swarm.Outcome{}
		}
		call(tn, mail.ToolSendRequest, map[string]any{"target": "hidden", "subject": "?", "body": "sell"})
		return swarm.Outcome{}
	})
	x := k.mustAsk(t, alice(), ask("m1", "boss", "go"))
	sent := k.next(t, x.Task)
	question := gateway.Ask{
		Kind: gateway.Asks, ID: "8c7b2a4e-0c4b-4f6c-9a57-0f6a3a1d2b3c", Of: &sent, Body: "what?", Reply: true, Note: []byte("foreign task 7"),
	}
	mute := acme()
	mute.May = nil
	k.mustAsk(t, mute, question)
	if snap, err := k.swarm.Task(t.Context(), x.Task); err != nil || snap.Task.Brief {
		t.Errorf("the task is brief: %v, %v", snap.Task.Brief, err)
	}
	if err := k.swarm.MarkDelivered(t.Context(), swarm.OutboxKey{Task: x.Task, Peer: "acme"}, sent.Wrapper.MessageID, ""); err != nil {
		t.Fatal(err)
	}
	reply := k.next(t, x.Task)
	asked, err := k.Asked(t.Context(), acme(), reply)
	if err != nil || string(asked.Note) != "foreign task 7" || reply.Wrapper.Payload.Body != "tea" {
		t.Fatalf("the reply %q is to %+v, %v", reply.Wrapper.Payload.Body, asked, err)
	}
	k.mustAsk(t, acme(), gateway.Ask{Kind: gateway.Answers, ID: "a1", Of: &reply, Answers: sent.Wrapper.Payload.ID, Body: "sold"})
	wantAnswer(t, k.wait(t, x), gateway.Done, "sold")
}

// A caller that sends too much is told to wait, and which limit it is; others go on.
func TestLimitsOfACaller(t *testing.T) {
	t.Parallel()
	busy := func(t *testing.T, k *kit, a gateway.Ask, key string) {
		t.Helper()
		if _, err := k.Ask(t.Context(), acme(), a); !errors.Is(err, gateway.ErrBusy) || !strings.Contains(err.Error(), key) {
			t.Errorf("%v, want %s", err, key)
		}
		k.wait(t, k.mustAsk(t, alice(), ask(a.ID, "boss", "x")))
	}
	t.Run("rate", func(t *testing.T) {
		k := newKit(t, func(o *door.Options) { o.Rate = auth.Rate{Requests: 1, Per: time.Hour} })
		k.wait(t, k.mustAsk(t, acme(), ask("m1", "calc", "x")))
		busy(t, k, ask("m2", "calc", "x"), "[gateways.toy] rate_limit")
		if _, err := k.List(t.Context(), acme(), "", 10); !errors.Is(err, gateway.ErrBusy) {
			t.Errorf("a list: %v", err)
		}
		// What the host has fetched as an answer does not count, what the realm has sent does.
		for _, sent := range []bool{true, false} {
			_, err := k.Ask(t.Context(), acme(), gateway.Ask{Kind: gateway.Answers, ID: "m3", Of: &swarm.Delivery{}, Sent: sent, Body: "x"})
			if err == nil || errors.Is(err, gateway.ErrBusy) != sent {
				t.Errorf("an answer to no message, sent by the realm: %v: %v", sent, err)
			}
		}
	})
	t.Run("asks", func(t *testing.T) {
		k := newKit(t, func(o *door.Options) { o.Asks = 1 })
		stay := make(chan struct{})
		k.agents.set("calc", func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
			<-stay
			return echo(ctx, tn)
		})
		x := k.mustAsk(t, acme(), ask("m1", "calc", "x"))
		busy(t, k, ask("m2", "calc", "x"), "[gateways.toy] asks")
		close(stay)
		k.wait(t, x)
		k.wait(t, k.mustAsk(t, acme(), ask("m3", "calc", "x")))
	})
}

// Everybody of role agent speaks for his realm, whatever his own name is (G-002).
func TestRealmIsTheInstance(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	first, second := acme(), acme()
	second.Principal = auth.Principal{Tenant: swarm.DefaultTenant, Role: auth.Agent, ID: "worker-2", Peer: "acme"}
	k.wait(t, k.mustAsk(t, first, ask("m1", "calc", "x")))
	if x, err := k.Find(t.Context(), second, "m1"); err != nil || x.ID != "m1" {
		t.Errorf("another key of the realm finds %+v, %v", x, err)
	}
}

// A realm speaks for the ids of its table alone (G-001).
func TestSpoofedSender(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(o *door.Options) {
		o.Partner = func(name string) (gateway.Partner, bool) {
			return gateway.Partner{IDs: []string{"acme-*"}}, name == "acme"
		}
	})
	for from, ok := range map[string]bool{"": true, "acme-7": true, "shop-1": false, "boss": false, "acme": false} {
		a := gateway.Ask{Kind: gateway.Asks, ID: "m-" + from, From: from, To: []string{"calc"}, Body: "x"}
		if _, err := k.Ask(t.Context(), acme(), a); errors.Is(err, gateway.ErrDenied) == ok || ok && err != nil {
			t.Errorf("from %q: %v", from, err)
		}
	}
}

// What its sender waits for no longer is refused, before it is stored (G-057).
func TestDeadlineIsOver(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	a := gateway.Ask{Kind: gateway.Asks, ID: "m", To: []string{"calc"}, Body: "x", Deadline: time.Now().Add(-time.Second)}
	if _, err := k.Ask(t.Context(), acme(), a); !errors.Is(err, gateway.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if _, err := k.Find(t.Context(), acme(), "m"); !errors.Is(err, gateway.ErrUnknown) {
		t.Errorf("it was stored: %v", err)
	}
}
