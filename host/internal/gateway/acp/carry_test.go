package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// recorder is a runtime that remembers what comes about messages of ours; the rest is its
// own.
type recorder struct {
	*gatewaytest.Runtime
	mu    sync.Mutex
	asked []gateway.Ask
	fails error // of the next
}

func (o *recorder) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.fails; err != nil {
		o.fails = nil
		return gateway.Exchange{}, err
	}
	if a.Of == nil {
		return o.Runtime.Ask(ctx, c, a)
	}
	for _, before := range o.asked {
		if before.ID == a.ID && before.Digest != a.Digest {
			return gateway.Exchange{}, gateway.ErrConflict
		}
		if before.ID == a.ID {
			return gateway.Exchange{Duplicate: true}, nil
		}
	}
	o.asked = append(o.asked, a)
	return gateway.Exchange{ID: a.ID}, nil
}

// take returns what came since the last call.
func (o *recorder) take() []gateway.Ask {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	return asked
}

// out is a gateway whose partner acme has an agent on HTTP.
type out struct {
	*site
	rt    *recorder
	agent *acptest.Agent
	p     gateway.Partner
	// answer is what the agent answers.
	answer atomic.Pointer[func(acptest.Message) (*acptest.Message, int)]
}

func newOut(t *testing.T) *out {
	t.Helper()
	o := &out{}
	o.site = newSite(t, func(opt *acp.Options) {
		o.rt = &recorder{Runtime: opt.Runtime.(*gatewaytest.Runtime)}
		opt.Runtime = o.rt
	})
	o.agent = acptest.NewAgent(t, func(m acptest.Message) (*acptest.Message, int) { return (*o.answer.Load())(m) })
	o.does(func(acptest.Message) (*acptest.Message, int) { return nil, 0 })
	o.p, _ = o.rt.Partner("acme")
	o.p.URL, o.p.Client, o.p.Timeout, o.p.RetryInDoubt = o.agent.URL, http.DefaultClient, time.Minute, true
	return o
}

func (o *out) does(answer func(acptest.Message) (*acptest.Message, int)) { o.answer.Store(&answer) }

// gets waits until the partner's agent has n messages, and returns them.
func (o *out) gets(t *testing.T, n int) []acptest.Message {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got := o.agent.Got()
		if len(got) >= n {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("the partner's agent has %d messages, want %d", len(got), n)
		}
	}
}

// outgoing is an outbox message of agent boss.
func outgoing(id string, kind mail.Type, to, body string) swarm.Delivery {
	return swarm.Delivery{Conversation: "6f1c0e1a-52f0-4a0b-9d55-0c6f7d0b1a11", Task: swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default"}}, Wrapper: mail.Interswarm{
		MessageID: id, SourceSwarm: "hive", Type: kind, TaskOwner: "user:ann@hive", Timestamp: "2026-01-02T03:04:05.000Z",
		Payload: mail.Payload{
			TaskID: "t", ID: "request-" + id, Subject: "s", Body: body, Sender: mail.Address{Type: mail.Agent, Name: "boss@hive"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: to + "@acme"}},
		},
	}}
}

