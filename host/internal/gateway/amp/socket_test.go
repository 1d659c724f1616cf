package amp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
)

// dial opens a WebSocket that shows a token.
func (s *site) dial(t *testing.T, token string) *amptest.Socket {
	t.Helper()
	return s.dialWith(t, http.Header{"Authorization": {"Bearer " + token}})
}

func (s *site) dialWith(t *testing.T, header http.Header) *amptest.Socket {
	t.Helper()
	c, err := amptest.Dial(t.Context(), s.URL, header)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// write sends texts on a socket.
func write(t *testing.T, c *amptest.Socket, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := c.Send(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// next is the next message of a socket.
func next(t *testing.T, c *amptest.Socket) amptest.Message {
	t.Helper()
	m, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// exchange sends a text on a socket and returns the next message.
func exchange(t *testing.T, c *amptest.Socket, text string) amptest.Message {
	t.Helper()
	write(t, c, text)
	return next(t, c)
}

// wantRefused fails unless a message is an error with a code and a reason.
func wantRefused(t *testing.T, m amptest.Message, wantCode, wantReason string) {
	t.Helper()
	if code, text, reason := m.Fault(); m.Message.Type != "error" || code != wantCode || reason != wantReason {
		t.Errorf("got %s %s %s %q, want %s %s", m.Message.Type, code, reason, text, wantCode, wantReason)
	}
}

// TestSocket (M-094, M-098, D-M1, D-M2, V-M10): over a WebSocket go the same messages as over HTTP,
// for several agents, under the token of each; a repeat has its answer. An id is needed, and frames
// of other implementations are passed over.
func TestSocket(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dial(t, token)
	q := amptest.Mail("agent-1", "echo", "hello")
	write(t, c, `{"type":"handshake","agent_id":"agent-1"}`, `{"type":"heartbeat"}`)
	first := exchange(t, c, q.Text())
	if first.Header("correlation_id") != q.Message.ID || first.Message.Destination.AgentID != "agent-1" || first.Result()["text"] != "hello" {
		t.Errorf("got %s", first.Text())
	}
	if again := exchange(t, c, q.Text()); again.Text() != first.Text() {
		t.Errorf("the repeat got %s", again.Text())
	}
	if over := s.send(t, q); over.Message == nil || over.Message.Text() != first.Text() {
		t.Errorf("over HTTP it is %s", over.Text)
	}
	other := amptest.Mail("agent-2", "echo", "again")
	other.Protocol = "AIP/1.0"
	if m := exchange(t, c, other.Text()); m.Protocol != "AIP/1.0" || m.Message.Destination.AgentID != "agent-2" {
		t.Errorf("another agent got %s", m.Text())
	}
	discovery := amptest.New("request", "agent-1", "registry", amptest.Object{"query": amptest.Object{}})
	discovery.Message.Destination.Capability = "discovery"
	if m := exchange(t, c, discovery.Text()); m.Header("correlation_id") != discovery.Message.ID || m.Result()["agents"] == nil {
		t.Errorf("discovery got %s", m.Text())
	}
	told := s.exposeAsks("told")
	write(t, c, amptest.New("event", "agent-1", "told", amptest.Object{"event_type": "mail.message", "body": "news"}).Text())
	if a := <-told; a.Body != "news" {
		t.Errorf("told %+v", a)
	}
	unanswerable := amptest.New("response", "agent-1", "", amptest.Result(amptest.Object{}))
	write(t, c, unanswerable.Text()) // has no reply
	for _, bad := range []struct{ text, code, reason string }{
		{"hello", "INVALID_SCHEMA", "MALFORMED"},
		{strings.Replace(q.Text(), `"id":`, `"x_id":`, 1), "INVALID_SCHEMA", "MALFORMED"},
		{amptest.Mail("mallory", "echo", "x").Text(), "AUTHENTICATION_FAILED", "FORBIDDEN"},
		{amptest.Mail("agent-1", "none", "x").Text(), "AGENT_NOT_FOUND", ""},
		{strings.Replace(q.Text(), "hello", "other", 1), "INVALID_SCHEMA", "CONFLICT"},
		{amptest.New("event", "agent-1", "none", amptest.Object{"event_type": "x"}).Text(), "AGENT_NOT_FOUND", ""},
	} {
		wantRefused(t, exchange(t, c, bad.text), bad.code, bad.reason)
	}
}

// exposeAsks shows the test what an agent gets.
func (s *site) exposeAsks(name string) <-chan gateway.Ask {
	seen := make(chan gateway.Ask, 100)
	s.expose(name, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		seen <- turn.Ask
		return gateway.Answer{Body: turn.Ask.Body}
	})
	return seen
}

// TestSocketProofs (M-070, M-071, M-073, M-074, M-094, V-M13): a caller is shown by the upgrade or by the first
// message, in each way in which a message over HTTP shows its caller; later messages are held
// against it.
func TestSocketProofs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	key := []byte("a key that is shared")
	s.admit("", gateway.Partner{Name: "signer", IDs: []string{"signer-*"}, HMACKey: key, Options: map[string]any{"hmac_alone": true}})
	proven := func(text string) amptest.Message { return amptest.Mail("agent-1", "echo", text) }
	with := func(m amptest.Message, member, secret string) string {
		m.Message.Headers["authentication"] = amptest.Object{"type": "bearer", member: secret}
		return m.Text()
	}
	for name, c := range map[string]struct {
		header http.Header
		first  string
	}{
		"bearer":      {http.Header{"Authorization": {"Bearer " + token}}, proven("x").Text()},
		"api key":     {http.Header{"X-Api-Key": {token}}, proven("x").Text()},
		"token":       {nil, with(proven("x"), "token", token)},
		"key":         {nil, with(proven("x"), "key", token)},
		"credentials": {nil, with(proven("x"), "credentials", token)},
		"signature":   {nil, sign(t, amptest.Mail("signer-1", "echo", "x"), time.Now(), key).Text()},
	} {
		socket := s.dialWith(t, c.header)
		if m := exchange(t, socket, c.first); m.Result()["text"] != "x" {
			t.Errorf("%s: got %s", name, m.Text())
		}
		second := proven("y").Text()
		if name == "signature" {
			wantRefused(t, exchange(t, socket, second), "AUTHENTICATION_FAILED", "CREDENTIAL")
			second = sign(t, amptest.Mail("signer-1", "echo", "y"), time.Now(), key).Text()
		}
		if m := exchange(t, socket, second); m.Result()["text"] != "y" {
			t.Errorf("%s, the second: got %s", name, m.Text())
		}
		wantRefused(t, exchange(t, socket, with(proven("z"), "token", "another")), "AUTHENTICATION_FAILED", "CREDENTIAL")
	}
	for name, first := range map[string]string{"none": proven("x").Text(), "wrong": with(proven("x"), "token", "wrong"), "no message": "hello"} {
		socket := s.dialWith(t, nil)
		wantRefused(t, exchange(t, socket, first), "AUTHENTICATION_FAILED", "CREDENTIAL")
		if m, err := socket.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "known caller") {
			t.Errorf("%s: then %+v, %v", name, m, err)
		}
	}
	for _, refused := range []string{"wrong", "user-token"} {
		if _, err := amptest.Dial(t.Context(), s.URL, http.Header{"Authorization": {"Bearer " + refused}}); err == nil {
			t.Errorf("%s is let in", refused)
		}
	}
}

// TestSocketEnds (M-094): a socket ends with its token, with too many messages that are none, with
// one that is too large, and when the host stops; a realm has so many of them.
func TestSocketEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *amp.Options) { o.Sessions, o.MaxBody = 3, 4<<10 })
	hello := func(c *amptest.Socket, agent string) {
		t.Helper()
		if m := exchange(t, c, amptest.Mail(agent, "echo", "x").Text()); m.Message.Type != "response" {
			t.Fatalf("got %s", m.Text())
		}
	}
	wantEnd := func(c *amptest.Socket, why string) {
		t.Helper()
		if m, err := c.Read(t.Context()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %+v, %v, want %q", m, err, why)
		}
	}
	first, second, large := s.dial(t, token), s.dial(t, token), s.dial(t, token)
	for _, c := range []*amptest.Socket{first, second, large} {
		hello(c, "agent-1")
	}
	if n := s.g.Health().Connections; n != 3 {
		t.Errorf("%d connections", n)
	}
	wantEnd(s.dial(t, token), "raise sessions of [gateways.amp]")
	write(t, large, amptest.Mail("agent-1", "echo", strings.Repeat("x", 4<<10)).Text())
	wantEnd(large, "StatusMessageTooBig")
	for range 16 {
		wantRefused(t, exchange(t, first, "nonsense"), "INVALID_SCHEMA", "MALFORMED")
	}
	wantEnd(first, "messages that are none")
	s.admit("other-token", gateway.Partner{Name: "other", IDs: []string{"other-*"}})
	other := s.dial(t, "other-token")
	hello(other, "other-1")
	s.rt.Revoke(token)
	wantEnd(second, "")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	stopped := make(chan error, 1)
	go func() { stopped <- s.g.Run(ctx) }()
	wantEnd(other, "the host stops")
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestSocketIsBounded (M-080, M-094): one connection has at most 64 requests that wait; one more is
// refused, and the connection goes on.
func TestSocketIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dial(t, token)
	for i := range 65 {
		write(t, c, amptest.Mail("agent-1", "slow", fmt.Sprint(i)).Text())
	}
	wantRefused(t, next(t, c), "RATE_LIMIT_EXCEEDED", "")
	close(s.release)
	for range 64 {
		if m := next(t, c); m.Result()["text"] != "done" {
			t.Fatalf("got %s", m.Text())
		}
	}
	exchange(t, c, amptest.Mail("agent-1", "echo", "x").Text())
}
