package amp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// recorder is a runtime that remembers what answers messages of ours.
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
	o.asked = append(o.asked, a)
	return gateway.Exchange{ID: a.ID}, nil
}

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
	rt *recorder
	p  gateway.Partner
	// handler is what the agent does with a request.
	handler atomic.Pointer[http.HandlerFunc]
	mu      sync.Mutex
	got     []string // the texts that came
}

func newOut(t *testing.T, changes ...func(*amp.Options)) *out {
	t.Helper()
	o := &out{}
	o.site = newSite(t, append([]func(*amp.Options){func(opt *amp.Options) {
		o.rt = &recorder{Runtime: opt.Runtime.(*gatewaytest.Runtime)}
		opt.Runtime = o.rt
	}}, changes...)...)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		o.mu.Lock()
		o.got = append(o.got, string(text))
		o.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		(*o.handler.Load())(w, r)
	}))
	t.Cleanup(agent.Close)
	o.p, _ = o.rt.Partner("acme")
	o.p.URL, o.p.Client, o.p.Timeout = agent.URL+"/invoke", agent.Client(), time.Minute
	o.rt.AddPartner(o.p)
	return o
}

func (o *out) does(handler http.HandlerFunc) { o.handler.Store(&handler) }

// replies lets the agent answer with a message, made from the one that came.
func (o *out) replies(status int, answer func(amptest.Message) amptest.Message) {
	o.does(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, err := amptest.Parse(text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer(m).Text())
	})
}

func (o *out) came() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.got...)
}

// outgoing is an outbox message of agent boss.
func outgoing(id string, kind mail.Type, body string) swarm.Delivery {
	return swarm.Delivery{
		Conversation: "6f1c0e1a-52f0-4a0b-9d55-0c6f7d0b1a11", Hops: 1,
		Task: swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default"}}, Wrapper: mail.Interswarm{
			MessageID: id, SourceSwarm: "hive", Type: kind, TaskOwner: "user:ann@hive", Timestamp: "2026-01-02T03:04:05.000Z",
			Payload: mail.Payload{
				TaskID: "t", ID: "request-" + id, Subject: "s", Body: body, Sender: mail.Address{Type: mail.Agent, Name: "boss@hive"},
				Recipients: []mail.Address{{Type: mail.Agent, Name: "agent-1@acme"}},
			},
		},
	}
}

// TestCarry (M-007, M-025, M-091, D-M3, D-M6, D-M7, G-052): a question of ours is a request with a
// stable id, and whatever the partner answers reaches the agent that asked as it is meant.
func TestCarry(t *testing.T) {
	t.Parallel()
	response := func(payload amptest.Object) func(amptest.Message) amptest.Message {
		return func(m amptest.Message) amptest.Message { return m.Reply("response", payload) }
	}
	for name, c := range map[string]struct {
		status        int
		answer        func(amptest.Message) amptest.Message
		state         gateway.CarriedState
		subject, body string // of the answer; body is in the reason of what is refused
	}{
		"a text":      {200, response(amptest.Result(amptest.Object{"text": "four"})), gateway.Taken, "", "four"},
		"a bare text": {200, response(amptest.Result("four")), gateway.Taken, "", "four"},
		"an object":   {200, response(amptest.Result(amptest.Object{"n": 4, "text": "x"})), gateway.Taken, "", `{"n":4,"text":"x"}`},
		"a failure":   {200, response(amptest.Object{"status": "failed", "metadata": amptest.Object{"message": "no paper"}}), gateway.Taken, "[FAILED]", "no paper"},
		"a part":      {200, response(amptest.Object{"status": "partial", "result": "half"}), gateway.Taken, "[PARTIAL]", "half"},
		"an error": {404, func(m amptest.Message) amptest.Message {
			return m.Reply("error", amptest.Error("AGENT_NOT_FOUND", "who?"))
		}, gateway.Taken, "[AGENT_NOT_FOUND]", "who?"},
		"its time-out": {504, func(m amptest.Message) amptest.Message { return m.Reply("error", amptest.Error("TIMEOUT", "late")) }, gateway.Taken, "[TIMEOUT]", "late"},
		"an odd code":  {400, func(m amptest.Message) amptest.Message { return m.Reply("error", amptest.Error("a b]", "odd")) }, gateway.Taken, "[ERROR]", "odd"},
		"busy": {429, func(m amptest.Message) amptest.Message {
			return m.Reply("error", amptest.Error("RATE_LIMIT_EXCEEDED", ""))
		}, gateway.Later, "", ""},
		"no resources": {503, func(m amptest.Message) amptest.Message {
			return m.Reply("error", amptest.Error("INSUFFICIENT_RESOURCES", ""))
		}, gateway.Later, "", ""},
		"a fault": {500, func(m amptest.Message) amptest.Message {
			return m.Reply("error", amptest.Error("INSUFFICIENT_RESOURCES", ""))
		}, gateway.Unanswered, "", ""},
		"another's answer": {200, func(m amptest.Message) amptest.Message {
			m.Message.ID = "other"
			return m.Reply("response", amptest.Result("x"))
		}, gateway.Refused, "", ""},
		"a request back": {200, func(m amptest.Message) amptest.Message { return m.Reply("request", amptest.Object{}) }, gateway.Refused, "", ""},
		"a large answer": {200, response(amptest.Result(strings.Repeat("x", 1<<20))), gateway.Refused, "", "larger than max_body of [gateways.amp]"},
		"no message":     {200, func(m amptest.Message) amptest.Message { return amptest.Message{Protocol: "no"} }, gateway.Refused, "", ""},
		"not let in":     {401, func(m amptest.Message) amptest.Message { return amptest.Message{Protocol: "no"} }, gateway.Refused, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOut(t)
			o.replies(c.status, c.answer)
			got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "2+2"))
			asked := o.rt.take()
			var code any // marks what is no result
			if c.subject != "" && c.subject != "[PARTIAL]" {
				code = strings.Trim(c.subject, "[]")
			}
			switch {
			case got.State != c.state || c.state != gateway.Taken && !strings.Contains(got.Reason, c.body):
				t.Fatalf("carried %+v", got)
			case c.state != gateway.Taken && len(asked) != 0:
				t.Errorf("delivered %+v", asked)
			case c.state == gateway.Taken && (len(asked) != 1 || asked[0].Kind != gateway.Answers || asked[0].Subject != c.subject || asked[0].Body != c.body || asked[0].Info["error"] != code || asked[0].Of.Wrapper.MessageID != "m1"):
				t.Errorf("delivered %+v", asked)
			}
			for _, text := range o.came() {
				m, err := amptest.Parse([]byte(text))
				b := m.Message
				if err != nil || b.ID != "m1" || m.Header("correlation_id") != "m1" || b.Destination.AgentID != "agent-1" || b.Destination.Capability != "mail.message" ||
					b.Source.SessionID == "" || b.Headers["timeout_ms"] != 60000.0 || !strings.Contains(text, `"hops":1`) || !strings.Contains(text, `"body":"2+2"`) {
					t.Errorf("sent %s, %v", text, err)
				}
			}
		})
	}
}

