package contract

import (
	"context"
	"slices"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// askIn: an ask has one answer, and the same state when it is looked at.
func (s *suite) askIn(t *testing.T) {
	s.roles(t, "01", func(t *testing.T, c caller) {
		cl := s.dial(t, c.token)
		m := Message{ID: id(t, "1"), To: "boss", Text: hosttest.Script(finish("four"))}
		wantText(t, send(t, cl, m), nil, "four")
		got, err := cl.Look(t.Context(), m)
		wantText(t, got, err, "four")
	})
}

// tellIn: a tell is handled, and nothing is owed for it.
func (s *suite) tellIn(t *testing.T) {
	s.roles(t, "03", func(t *testing.T, c caller) {
		path := "/tell/" + id(t, "")
		m := Message{ID: id(t, "1"), Kind: Tell, To: "boss", Thread: id(t, "thread"), Text: hosttest.Script(s.web.get(path), finish("heard"))}
		send(t, s.dial(t, c.token), m)
		until(t, "the agent handles it", s.web.channel(s.web.over, path))
	})
	t.Run("without the right", func(t *testing.T) {
		s.part(t, "03/right", func() {
			_, err := s.dial(t, dimToken).Send(t.Context(), Message{ID: id(t, "1"), Kind: Tell, To: "math", Text: "hello"})
			wantRefused(t, err, Denied)
		})
	})
}

// answerWithoutTargets: an exposed agent without comm_targets and without the right to
// complete answers the realm that asked it.
func (s *suite) answerWithoutTargets(t *testing.T) {
	s.part(t, "05/realm", func() {
		got := send(t, s.dial(t, depotToken), Message{ID: id(t, "1"), To: "math", Text: "2+2"})
		wantText(t, got, nil, "echo: 2+2")
	})
}

// askBack: what the agent asks is shown to the caller, and the answer reaches the same
// task: from a realm as mail, from anybody as the result of a call that waits for a person.
func (s *suite) askBack(t *testing.T) {
	t.Run("mail", func(t *testing.T) {
		s.part(t, "06/mail", func() {
			if s.p.Self != "" {
				s.answerElsewhere(t)
				return
			}
			s.answerQuestion(t, depotToken, request("depot@depot", "red or blue"), "red or blue", " red")
		})
	})
	s.roles(t, "06", func(t *testing.T, c caller) {
		s.answerQuestion(t, c.token, confirmScript, "confirm", "confirmed: red")
	})
}

// confirmScript asks a person.
var confirmScript = hosttest.Script(hosttest.Step{"confirm", hosttest.Args{}}, finish("confirmed: {{0}}"))

// answerQuestion sends a script that asks, answers, and wants the end of the text.
func (s *suite) answerQuestion(t *testing.T, token, script, question, want string) {
	t.Helper()
	cl := s.dial(t, token)
	m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: script}
	asked := send(t, cl, m)
	if asked.Status != Asks || len(asked.Questions) != 1 || !strings.Contains(asked.Questions[0].Text, question) {
		t.Fatalf("got %+v, want the question %q", asked, question)
	}
	if asked.Thread != "" {
		m.Thread = asked.Thread
	}
	reply := Message{ID: id(t, "2"), Kind: Answer, To: "boss", Thread: m.Thread, On: m.ID, Question: asked.Questions[0], Text: "red"}
	if got, err := cl.Send(t.Context(), reply); err != nil || got.Status != Done || !strings.HasSuffix(got.Text, want) {
		t.Fatalf("got %s %q, %v; want …%q", got.Status, got.Text, err, want)
	}
	if got, err := cl.Look(t.Context(), m); err != nil || got.Status != Done || !strings.HasSuffix(got.Text, want) {
		t.Errorf("the first message has %s %q, %v", got.Status, got.Text, err)
	}
}

// answerElsewhere sends a script that asks its sender, whose agent answers at its own address
// while the sender waits.
func (s *suite) answerElsewhere(t *testing.T) {
	t.Helper()
	to, text := s.p.Self+"@depot", id(t, "red or blue?")
	s.foreign.on(text, func(context.Context, Message, func(Piece)) (State, error) {
		return State{Status: Done, Text: "red"}, nil
	})
	m := Message{ID: id(t, "1"), From: s.p.Self, To: "boss", Thread: id(t, "thread"), Text: request(to, text)}
	if got := send(t, s.dial(t, depotToken), m); got.Status != Done || !strings.HasSuffix(got.Text, " red") {
		t.Errorf("got %+v, want … red", got)
	}
	if asked := s.foreign.got(text); len(asked) != 1 || asked[0].To != s.p.Self || asked[0].Thread != m.Thread {
		t.Errorf("it is asked %+v, want one question to %s in %s", asked, s.p.Self, m.Thread)
	}
}

