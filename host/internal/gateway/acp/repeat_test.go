package acp_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// TestRepeatAfterOurQuestion (A-006, V-A13): a repeat of a request is the same exchange, though an
// agent of ours has asked back in its conversation meanwhile; another request there goes to
// the agent that it names.
func TestRepeatAfterOurQuestion(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	seen := o.exposeAsks("calc")
	request := acptest.New("REQUEST", "agentB", "calc", "add")
	request.Header.ConversationID = "X"
	if r := o.send(t, request); r.Status != http.StatusOK {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	<-seen
	question := outgoing("m1", mail.Request, "agentB", "which numbers?")
	question.Wrapper.Payload.ID = request.Header.ID
	carried := make(chan gateway.Carried, 1)
	go func() { carried <- o.g.Carry(t.Context(), o.p, question) }()
	o.gets(t, 1)
	if r := o.send(t, request); r.Status != http.StatusOK || len(seen) != 0 {
		t.Errorf("the repeat: %d %s, %d more turns", r.Status, r.Text, len(seen))
	}
	next := acptest.New("REQUEST", "agentB", "calc", "and subtract")
	next.Header.ConversationID = "X"
	if r := o.send(t, next); r.Status != http.StatusOK {
		t.Errorf("another request: %d %s", r.Status, r.Text)
	}
	if asked := o.rt.take(); len(asked) != 0 {
		t.Errorf("brought to the one who asked: %+v", asked)
	}
	o.send(t, o.agent.Got()[0].Reply("RESPONSE", "1 and 2"))
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
}

// TestRepeatedAnswer: an answer that is sent again, because its 202 was lost, is taken as
// that, and answers no later question.
func TestRepeatedAnswer(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	ask := func(id string) (acptest.Message, <-chan gateway.Carried) {
		before := len(o.agent.Got())
		carried := make(chan gateway.Carried, 1)
		go func() { carried <- o.g.Carry(t.Context(), o.p, outgoing(id, mail.Request, "agentB", id)) }()
		return o.gets(t, before+1)[before], carried
	}
	one, first := ask("m1")
	answer := one.Reply("RESPONSE", "one")
	loose := one.Reply("RESPONSE", "of a conversation")
	loose.Header.ReplyTo = ""
	o.send(t, answer)
	if got := <-first; got.State != gateway.Taken {
		t.Fatalf("%+v", got)
	}
	two, second := ask("m2")
	o.send(t, loose)
	if got := <-second; got.State != gateway.Taken {
		t.Fatalf("%+v", got)
	}
	_, third := ask("m3")
	if asked := o.rt.take(); len(asked) != 2 {
		t.Errorf("brought %+v", asked)
	}
	for _, again := range []acptest.Message{answer, loose} {
		if r := o.send(t, again); r.Status != http.StatusAccepted {
			t.Errorf("the repeat: %d %s", r.Status, r.Text)
		}
	}
	if asked := o.rt.take(); len(asked) != 0 {
		t.Errorf("repeats brought %+v", asked)
	}
	o.send(t, acptest.Message{Header: acptest.Header{
		Version: "1.0", Sender: "agentB", Receiver: "boss", Type: "RESPONSE", ID: "third", Timestamp: two.Header.Timestamp,
		ContentType: "text/plain", ConversationID: two.Header.ConversationID,
	}, Body: "three"})
	if got := <-third; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
}

// TestUnsentIsLater: what was not sent is sent later, whatever failed, and the time for its
// answer has not begun.
func TestUnsentIsLater(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	answered := func(m acptest.Message) (*acptest.Message, int) {
		r := m.Reply("RESPONSE", "yes")
		return &r, 0
	}
	o.p.Timeout = 30 * time.Second
	url := o.p.URL
	o.p.URL = "http://127.0.0.1:1/"
	question := outgoing("m1", mail.Request, "agentB", "x")
	if got := o.g.Carry(t.Context(), o.p, question); got.State != gateway.Later {
		t.Errorf("nobody there: %+v", got)
	}
	o.rt.FailNext("Find", errors.New("the store fails for a moment"))
	if got := o.g.Carry(t.Context(), o.p, question); got.State != gateway.Later {
		t.Errorf("a store that fails: %+v", got)
	}
	o.p.URL = url
	o.does(answered)
	if got := o.g.Carry(t.Context(), o.p, question); got.State != gateway.Taken {
		t.Errorf("at last: %+v", got)
	}
}

// TestPollGoesOn: a partner that fails for a moment while it is asked at its Location, or has
// progress there, is asked there again, at a new Location once it has told one, and the question is not
// sent twice.
func TestPollGoesOn(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	posts, looks := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			posts++
			text, err := io.ReadAll(r.Body)
			m, bad := acptest.Parse(text)
			if err != nil || bad != nil {
				t.Error(err, bad)
			}
			w.Header().Set("Location", "/at/"+m.Header.ID)
			w.WriteHeader(http.StatusAccepted)
		case looks == 0:
			looks++
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasPrefix(r.URL.Path, "/at/"):
			w.Header().Set("Location", "../next/"+strings.TrimPrefix(r.URL.Path, "/at/"))
			w.WriteHeader(http.StatusAccepted)
		default:
			m := acptest.New("RESPONSE", "agentB", "boss", "found")
			if looks++; looks <= 3 {
				m = acptest.New("INFORM", "agentB", "boss", "half")
				m.Header.ID, m.Header.Progress = "progress", "partial"
			}
			m.Header.ReplyTo = strings.TrimPrefix(r.URL.Path, "/next/")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, m.Text())
		}
	}))
	defer server.Close()
	o.p.URL = server.URL
	if got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "agentB", "x")); got.State != gateway.Taken {
		t.Fatalf("%+v", got)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Body != "found" || posts != 1 {
		t.Errorf("after %d posts: %+v", posts, asked)
	}
	if shown := o.rt.Shown(); len(shown) != 1 {
		t.Errorf("progress that was there at two looks is shown as %+v", shown)
	}
}

