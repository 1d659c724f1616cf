package amp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/spec/gateways/amp/amppb"
)

// newRelaying is a gateway at which agent-2 of acme has registered, with an endpoint or without one,
// and whose agents may relay.
func newRelaying(t *testing.T, invoke func(o *out) string) *out {
	t.Helper()
	o := newOut(t)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayRegister, gateway.MayRelay}
	o.rt.Admit("relay-token", c)
	o.Token, o.p.May = "relay-token", c.May
	o.rt.AddPartner(o.p)
	m := registered("agent-2", invoke(o))
	m.Message.Payload["capabilities"] = []any{amptest.Object{"id": "translation", "input_schema": json.RawMessage(`{"type":"object","required":["text"]}`)}}
	if r := o.send(t, m); r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Text)
	}
	o.got = nil
	return o
}

// translation is a request of agent-1.
func translation(to string) amptest.Message {
	m := amptest.Request("agent-1", to, "translation", amptest.Object{"text": "hello"})
	m.Message.Headers["correlation_id"] = "track-1"
	m.Message.Headers["authentication"] = amptest.Object{"type": "bearer", "token": "relay-token"}
	return m
}

// TestRelay (M-020, M-028, M-114): a request of one registered agent for another, by its id or a capability
// that no agent of ours has, goes to its endpoint, without the sender's credential, and its answer to
// who has asked. A repeat has the same id.
func TestRelay(t *testing.T) {
	t.Parallel()
	o := newRelaying(t, func(o *out) string { return o.p.URL })
	o.replies(http.StatusOK, func(m amptest.Message) amptest.Message { return m.Reply("response", amptest.Result("bonjour")) })
	for _, to := range []string{"agent-2", ""} {
		m := translation(to)
		var ids []string
		for range 2 {
			r := o.send(t, m)
			if r.Status != http.StatusOK || r.Message.Message.Payload["result"] != "bonjour" || r.Message.Header("correlation_id") != m.Message.ID ||
				r.Message.Header("tracking_id") != "track-1" || r.Message.Message.Source.AgentID != "agent-2" || r.Message.Message.Destination.AgentID != "agent-1" {
				t.Fatalf("to %q got %d %s", to, r.Status, r.Text)
			}
			got, err := amptest.Parse([]byte(o.got[len(o.got)-1]))
			if err != nil {
				t.Fatal(err)
			}
			b := got.Message
			if b.Source.AgentID != "agent-1" || b.Destination.AgentID != "agent-2" || b.Headers["authentication"] != nil || b.Headers["routing_hints"].(amptest.Object)["hops"] != 1.0 || b.ID == m.Message.ID {
				t.Errorf("agent-2 got %s", got.Text())
			}
			ids = append(ids, b.ID)
		}
		if ids[0] != ids[1] {
			t.Errorf("a repeat is %q", ids)
		}
	}
}