// put and get keep a value in the task.
func put(value string) string {
	return hosttest.Script(hosttest.Step{"kv.put", hosttest.Args{"key": "k", "value": value, "scope": "task"}}, finish("kept"))
}

var get = hosttest.Script(hosttest.Step{"kv.get", hosttest.Args{"key": "k", "scope": "task"}}, finish("has {{0}}"))

// nothing is what get answers in a task without a value.
const nothing = `has ERROR NOT_FOUND: there is no key "k" in the scope task`

// continueThread: a second message in a conversation continues its task, though the task
// has ended: the agent has its history and its values.
func (s *suite) continueThread(t *testing.T) {
	s.roles(t, "07", func(t *testing.T, c caller) {
		cl := s.dial(t, c.token)
		first := send(t, cl, Message{ID: id(t, "1"), To: "boss", Text: put("red")})
		wantText(t, first, nil, "kept")
		if first.Thread == "" {
			t.Fatal("the answer names no conversation")
		}
		wantText(t, send(t, cl, Message{ID: id(t, "2"), To: "boss", Thread: first.Thread, Text: get}), nil, "has red")
		history := hosttest.Script(hosttest.Step{"history", hosttest.Args{"after": 0, "limit": 100}}, finish("{{0}}"))
		got := send(t, cl, Message{ID: id(t, "3"), To: "boss", Thread: first.Thread, Text: history})
		if n := strings.Count(got.Text, `"kind":"in"`); n < 3 || !strings.Contains(got.Text, "red") {
			t.Errorf("the agent remembers %d messages: %s", n, got.Text)
		}
	})
}

// twoRealms: a conversation id that two realms use is two tasks, which share nothing.
func (s *suite) twoRealms(t *testing.T) {
	one, other := s.token(), s.otherToken()
	thread := s.begin(t, one, "red")
	wantText(t, send(t, s.dial(t, other), Message{ID: id(t, "1"), To: "boss", Thread: thread, Text: get}), nil, nothing)
	wantText(t, send(t, s.dial(t, one), Message{ID: id(t, "1"), To: "boss", Thread: thread, Text: get}), nil, "has red")
}

// begin begins a conversation and keeps a value in it.
func (s *suite) begin(t *testing.T, token, value string) (thread string) {
	t.Helper()
	got := send(t, s.dial(t, token), Message{ID: id(t, "begin"), To: "boss", Thread: id(t, "thread"), Text: put(value)})
	wantText(t, got, nil, "kept")
	return got.Thread
}