// TestCarryOthers (M-038): what our agents tell is an event; a call in JSON is a request for
// its capability, an interrupt is urgent; what the protocol has no word for is left out.
func TestCarryOthers(t *testing.T) {
	t.Parallel()
	o := newOut(t, func(opt *amp.Options) { opt.Token = message.AIP })
	o.replies(200, func(m amptest.Message) amptest.Message { return m.Reply("response", amptest.Result("done")) })
	for _, d := range []swarm.Delivery{
		outgoing("m1", mail.Broadcast, "by the way"), outgoing("m2", mail.Request, `{"capability":"translation","parameters":{"text":"hi"}}`), outgoing("m3", mail.Interrupt, "stop"),
	} {
		if got := o.g.Carry(t.Context(), o.p, d); got.State != gateway.Taken {
			t.Fatalf("%s: %+v", d.Wrapper.MessageID, got)
		}
	}
	came := o.came()
	for i, want := range []string{`"event_type":"mail.message"`, `"capability":"translation","parameters":{"text":"hi"}`, `"priority":9`} {
		if !strings.Contains(came[i], want) || !strings.HasPrefix(came[i], `{"protocol":"AIP/1.0"`) {
			t.Errorf("sent %s", came[i])
		}
	}
	if asked := o.rt.take(); len(asked) != 2 {
		t.Errorf("%d answers", len(asked))
	}
	end := outgoing("m4", mail.Response, "x")
	end.Ending = true
	if got := o.g.Carry(t.Context(), o.p, end); got.State != gateway.Taken || len(o.came()) != 3 {
		t.Errorf("an ending is %+v", got)
	}
	o.p.URL = ""
	if got := o.g.Carry(t.Context(), o.p, outgoing("m5", mail.Request, "x")); got.State != gateway.Later || !strings.Contains(got.Reason, "url") {
		t.Errorf("without url %+v", got)
	}
}