// TestRelayRefused (M-021, M-023, M-039, M-076, M-077): what an agent may not ask of another does not reach it,
// and what that answers, or fails to, reaches who has asked.
func TestRelayRefused(t *testing.T) {
	t.Parallel()
	fails := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, c := range map[string]struct {
		change       func(m *amptest.Message)
		token        string
		agent        http.HandlerFunc
		status       int
		code, reason string
		asked        bool
	}{
		"a schema":                    {change: func(m *amptest.Message) { m.Message.Payload["parameters"] = amptest.Object{} }, status: http.StatusBadRequest, code: "INVALID_SCHEMA", reason: "VIOLATIONS"},
		"another capability":          {change: func(m *amptest.Message) { m.Message.Payload["capability"] = "none" }, status: http.StatusNotFound, code: "CAPABILITY_NOT_FOUND"},
		"an agent without":            {change: func(m *amptest.Message) { m.Message.Destination.AgentID = "agent-3" }, status: http.StatusNotFound, code: "AGENT_NOT_FOUND"},
		"a sender of others":          {change: func(m *amptest.Message) { m.Message.Source.AgentID = "other-1" }, status: http.StatusForbidden, code: "AUTHENTICATION_FAILED", reason: "FORBIDDEN"},
		"no right":                    {token: token, status: http.StatusForbidden, code: "AUTHENTICATION_FAILED", reason: "FORBIDDEN"},
		"too many hops":               {change: func(m *amptest.Message) { m.Message.Headers["routing_hints"] = amptest.Object{"hops": 4} }, status: http.StatusBadRequest, code: "INVALID_SCHEMA", reason: "MALFORMED"},
		"an agent that fails":         {agent: fails(http.StatusServiceUnavailable), status: http.StatusServiceUnavailable, code: "INSUFFICIENT_RESOURCES", reason: "UNREACHABLE", asked: true},
		"an agent that does not come": {change: func(m *amptest.Message) { m.Message.Headers["timeout_ms"] = 1 }, agent: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, status: http.StatusGatewayTimeout, code: "TIMEOUT", asked: true},
		"an agent's own error": {agent: func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			m, _ := amptest.Parse(text)
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, m.Reply("error", amptest.Error("CONTEXT_NOT_FOUND", "it is gone")).Text())
		}, status: http.StatusNotFound, code: "CONTEXT_NOT_FOUND", asked: true},
	} {
		o := newRelaying(t, func(o *out) string { return o.p.URL })
		o.does(fails(http.StatusTeapot))
		if c.agent != nil {
			o.does(c.agent)
		}
		m := translation("agent-2")
		delete(m.Message.Headers, "authentication")
		if c.change != nil {
			c.change(&m)
		}
		if c.token != "" {
			o.Token = c.token
		}
		r := o.send(t, m)
		if r.Message == nil {
			t.Fatalf("%s: %d %s", name, r.Status, r.Text)
		}
		if code, text, reason := r.Message.Fault(); r.Status != c.status || code != c.code || reason != c.reason || r.Message.Header("correlation_id") != m.Message.ID {
			t.Errorf("%s: got %d %s %s %q", name, r.Status, code, reason, text)
		}
		o.mu.Lock()
		if asked := len(o.got) > 0; asked != c.asked && c.status != http.StatusGatewayTimeout {
			t.Errorf("%s: the agent got %q", name, o.got)
		}
		o.mu.Unlock()
	}
}

// TestRelayOverSocket (M-094, V-M36): two agents of one connection, or of two, ask each other. An answer
// of a third does not count, and who asks an agent whose connection ends is told.
func TestRelayOverSocket(t *testing.T) {
	t.Parallel()
	o := newRelaying(t, func(*out) string { return "" })
	o.p.URL = ""
	o.rt.AddPartner(o.p)
	two := o.dial(t, "relay-token")
	exchange(t, two, registered("agent-2", "").Text())
	for _, asker := range []*amptest.Socket{two, o.dial(t, "relay-token")} {
		m := translation("agent-2")
		write(t, asker, m.Text())
		q := next(t, two)
		if q.Message.Source.AgentID != "agent-1" || q.Message.Destination.AgentID != "agent-2" || q.Message.Type != "request" || strings.Contains(q.Text(), "relay-token") {
			t.Fatalf("agent-2 got %s", q.Text())
		}
		spoofed := q.Reply("response", amptest.Result("hola"))
		spoofed.Message.Source.AgentID = "agent-3"
		unsigned := q.Reply("response", amptest.Result("hej"))
		unsigned.Message.Source.AgentID = ""
		interim := q.Reply("response", amptest.Object{"status": "partial", "result": amptest.Object{}, "metadata": amptest.Object{"final": false}})
		write(t, two, spoofed.Text(), unsigned.Text(), interim.Text(), q.Reply("response", amptest.Result("bonjour")).Text())
		got := next(t, asker)
		if got.Message.Payload["result"] != "bonjour" || got.Header("correlation_id") != m.Message.ID {
			t.Errorf("got %s", got.Text())
		}
	}
	three := o.dial(t, "relay-token")
	write(t, three, translation("agent-2").Text())
	next(t, two)
	two.Close()
	wantRefused(t, next(t, three), "INSUFFICIENT_RESOURCES", "UNREACHABLE")
}