// TestCarryOnce (A-027, V-A04): an attempt that is made again brings the answer once, and
// does not ask again when it has come meanwhile. A second answer is told, with a flag.
func TestCarryOnce(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	d := outgoing("m1", mail.Request, "agentB", "how many?")
	o.does(func(acptest.Message) (*acptest.Message, int) { return nil, http.StatusInternalServerError })
	if got := o.g.Carry(t.Context(), o.p, d); got.State != gateway.Unanswered {
		t.Errorf("a failing partner: %+v", got)
	}
	o.does(func(m acptest.Message) (*acptest.Message, int) {
		answer := m.Reply("INFORM", "seven")
		return &answer, 0
	})
	o.rt.fails = fmt.Errorf("the store is away")
	if got := o.g.Carry(t.Context(), o.p, d); got.State != gateway.Unanswered {
		t.Errorf("a store that is away: %+v", got)
	}
	for range 2 {
		if got := o.g.Carry(t.Context(), o.p, d); got.State != gateway.Taken {
			t.Errorf("%+v", got)
		}
	}
	asked := o.rt.take()
	if len(asked) != 1 || asked[0].Kind != gateway.Answers || asked[0].Body != "seven" || asked[0].Of.Wrapper.Payload.ID != "request-m1" || asked[0].Sent {
		t.Fatalf("brought %+v", asked)
	}
	taken := acptest.New("INFORM", "agentA", "calc", "x")
	if taken.Header.ID = asked[0].ID; o.sendText(t, taken.Text()).Status != http.StatusBadRequest {
		t.Errorf("a message may have the id %q of an answer, and keep it out", asked[0].ID)
	}
	sent := o.agent.Got()
	if len(sent) != 3 || sent[0] != sent[2] {
		t.Errorf("sent %+v", sent)
	}
	again := sent[0].Reply("RESPONSE", "eight")
	if r := o.send(t, again); r.Status != http.StatusAccepted {
		t.Errorf("a second answer got %d %s", r.Status, r.Text)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Kind != gateway.Tells || !slices.Equal(asked[0].Info["flags"].([]string), []string{"duplicate_answer"}) || !asked[0].Sent {
		t.Errorf("a second answer is %+v", asked)
	}
}

// TestCarryRefused: what another attempt would meet again is refused, the
// foreign agent's own no is its answer.
func TestCarryRefused(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	for n, c := range []struct {
		answer func(acptest.Message) (*acptest.Message, int)
		state  gateway.CarriedState
		reason string
	}{
		{func(acptest.Message) (*acptest.Message, int) { return nil, http.StatusForbidden }, gateway.Refused, "403"},
		{func(acptest.Message) (*acptest.Message, int) { return nil, http.StatusServiceUnavailable }, gateway.Later, "503"},
		{func(acptest.Message) (*acptest.Message, int) { return nil, http.StatusTooManyRequests }, gateway.Later, "429"},
		{func(m acptest.Message) (*acptest.Message, int) {
			m.Header.Version = "9"
			return &m, 0
		}, gateway.Refused, "no message"},
		{func(m acptest.Message) (*acptest.Message, int) {
			m.Body = strings.Repeat("x", acp.MaxMessage)
			return &m, 0
		}, gateway.Refused, "larger than 1048576 bytes; max_body of [gateways.acp] cannot be more"},
	} {
		o.does(c.answer)
		if got := o.g.Carry(t.Context(), o.p, outgoing(fmt.Sprint("r", n), mail.Request, "agentB", "x")); got.State != c.state || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%d: %+v", n, got)
		}
	}
	o.does(func(m acptest.Message) (*acptest.Message, int) {
		answer := m.Reply("ERROR", "no_paper: there is none")
		return &answer, http.StatusBadRequest
	})
	if got := o.g.Carry(t.Context(), o.p, outgoing("no", mail.Request, "agentB", "x")); got.State != gateway.Taken {
		t.Errorf("an ERROR: %+v", got)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Subject != "[NO_PAPER]" || asked[0].Info["error"] != "NO_PAPER" {
		t.Errorf("brought %+v", asked)
	}
	o.does(func(acptest.Message) (*acptest.Message, int) { return nil, 0 })
	o.p.Timeout = time.Millisecond
	if got := o.g.Carry(t.Context(), o.p, outgoing("late", mail.Request, "agentB", "x")); got.State != gateway.Refused || !strings.Contains(got.Reason, "raise timeout in [gateways.acp.partners.acme]") {
		t.Errorf("no answer: %+v", got)
	}
	late := o.agent.Got()[0].Reply("RESPONSE", "at last") // to one that was given up
	if r := o.send(t, late); r.Status != http.StatusNotFound || !strings.Contains(r.Text, late.Header.ReplyTo+`": no question with this id was sent to you, or it waits for no answer any more`) {
		t.Errorf("a late answer got %d %s", r.Status, r.Text)
	}
	if asked := o.rt.take(); len(asked) != 0 {
		t.Errorf("a late answer is %+v", asked)
	}
}

// TestAmbiguousAnswer (D-A5, V-A17): of two questions that wait, an answer without reply_to
// answers none.
func TestAmbiguousAnswer(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	var carried sync.WaitGroup
	for id, kind := range map[string]mail.Type{"m1": mail.Request, "m2": mail.Interrupt} {
		carried.Go(func() {
			if got := o.g.Carry(t.Context(), o.p, outgoing(id, kind, "agentB", "x")); got.State != gateway.Taken {
				t.Errorf("%s: %+v", id, got)
			}
		})
	}
	sent := o.gets(t, 2)
	loose := sent[0].Reply("RESPONSE", "which?")
	loose.Header.ReplyTo = ""
	if r := o.send(t, loose); r.Status != http.StatusAccepted {
		t.Errorf("got %d %s", r.Status, r.Text)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Kind != gateway.Tells || !slices.Equal(asked[0].Info["flags"].([]string), []string{"ambiguous"}) {
		t.Errorf("brought %+v", asked)
	}
	if r := o.send(t, sent[0].Reply("RESPONSE", "one")); r.Status != http.StatusAccepted {
		t.Errorf("got %d %s", r.Status, r.Text)
	}
	loose = sent[1].Reply("RESPONSE", "the other")
	loose.Header.ReplyTo = ""
	if r := o.send(t, loose); r.Status != http.StatusAccepted {
		t.Errorf("got %d %s", r.Status, r.Text)
	}
	carried.Wait()
	if asked := o.rt.take(); len(asked) != 2 || asked[0].Kind != gateway.Answers || asked[1].Kind != gateway.Answers {
		t.Errorf("brought %+v", asked)
	}
}

// TestForeignQuestion: a foreign agent asks about our question, in its conversation: that
// reaches our task, and is answered by a message of its own.
func TestForeignQuestion(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	carried := make(chan gateway.Carried, 1)
	asked := make(chan acptest.Message, 1)
	o.does(func(m acptest.Message) (*acptest.Message, int) {
		asked <- m
		return nil, 0
	})
	go func() { carried <- o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "agentB", "how many?")) }()
	q := <-asked
	back := q.Reply("QUERY", "which colour?")
	back.Header.ReplyTo = ""
	if r := o.send(t, back); r.Status != http.StatusAccepted {
		t.Errorf("got %d %s", r.Status, r.Text)
	}
	if got := o.rt.take(); len(got) != 1 || got[0].Kind != gateway.Asks || got[0].Of.Wrapper.Payload.TaskID != "t" || !got[0].Reply {
		t.Errorf("brought %+v", got)
	}
	o.admit("other-token", "other", "agent*")
	o.Token = "other-token" // another realm under the same names reaches nothing
	if r := o.send(t, q.Reply("RESPONSE", "mine")); r.Status == http.StatusOK {
		t.Errorf("got %d %s", r.Status, r.Text)
	}
	if got := o.rt.take(); len(got) != 0 {
		t.Errorf("another realm brought %+v", got)
	}
	o.Token = "acme-token"
	o.send(t, q.Reply("RESPONSE", "seven"))
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
}