// TestNothingAtLocation: the reason of a question whose answer is not where the partner has told has
// the place, and what was there.
func TestNothingAtLocation(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{http.StatusGone: "/at/1\": the partner answers 410", http.StatusBadGateway: "partners.acme]; the answer at the Location"} {
		o := newOut(t)
		looked := make(chan struct{}, 100)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.Header().Set("Location", "/at/1")
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.WriteHeader(code)
			looked <- struct{}{}
		}))
		defer server.Close()
		o.p.URL, o.p.Timeout = server.URL, 900*time.Millisecond
		if got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "agentB", "x")); got.State != gateway.Refused || len(looked) == 1 && !strings.Contains(got.Reason, want) {
			t.Errorf("%d: %+v", code, got)
		}
	}
}

// TestUntypedAnswer: a message in the reply to a question is the answer, also from a server that
// writes another Content-Type, or none. What is JSON by its type and no message is refused.
func TestUntypedAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, text string
		want       gateway.CarriedState
	}{
		"as text":         {kind: "text/plain; charset=utf-8", want: gateway.Taken},
		"of no type":      {want: gateway.Taken},
		"JSON":            {kind: "application/json", want: gateway.Taken},
		"JSON of another": {kind: "application/json", text: `{"answer":"yes"}`, want: gateway.Refused},
	} {
		o := newOut(t)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			m, err := acptest.Parse(text)
			if err != nil {
				t.Error(err)
			}
			w.Header()["Content-Type"] = nil // else the server guesses one
			if c.kind != "" {
				w.Header().Set("Content-Type", c.kind)
			}
			_, _ = io.WriteString(w, cmp.Or(c.text, m.Reply("RESPONSE", "yes").Text()))
		}))
		defer server.Close()
		o.p.URL = server.URL
		got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "agentB", "x"))
		asked := o.rt.take()
		if got.State != c.want || (len(asked) == 1 && asked[0].Body == "yes") != (c.want == gateway.Taken) {
			t.Errorf("%s: %+v, %+v", name, got, asked)
		}
	}
}