// TestRelayRepeated (M-028): a repeat that comes while the request is under way is asked again, and both
// have the one answer.
func TestRelayRepeated(t *testing.T) {
	t.Parallel()
	o := newRelaying(t, func(*out) string { return "" })
	o.p.URL = ""
	o.rt.AddPartner(o.p)
	two, one, again := o.dial(t, "relay-token"), o.dial(t, "relay-token"), o.dial(t, "relay-token")
	exchange(t, two, registered("agent-2", "").Text())
	m := translation("agent-2")
	write(t, one, m.Text())
	first := next(t, two)
	write(t, again, m.Text())
	if second := next(t, two); second.Message.ID != first.Message.ID {
		t.Errorf("the repeat is %s, not %s", second.Message.ID, first.Message.ID)
	}
	write(t, two, first.Reply("response", amptest.Result("bonjour")).Text())
	for _, asker := range []*amptest.Socket{one, again} {
		if got := next(t, asker); got.Message.Payload["result"] != "bonjour" {
			t.Errorf("got %s", got.Text())
		}
	}
}

// TestRelayDraining (M-028): a host that stops does not wait for the answer of a registered agent: who
// has asked is told to come again.
func TestRelayDraining(t *testing.T) {
	t.Parallel()
	o := newRelaying(t, func(o *out) string { return o.p.URL })
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- o.g.Run(ctx) }()
	o.does(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	})
	wantFault(t, o.send(t, translation("agent-2")), http.StatusServiceUnavailable, "INSUFFICIENT_RESOURCES", "DRAINING")
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestRelayOverGRPC (M-028, M-097): a request for an agent that is registered with a gRPC address goes
// there, with one hop more and without the sender's credential. What the agent answers, or that it is
// away, reaches who has asked, over HTTP and over gRPC.
func TestRelayOverGRPC(t *testing.T) {
	t.Parallel()
	o, a := newRelaying(t, func(*out) string { return "" }), &grpcAgent{}
	url, client := serveGRPCAgent(t, a, nil)
	o.p.URL, o.p.Client = url+"/invoke", client
	o.rt.AddPartner(o.p)
	m := registered("agent-2", "")
	m.Message.Payload["endpoints"] = amptest.Object{"grpc": url}
	if r := o.send(t, m); r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Text)
	}
	var failure error
	a.does = func(_ context.Context, in amptest.Message) (*amppb.Message, error) {
		return rawMessage(in.Reply("response", amptest.Result("bonjour"))), failure
	}
	ask := translation("agent-2")
	if r := o.send(t, ask); r.Status != http.StatusOK || r.Message.Message.Payload["result"] != "bonjour" || r.Message.Header("correlation_id") != ask.Message.ID {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	got, err := amptest.Parse(a.came[0].GetRawJson())
	if err != nil {
		t.Fatal(err)
	}
	if b := got.Message; len(a.came) != 1 || b.Source.AgentID != "agent-1" || b.Destination.AgentID != "agent-2" || b.Headers["authentication"] != nil ||
		b.Headers["routing_hints"].(amptest.Object)["hops"] != 1.0 || a.came[0].GetSource().GetAgentId() != "agent-1" || strings.Contains(got.Text(), "relay-token") {
		t.Errorf("agent-2 got %s, of %d", got.Text(), len(a.came))
	}
	if shown := strings.Join(a.shown[0].Get("authorization"), ""); strings.Contains(shown, "relay-token") {
		t.Errorf("agent-2 is shown %q", shown)
	}
	c, ctx := o.overGRPC(t, bearer("relay-token")...)
	if r, err := c.Invoke(ctx, rawMessage(ask)); err != nil || r.GetPayload().AsMap()["result"] != "bonjour" && !strings.Contains(string(r.GetRawJson()), "bonjour") {
		t.Errorf("over gRPC got %v, %v", r, err)
	}
	failure = status.Error(codes.Unavailable, "away")
	wantFault(t, o.send(t, ask), http.StatusServiceUnavailable, "INSUFFICIENT_RESOURCES", "UNREACHABLE")
	if _, err := c.Invoke(ctx, rawMessage(ask)); status.Code(err) != codes.Unavailable {
		t.Errorf("over gRPC got %v", err)
	}
	refused, err := status.New(codes.NotFound, "gone").WithDetails(rawMessage(amptest.New("error", "", "", amptest.Error("CONTEXT_NOT_FOUND", "it is gone"))))
	if err != nil {
		t.Fatal(err)
	}
	failure = refused.Err()
	wantFault(t, o.send(t, ask), http.StatusNotFound, "CONTEXT_NOT_FOUND", "")
}