// TestCarryOverSocket: an agent that is connected gets the message there, and
// answers there.
func TestCarryOverSocket(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	other, c := o.dial(t), o.dial(t)
	exchange(t, other, acptest.New("QUERY", "agentC", "calc", "1").Text())
	exchange(t, c, acptest.New("QUERY", "agentB", "calc", "1").Text())
	carried := make(chan gateway.Carried, 1)
	go func() { carried <- o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "agentB", "how many?")) }()
	q, err := c.Read(t.Context())
	if err != nil || q.Header.Receiver != "agentB" || q.Body != "how many?" {
		t.Fatalf("got %+v, %v", q, err)
	}
	if err := c.Send(t.Context(), q.Reply("RESPONSE", "seven").Text()); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = c.Read(t.Context()) }() // reads pings
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
	if len(o.agent.Got()) != 0 {
		t.Error("it went to the address as well")
	}
}

// ownFields is the option of a partner with header fields.
type ownFields map[string]json.RawMessage

func (f ownFields) Raw() map[string]json.RawMessage { return f }

// TestOwnHeaderFields: messages of our agents have the header fields of their
// partner, so that they fit declarations that demand them; without them they are refused.
func TestOwnHeaderFields(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *acp.Options) {
		o.Declarations = declare(t, "conversation_id: String?", "conversation_id: String?, x_token: String")
	})
	p, _ := s.rt.Partner("acme")
	told := func(id string) gateway.Carried {
		return s.g.Carry(t.Context(), p, outgoing(id, mail.Broadcast, "agentB", "news"))
	}
	if got := told("m1"); got.State != gateway.Refused || !strings.Contains(got.Reason, "x_token: is missing") {
		t.Errorf("without it: %+v", got)
	}
	p.Options = map[string]any{"header": ownFields{"x_token": json.RawMessage(`"t"`)}}
	if got := told("m2"); got.State != gateway.Taken {
		t.Errorf("with it: %+v", got)
	}
	if r, err := s.Get(s.URL + "?receiver=agentB"); err != nil || !strings.Contains(r.Text, `"x_token":"t"`) || !strings.Contains(r.Text, `"x_hops":0`) {
		t.Errorf("the mailbox has %s, %v", r.Text, err)
	}
}

// TestCarryQuery (A-023, G-060): a request that the verb query has written is a QUERY, in
// each attempt, and an INFORM answers it. Another request of the same agent is a REQUEST.
func TestCarryQuery(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	d := outgoing("q1", mail.Request, "agentB", "how many?")
	d.Wrapper.Payload.RoutingInfo = json.RawMessage(`{"remote_swarm":"acme","gateway":{"protocol":"acp","type":"query"}}`)
	o.does(func(acptest.Message) (*acptest.Message, int) { return nil, http.StatusServiceUnavailable })
	if got := o.g.Carry(t.Context(), o.p, d); got.State != gateway.Later {
		t.Errorf("a partner that is busy: %+v", got)
	}
	o.does(func(m acptest.Message) (*acptest.Message, int) {
		answer := m.Reply("INFORM", "seven")
		return &answer, 0
	})
	plain := outgoing("m1", mail.Request, "agentB", "send one")
	plain.Wrapper.Payload.RoutingInfo = json.RawMessage(`{"remote_swarm":"acme"}`)
	for _, d := range []swarm.Delivery{d, plain} {
		if got := o.g.Carry(t.Context(), o.p, d); got.State != gateway.Taken {
			t.Errorf("%s: %+v", d.Wrapper.MessageID, got)
		}
	}
	sent := o.agent.Got()
	if len(sent) != 3 || sent[0] != sent[1] || sent[1].Header.Type != "QUERY" || sent[2].Header.Type != "REQUEST" {
		t.Errorf("sent %+v", sent)
	}
	if asked := o.rt.take(); len(asked) != 2 || asked[0].Kind != gateway.Answers || asked[0].Body != "seven" {
		t.Errorf("brought %+v", asked)
	}
}
