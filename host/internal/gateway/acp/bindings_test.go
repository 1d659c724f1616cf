package acp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/broker"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
)

// fullStore has no place for a record while it is full.
type fullStore struct {
	state.Store
	full atomic.Bool
}

func (s *fullStore) Put(ctx context.Context, r state.Record) (int64, error) {
	if s.full.Load() {
		return 0, state.ErrFull
	}
	return s.Store.Put(ctx, r)
}

// stored is a runtime with another store.
type stored struct {
	*gatewaytest.Runtime
	store state.Store
}

func (s stored) State() state.Store { return s.store }

// outcome is what became of a message: the code of its ERROR, or the type of what answers it.
func outcome(m message.Message) string {
	if m.Header.Type != message.MessageTypeError {
		return string(m.Header.Type)
	}
	var body errorBody
	if json.Unmarshal([]byte(m.Body), &body) == nil && body.Code != "" {
		return body.Code
	}
	code, _, _ := strings.Cut(m.Body, ":")
	return code
}

// later is the outcome of a message that stays at the broker.
const later = "later"

// bindings are the ways to one gateway for the partner acme.
type bindings struct {
	g      *Gateway
	url    string
	web    acptest.Client
	topics *queue
	store  *fullStore
}

func newBindings(t *testing.T) *bindings {
	t.Helper()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "calc"}, gatewaytest.Echo)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayRelay}
	p := gateway.Partner{Name: "acme", Tenant: "default", IDs: []string{"agent*"}, May: c.May, Options: map[string]any{topicsOption: "t"}}
	rt.Admit("acme-token", c)
	rt.AddPartner(p)
	b := &bindings{store: &fullStore{Store: rt.State()}}
	b.g = New(Options{Runtime: stored{rt, b.store}})
	server := httptest.NewServer(gatewaytest.Listener(rt, b.g.Mounts()))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	b.url = server.URL
	b.web = acptest.Client{URL: server.URL + messagesPath, Token: "acme-token", HTTP: server.Client()}
	b.topics = &queue{g: b.g, partner: "acme", topics: "t", conn: broker.New(broker.Options{Log: slog.New(slog.DiscardHandler)})}
	return b
}

// outcomeOf is the outcome in the text of a reply, empty for no message.
func (b *bindings) outcomeOf(text []byte) string {
	in, err := b.g.reader.read(text)
	if err != nil {
		return ""
	}
	return outcome(in.Message)
}

func (b *bindings) overHTTP(t *testing.T, text string) string {
	t.Helper()
	r, err := b.web.Send(text, "Prefer", "respond-async")
	if err != nil {
		t.Fatal(err)
	}
	return b.outcomeOf([]byte(r.Text))
}

func (b *bindings) overSocket(t *testing.T, text string) string {
	t.Helper()
	socket, err := acptest.Dial(t.Context(), b.url, "acme-token")
	if err != nil {
		t.Fatal(err)
	}
	if err := socket.Send(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	reply, err := socket.ReadText(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	socket.Close()
	for deadline := time.Now().Add(time.Minute); b.g.sockets.Len() > 0; time.Sleep(time.Millisecond) { // the next message is relayed to none
		if time.Now().After(deadline) {
			t.Fatal("the socket does not end")
		}
	}
	return b.outcomeOf(reply)
}

func (b *bindings) overBroker(t *testing.T, text string) string {
	t.Helper()
	switch refused, taken := b.topics.takeOnce(t.Context(), broker.Message{Topic: "t/agentA/out", Payload: []byte(text)}); {
	case refused != nil:
		return outcome(*refused)
	case !taken:
		return later
	}
	return ""
}

// messageText is the text of a new message of agentA that wants an acknowledgement.
func messageText(kind, receiver string, change func(*acptest.Message)) func() string {
	return func() string {
		m := acptest.New(kind, "agentA", receiver, "7")
		if change != nil {
			change(&m)
		}
		return strings.Replace(m.Text(), `"header":{`, `"header":{"x_ack":"requested",`, 1)
	}
}

// TestBindingsAgree: a message that is refused is refused with the same code over
// HTTP, a WebSocket and a broker. One that may be taken later stays at the broker.
func TestBindingsAgree(t *testing.T) {
	t.Parallel()
	b := newBindings(t)
	edited := func(old, replacement string) func() string {
		return func() string { return strings.Replace(messageText("REQUEST", "calc", nil)(), old, replacement, 1) }
	}
	for name, one := range map[string]struct {
		text    func() string
		isFull  bool
		relayed bool // a socket of the partner would get it
		want    string
	}{
		"no message":          {func() string { return "[]" }, false, false, codeMalformed},
		"no JSON":             {edited("}", ""), false, false, codeMalformed},
		"a large header":      {edited(`"header":{`, `"header":{"x":[`+strings.Repeat("1,", 10<<10)+`1],`), false, false, codeMalformed},
		"another version":     {edited(`"1.0"`, `"2.0"`), false, false, codeVersion},
		"an unknown receiver": {messageText("REQUEST", "clac", nil), false, false, codeReceiver},
		"an unknown question": {messageText("RESPONSE", "calc", func(m *acptest.Message) { m.Header.ReplyTo = "m1" }), false, false, codeReceiver},
		"another's sender":    {edited("agentA", "mallory"), false, false, codeForbidden},
		"too large to relay":  {messageText("REQUEST", "agentB", func(m *acptest.Message) { m.Body = strings.Repeat("x", state.MaxValue) }), false, true, codeMalformed},
		"no place to keep it": {messageText("REQUEST", "agentB", nil), true, true, codeBusy},
	} {
		b.store.full.Store(one.isFull)
		if got := b.overHTTP(t, one.text()); got != one.want {
			t.Errorf("%s over HTTP: %q, want %q", name, got, one.want)
		}
		if !one.relayed {
			if got := b.overSocket(t, one.text()); got != one.want {
				t.Errorf("%s over a WebSocket: %q, want %q", name, got, one.want)
			}
		}
		want := one.want
		if one.isFull {
			want = later
		}
		if got := b.overBroker(t, one.text()); got != want {
			t.Errorf("%s over a broker: %q, want %q", name, got, want)
		}
	}
}