// twoTenants: the same for tenants; what one of them has is gone when it is erased, and
// the other's is not.
func (s *suite) twoTenants(t *testing.T) {
	const planted = "planted-in-acme-0123456789"
	one, other := annToken, aliceToken
	if s.p.Realms {
		one, other = farToken, depotToken
	}
	thread := s.begin(t, one, planted)
	for _, token := range []string{other, aliceToken} {
		if token == aliceToken && !s.p.Users {
			continue
		}
		wantText(t, send(t, s.dial(t, token), Message{ID: id(t, token[9:12]), To: "boss", Thread: thread, Text: get}), nil, nothing)
	}
	wantText(t, send(t, s.dial(t, other), Message{ID: id(t, "keep"), To: "boss", Thread: thread, Text: put("blue")}), nil, "kept")
	if err := s.as(t, operatorToken).EraseTenant(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.dial(t, one).Look(t.Context(), Message{ID: id(t, "begin"), To: "boss", Thread: thread}); err == nil {
		t.Errorf("after the erasure the message has %+v", got)
	}
	wantText(t, send(t, s.dial(t, other), Message{ID: id(t, "kept"), To: "boss", Thread: thread, Text: get}), nil, "has blue")
	if strings.Contains(string(s.site.Files(t)), planted) {
		t.Error("a file has what the tenant kept")
	}
}

// as returns a client of the host's own interface.
func (s *suite) as(t *testing.T, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: s.site.URL(), Token: token, TLS: client.TLS{CA: s.p.Cert}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// unknownAgents: an agent that does not exist, one that is not exposed and one that the
// caller may not see are refused with the same bytes, after the same work: no caller learns
// from the time that one of them is there.
func (s *suite) unknownAgents(t *testing.T) {
	refusal := func(t *testing.T, token, name string) string {
		t.Helper()
		_, err := s.dial(t, token).Send(t.Context(), Message{ID: id(t, "1"), To: name, Text: "hello"})
		return strings.ReplaceAll(wantRefused(t, err, Unknown).Text, name, "NAME")
	}
	s.roles(t, "10", func(t *testing.T, c caller) {
		if a, b := refusal(t, c.token, "nobody"), refusal(t, c.token, "hidden"); a != b {
			t.Errorf("%q and %q", a, b)
		}
	})
	t.Run("of a partner's list", func(t *testing.T) {
		s.part(t, "10/partner", func() {
			if a, b := refusal(t, dimToken, "nobody"), refusal(t, dimToken, "boss"); a != b {
				t.Errorf("%q and %q", a, b)
			}
		})
	})
	t.Run("the same work", func(t *testing.T) {
		s.part(t, "10/work", func() { s.sameWork(t, refusal) })
	})
	t.Run("messages of others", func(t *testing.T) {
		s.part(t, "10/messages", func() { s.othersMessages(t) })
	})
}

// sameWork: the gateway does the same for an agent that is not there as for one that the caller does not
// see.
func (s *suite) sameWork(t *testing.T, refusal func(t *testing.T, token, name string) string) {
	t.Helper()
	for who, hidden := range map[string][]string{"dim": {"hidden", "boss"}, "una": {"hidden"}} {
		token := map[string]string{"dim": dimToken, "una": unaToken}[who]
		if who == "dim" && !s.p.Realms || who == "una" && !s.p.Users {
			continue
		}
		work := func(name string) []string {
			s.witness.forget(who)
			refusal(t, token, name)
			return s.witness.of(who)
		}
		missing := work("nobody")
		for _, name := range hidden {
			if got := work(name); len(got) == 0 || !slices.Equal(got, missing) {
				t.Errorf("%s: for %s the gateway calls %q, for no agent %q", who, name, got, missing)
			}
		}
	}
}

// othersMessages: a message of another caller is refused as one that was never sent.
func (s *suite) othersMessages(t *testing.T) {
	t.Helper()
	mine := Message{ID: id(t, "1"), To: "boss", Text: hosttest.Script(finish("mine"))}
	one, other := s.token(), s.otherToken()
	wantText(t, send(t, s.dial(t, one), mine), nil, "mine")
	_, foreign := s.dial(t, other).Look(t.Context(), mine)
	never := mine
	never.ID = id(t, "0")
	_, missing := s.dial(t, other).Look(t.Context(), never)
	a, b := wantRefused(t, foreign, Unknown).Text, wantRefused(t, missing, Unknown).Text
	if strings.ReplaceAll(a, mine.ID, "ID") != strings.ReplaceAll(b, never.ID, "ID") {
		t.Errorf("%q and %q", a, b)
	}
}

// repeat: the same bytes have the same answer, and one turn.
func (s *suite) repeat(t *testing.T) {
	s.roles(t, "11", func(t *testing.T, c caller) {
		cl, path := s.dial(t, c.token), "/repeat/"+id(t, "")
		m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: hosttest.Script(s.web.get(path), hosttest.Step{"random", hosttest.Args{}}, finish("{{1}}"))}
		first := send(t, cl, m)
		for range 2 {
			if again := send(t, cl, m); again.Raw != first.Raw || again.Status != Done {
				t.Errorf("again %s, not %s", again.Raw, first.Raw)
			}
		}
		if again := send(t, s.dial(t, c.token), m); again.Text != first.Text {
			t.Errorf("on another connection %q, not %q", again.Text, first.Text)
		}
		if n := s.web.count(path); n != 1 {
			t.Errorf("%d turns", n)
		}
	})
}

// conflict: other bytes under a used id are refused, and run no turn.
func (s *suite) conflict(t *testing.T) {
	s.roles(t, "12", func(t *testing.T, c caller) {
		cl, path := s.dial(t, c.token), "/conflict/"+id(t, "")
		m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: hosttest.Script(finish("first"))}
		wantText(t, send(t, cl, m), nil, "first")
		other := m
		other.Text = hosttest.Script(s.web.get(path), finish("second"))
		_, err := cl.Send(t.Context(), other)
		wantRefused(t, err, Conflict, Invalid)
		wantText(t, send(t, cl, m), nil, "first")
		if n := s.web.count(path); n != 0 {
			t.Errorf("%d turns", n)
		}
	})
}

// spoofedSender: a realm speaks for the ids of its table alone.
func (s *suite) spoofedSender(t *testing.T) {
	cl := s.dial(t, depotToken)
	wantText(t, send(t, cl, Message{ID: id(t, "own"), From: "depot-7", To: "math", Text: "x"}), nil, "echo: x")
	for _, from := range []string{"shop-1", "boss", "system", "depot"} {
		_, err := cl.Send(t.Context(), Message{ID: id(t, from), From: from, To: "math", Text: "x"})
		wantRefused(t, err, Denied, Unsaid)
	}
}