// TestAnswerLater (M-098, G-024): an answer may be where a 202 says, or come as a message of
// its own; one to nothing that waits is refused. The place of an answer may change.
func TestAnswerLater(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	var looks atomic.Int32
	o.does(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			w.Header().Set("Location", "/answers/1")
			w.WriteHeader(http.StatusAccepted)
		case looks.Add(1) == 1:
			w.WriteHeader(http.StatusAccepted)
		case r.URL.Path == "/answers/1":
			w.Header().Set("Location", "2")
			w.WriteHeader(http.StatusAccepted)
		default:
			m := amptest.New("response", "agent-1", "boss", amptest.Result("polled"))
			m.Message.Headers["correlation_id"] = "m1"
			_, _ = io.WriteString(w, m.Text())
		}
	})
	if got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "x")); got.State != gateway.Taken {
		t.Fatalf("%+v", got)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Body != "polled" || asked[0].Sent {
		t.Errorf("delivered %+v", asked)
	}
	answer := amptest.New("response", "agent-1", "boss", amptest.Result("called back"))
	answer.Message.Headers["correlation_id"] = "m2"
	wantFault(t, o.send(t, answer), 404, "AGENT_NOT_FOUND", "MESSAGE_NOT_FOUND")
	sent := make(chan struct{})
	o.does(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		close(sent)
	})
	carried := make(chan gateway.Carried, 1)
	go func() { carried <- o.g.Carry(context.Background(), o.p, outgoing("m2", mail.Request, "x")) }()
	<-sent
	interim := answer
	interim.Message.ID, interim.Message.Payload = "interim", amptest.Object{"status": "partial", "metadata": amptest.Object{"final": false}}
	for _, m := range []amptest.Message{interim, answer} {
		if r := o.send(t, m); r.Status != http.StatusAccepted {
			t.Fatalf("got %d %s", r.Status, r.Text)
		}
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Body != "called back" || !asked[0].Sent {
		t.Errorf("delivered %+v", asked)
	}
	wantFault(t, o.send(t, answer), 404, "AGENT_NOT_FOUND", "MESSAGE_NOT_FOUND")
	o.does(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://elsewhere.example/answers/1")
		w.WriteHeader(http.StatusAccepted)
	})
	if got := o.g.Carry(t.Context(), o.p, outgoing("m3", mail.Request, "x")); !strings.Contains(got.Reason, "own host") {
		t.Errorf("another host's Location: %+v", got)
	}
	o.does(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Location", "/answers/1")
		w.WriteHeader(http.StatusAccepted)
	})
	if got := o.g.Carry(t.Context(), o.p, outgoing("m5", mail.Request, "x")); got.State != gateway.Refused || !strings.Contains(got.Reason, "/answers/1\": the partner answers 404") {
		t.Errorf("nothing at the Location: %+v", got)
	}
	o.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	o.p.Timeout = 50 * time.Millisecond
	if got := o.g.Carry(t.Context(), o.p, outgoing("m4", mail.Request, "x")); got.State != gateway.Refused || !strings.Contains(got.Reason, "timeout in [gateways.amp.partners.acme]") {
		t.Errorf("without an answer: %+v", got)
	}
}

// TestSignedOut (M-073): with a shared key our messages are signed, and an answer without a
// signature does not count.
func TestSignedOut(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	key := []byte("a-shared-key-of-16-bytes")
	o.p.HMACKey = key
	o.rt.AddPartner(o.p)
	signs := false
	o.replies(200, func(m amptest.Message) amptest.Message {
		r := m.Reply("response", amptest.Result("x"))
		if signs {
			r = sign(t, r, time.Now(), key)
		}
		return r
	})
	if got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "x")); got.State != gateway.Refused || !strings.Contains(got.Reason, "does not count") {
		t.Errorf("unsigned: %+v", got)
	}
	signs = true
	if got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "x")); got.State != gateway.Taken {
		t.Errorf("signed: %+v", got)
	}
	for _, text := range o.came() {
		in, err := (message.Reader{Depth: 64}).Read([]byte(text))
		if err != nil || in.Verify(key) != nil {
			t.Errorf("sent %s", text)
		}
	}
}

// TestDiscover (M-030): a partner's registry is asked for its agents; one without a registry
// has none.
func TestDiscover(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	list := []any{amptest.Object{"agent": amptest.Object{"id": "agent 1", "version": "2.0"}, "capabilities": []any{amptest.Object{"id": "dig", "version": "1.0"}}}}
	o.replies(200, func(m amptest.Message) amptest.Message {
		return m.Reply("response", amptest.Result(amptest.Object{"agents": list}))
	})
	got, err := o.g.Discover(t.Context(), o.p)
	if err != nil || len(got) != 1 || got[0].Name != "agent%201" || got[0].Version != "2.0" || len(got[0].Capabilities) != 1 || got[0].Capabilities[0].ID != "dig" {
		t.Errorf("%+v, %v", got, err)
	}
	for code, fails := range map[string]bool{"AGENT_NOT_FOUND": false, "AUTHENTICATION_FAILED": true} {
		o.replies(404, func(m amptest.Message) amptest.Message { return m.Reply("error", amptest.Error(code, "no")) })
		if got, err := o.g.Discover(t.Context(), o.p); (err != nil) != fails || len(got) != 0 {
			t.Errorf("%s: %+v, %v", code, got, err)
		}
	}
	o.replies(401, func(m amptest.Message) amptest.Message {
		refusal := amptest.Error("AUTHENTICATION_FAILED", "no")
		refusal["error"].(amptest.Object)["details"] = amptest.Object{"reason": "CREDENTIAL"}
		return m.Reply("error", refusal)
	})
	if _, err := o.g.Discover(t.Context(), o.p); err == nil || !strings.Contains(err.Error(), "look at auth_token in [gateways.amp.partners."+o.p.Name+"]") {
		t.Errorf("a credential that the partner refuses: %v", err)
	}
	o.p.URL = ""
	if _, err := o.g.Discover(t.Context(), o.p); err == nil {
		t.Error("a partner without url has agents")
	}
}