// TestMailboxOfOthers: what nobody could fetch is refused, and those who wait for messages
// leave when the host stops.
func TestMailboxOfOthers(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.p.URL, o.p.Client = "", nil
	if got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Broadcast, "somebody", "x")); got.State != gateway.Refused || !strings.Contains(got.Reason, "add it to ids in [gateways.acp.partners.acme]") {
		t.Errorf("%+v", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- o.g.Run(ctx) }()
	read := make(chan int, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.server.URL+"/acp/v1/messages?receiver=agentB&wait=3600", http.NoBody)
		if err != nil {
			t.Error(err)
		}
		r.Header.Set("Authorization", "Bearer acme-token")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			read <- 0
			return
		}
		_ = resp.Body.Close()
		read <- resp.StatusCode
	}()
	stop()
	if code := <-read; code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	<-ran
}

// TestRepeatedInform (D-A5): what a foreign agent has told answers no question that was
// asked since, though it is repeated and names none: neither in a conversation of ours nor
// in one that the foreign agent began.
func TestRepeatedInform(t *testing.T) {
	t.Parallel()
	for _, began := range []string{"ours", "theirs"} {
		o := newOut(t)
		seen := o.exposeAsks("calc")
		question := func(id string) swarm.Delivery { return outgoing(id, mail.Request, "agentB", id) }
		if began == "theirs" {
			request := acptest.New("REQUEST", "agentB", "calc", "add")
			request.Header.ConversationID = question("").Conversation
			if r := o.send(t, request); r.Status != http.StatusOK {
				t.Fatalf("got %d %s", r.Status, r.Text)
			}
			<-seen
			question = func(id string) swarm.Delivery {
				d := outgoing(id, mail.Request, "agentB", id)
				d.Wrapper.Payload.ID = request.Header.ID
				return d
			}
		} else {
			o.does(func(m acptest.Message) (*acptest.Message, int) {
				answer := m.Reply("RESPONSE", "yes")
				return &answer, 0
			})
			if got := o.g.Carry(t.Context(), o.p, question("m0")); got.State != gateway.Taken {
				t.Fatalf("%s: %+v", began, got)
			}
			o.does(func(acptest.Message) (*acptest.Message, int) { return nil, 0 })
			o.rt.take()
		}
		news := acptest.New("INFORM", "agentB", "calc", "news")
		news.Header.ConversationID = question("").Conversation
		if r := o.send(t, news); r.Status != http.StatusAccepted {
			t.Fatalf("%s: %d %s", began, r.Status, r.Text)
		}
		brought := len(o.rt.take())
		if began == "theirs" {
			<-seen // a 202 does not wait for the turn
			brought++
		}
		if brought != 1 {
			t.Errorf("%s: brought %d times", began, brought)
		}
		before := len(o.agent.Got())
		carried := make(chan gateway.Carried, 1)
		go func() { carried <- o.g.Carry(t.Context(), o.p, question("m1")) }()
		o.gets(t, before+1)
		if r := o.send(t, news); r.Status != http.StatusAccepted {
			t.Errorf("%s: the repeat got %d %s", began, r.Status, r.Text)
		}
		for _, a := range o.rt.take() {
			if a.Kind == gateway.Answers {
				t.Errorf("%s: it answers the question: %+v", began, a)
			}
		}
		o.send(t, o.agent.Got()[before].Reply("RESPONSE", "seven"))
		if got := <-carried; got.State != gateway.Taken {
			t.Errorf("%s: %+v", began, got)
		}
		if asked := o.rt.take(); len(asked) != 1 || asked[0].Body != "seven" {
			t.Errorf("%s: brought %+v", began, asked)
		}
	}
}
