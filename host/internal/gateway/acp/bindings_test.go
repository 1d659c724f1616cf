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

// TestBindingsAgree: a message that is refused is refused with the same code over
// HTTP, a WebSocket and a broker. One that may be taken later stays at the broker.
func TestBindingsAgree(t *testing.T) {
	t.Parallel()
	const later = "later"
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "calc"}, gatewaytest.Echo)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayRelay}
	p := gateway.Partner{Name: "acme", Tenant: "default", IDs: []string{"agent*"}, May: c.May, Options: map[string]any{topicsOption: "t"}}
	rt.Admit("acme-token", c)
	rt.AddPartner(p)
	store := &fullStore{Store: rt.State()}
	g := New(Options{Runtime: stored{rt, store}})
	server := httptest.NewServer(gatewaytest.Listener(rt, g.Mounts()))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	web := acptest.Client{URL: server.URL + messagesPath, Token: "acme-token", HTTP: server.Client()}
	topics := &queue{g: g, partner: "acme", topics: "t", conn: broker.New(broker.Options{Log: slog.New(slog.DiscardHandler)})}
	made := func(kind, receiver string, change func(*acptest.Message)) func() string {
		return func() string {
			m := acptest.New(kind, "agentA", receiver, "7")
			if change != nil {
				change(&m)
			}
			return strings.Replace(m.Text(), `"header":{`, `"header":{"x_ack":"requested",`, 1)
		}
	}
	edited := func(old, replacement string) func() string {
		return func() string { return strings.Replace(made("REQUEST", "calc", nil)(), old, replacement, 1) }
	}
	for name, one := range map[string]struct {
		text func() string
		full bool
		want string
	}{
		"no message":          {func() string { return "[]" }, false, codeMalformed},
		"no JSON":             {edited("}", ""), false, codeMalformed},
		"a large header":      {edited(`"header":{`, `"header":{"x":[`+strings.Repeat("1,", 10<<10)+`1],`), false, codeMalformed},
		"another version":     {edited(`"1.0"`, `"2.0"`), false, codeVersion},
		"an unknown receiver": {made("REQUEST", "clac", nil), false, codeReceiver},
		"an unknown question": {made("RESPONSE", "calc", func(m *acptest.Message) { m.Header.ReplyTo = "m1" }), false, codeReceiver},
		"another's sender":    {edited("agentA", "mallory"), false, codeForbidden},
		"too large to relay":  {made("REQUEST", "agentB", func(m *acptest.Message) { m.Body = strings.Repeat("x", state.MaxValue) }), false, codeMalformed},
		"no place to keep it": {made("REQUEST", "agentB", nil), true, codeBusy},
	} {
		store.full.Store(one.full)
		r, err := web.Send(one.text(), "Prefer", "respond-async")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		if in, err := g.reader.read([]byte(r.Text)); err == nil {
			got["HTTP"] = outcome(in.Message)
		}
		want := map[string]string{"HTTP": one.want, "socket": one.want, "broker": one.want}
		if one.want == codeBusy {
			want["broker"] = later
		}
		if name != "too large to relay" && name != "no place to keep it" { // it is relayed to the socket itself
			socket, err := acptest.Dial(t.Context(), server.URL, "acme-token")
			if err != nil {
				t.Fatal(err)
			}
			if err := socket.Send(t.Context(), one.text()); err != nil {
				t.Fatal(err)
			}
			text, err := socket.ReadText(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if in, err := g.reader.read(text); err == nil {
				got["socket"] = outcome(in.Message)
			}
			socket.Close()
			for g.sockets.len() > 0 { // the next message is relayed to none
				time.Sleep(time.Millisecond)
			}
		} else {
			delete(want, "socket")
		}
		refused, taken := topics.takeOnce(t.Context(), broker.Message{Topic: "t/agentA/out", Payload: []byte(one.text())})
		switch {
		case refused != nil:
			got["broker"] = outcome(*refused)
		case !taken:
			got["broker"] = later
		}
		for binding, code := range want {
			if got[binding] != code {
				t.Errorf("%s over %s: %q, want %q", name, binding, got[binding], code)
			}
		}
	}
}