// delegated is a message that delegates a subtask to an agent.
func delegated(agent, callback string) amptest.Message {
	return amptest.New("request", "agent-1", agent, amptest.Object{"delegation": amptest.Object{
		"parent_task_id": "main-task-123",
		"subtask":        amptest.Object{"capability": "mail.message", "parameters": amptest.Object{"body": "dig"}, "completion_callback": callback},
	}})
}

// TestDelegation (M-034, M-035, M-036, V-M24): a subtask is done in the conversation of its
// parent. Without a callback its result is the answer; with one the reply says that it was
// taken, and the result is sent there with one id until it is taken.
func TestDelegation(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	wantText(t, o.send(t, delegated("echo", "")), "dig")
	m := delegated("echo", strings.TrimSuffix(o.p.URL, "/invoke")+"/callback")
	r := o.send(t, m)
	metadata, _ := r.Message.Message.Payload["metadata"].(amptest.Object)
	if r.Status != http.StatusAccepted || r.Message.Message.Payload["status"] != "partial" || metadata["delegation_id"] != m.Message.ID || metadata["state"] != "accepted" {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	response := outgoing("r1", mail.Response, "dig")
	response.Answers = m.Message.ID
	asked := o.waitAnswer(t, m)
	if asked.Conversation != "main-task-123" {
		t.Errorf("the conversation is %q", asked.Conversation)
	}
	var fails atomic.Int32
	o.does(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/callback" || fails.Add(1) <= 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	for n, want := range []gateway.CarriedState{gateway.Unanswered, gateway.Unanswered, gateway.Taken} {
		if got := o.g.Carry(t.Context(), o.p, response); got.State != want {
			t.Errorf("attempt %d: %+v", n, got)
		}
	}
	came := o.came()
	for _, text := range came {
		got, err := amptest.Parse([]byte(text))
		if err != nil || text != came[0] || got.Header("correlation_id") != m.Message.ID || got.Result()["text"] != "dig" {
			t.Errorf("called back with %s, %v", text, err)
		}
	}
	if len(came) != 3 {
		t.Errorf("%d calls", len(came))
	}
}

// waitAnswer returns the exchange of a message once it is answered.
func (o *out) waitAnswer(t *testing.T, m amptest.Message) gateway.Exchange {
	t.Helper()
	x, err := o.rt.Find(t.Context(), o.p.Caller(), m.Message.ID)
	if err == nil {
		_, err = o.rt.Wait(t.Context(), x)
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestCallbackAddresses (M-036, V-M25, G-055): a callback that is neither on the partner's
// host nor public is refused before anything is done, and one of a stranger as well.
func TestCallbackAddresses(t *testing.T) {
	t.Parallel()
	o := newOut(t, func(opt *amp.Options) {
		opt.CheckCallback = func(address string) error {
			if address != "https://public.example/callback" {
				return errors.New("it is no public address")
			}
			return nil
		}
	})
	o.rt.Admit("stranger-token", func() gateway.Caller {
		c := gatewaytest.Realm("default", "amp+stranger")
		c.Principal.Peer = "stranger"
		return c
	}())
	for _, callback := range []string{"https://169.254.169.254/callback", "http://public.example/callback", o.p.URL[:len(o.p.URL)-len("/invoke")] + ":1/x", "::", "https://" + strings.Repeat("x", 1024)} {
		wantFault(t, o.send(t, delegated("echo", callback)), 400, "INVALID_SCHEMA", "CALLBACK")
	}
	if r := o.send(t, delegated("echo", "https://public.example/callback")); r.Status != http.StatusAccepted {
		t.Errorf("a public one: %d %s", r.Status, r.Text)
	}
	stranger := delegated("echo", "https://public.example/callback")
	stranger.Message.Source.AgentID = "stranger"
	cl := amptest.Client{URL: o.URL, Token: "stranger-token"}
	r, err := cl.Send(stranger)
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, r, 403, "AUTHENTICATION_FAILED", "FORBIDDEN")
	if list := o.rt.take(); len(list) != 0 {
		t.Error(fmt.Sprint(list))
	}
}
