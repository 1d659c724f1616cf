package contract_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/contract"
)

// TestAMPBindings (M-094, M-097, M-098): what the contract of gateways has about bindings, held by AMP
// over WebSocket and over a call of gRPC.
func TestAMPBindings(t *testing.T) {
	t.Parallel()
	p := ampProtocol()
	without := map[string]string{
		"28/size": "a connection may end before its reason is read",
		"28/rate": "it is the runtime's limit",
		"28/asks": "it is the runtime's limit",
	}
	contract.RunBindings(t, p, []contract.Binding{ampBinding("socket", without, openAMPSocket), ampBinding("grpc", without, openAMPGRPC)})
}

func ampBinding(name string, without map[string]string, open opener) contract.Binding {
	return contract.Binding{
		Name: name, Without: without,
		Dial: func(t testing.TB, url, token string) contract.Client { return newAMPWire(t, open, url, token, nil) },
		Serve: func(t testing.TB, url, token string, handle contract.Handler) (stop func()) {
			w := newAMPWire(t, open, url, token, handle)
			// The host has the connection when it has answered there.
			if _, err := w.exchange(t.Context(), "hello", []byte(ampHello(token))); err != nil {
				t.Fatal(err)
			}
			return func() {}
		},
	}
}

// ampHello asks the registry, which any agent may.
func ampHello(token string) string {
	m := amptest.New("request", senderOf(token), "registry", amptest.Object{"query": amptest.Object{}})
	m.Message.ID, m.Message.Destination.Capability = "hello", "discovery"
	return m.Text()
}

// ampWire is a realm's agent on a connection over which messages go both ways.
type ampWire struct {
	ampClient
	t     testing.TB
	open  opener
	write func(ctx context.Context, agent, text string) error
	// asked gets messages that answer nothing, in order: what reads them must not wait for
	// a handler. It is nil without one.
	asked chan amptest.Message

	mu      sync.Mutex
	waiting map[string]chan amptest.Reply // by the id of the message; "" is an error about what has none
}

func newAMPWire(t testing.TB, open opener, url, token string, handle contract.Handler) *ampWire {
	t.Helper()
	w := &ampWire{
		ampClient: ampClient{amptest.Client{URL: url + "/amp/v1/invoke", Token: token}},
		t:         t, open: open, waiting: map[string]chan amptest.Reply{},
	}
	if handle != nil {
		w.asked = make(chan amptest.Message, 1000)
	}
	w.write = open(t, url, token, w.take)
	running(t, func(ctx context.Context) {
		for {
			select {
			case m := <-w.asked:
				if _, answer := answerAMP(ctx, m, handle); answer != nil {
					if err := w.write(ctx, m.Message.Destination.AgentID, answer.Text()); err != nil {
						w.t.Error(err)
					}
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return w
}

// take takes a message of the host.
func (w *ampWire) take(text string) {
	m, err := amptest.Parse([]byte(text))
	if err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	id := m.Header("correlation_id")
	got := w.waiting[id]
	delete(w.waiting, id)
	w.mu.Unlock()
	switch answers := m.Message.Type == "response" || m.Message.Type == "error"; {
	case got != nil && answers:
		got <- amptest.Reply{Status: http.StatusOK, Text: text, Message: &m}
	case w.asked != nil && !answers:
		w.asked <- m
	}
}

// Send implements [contract.Client]. After what is told a question is asked: an event that was
// taken has no answer, and one that was refused has an error before the question's.
func (w *ampWire) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	if m.Kind != contract.Tell && m.Kind != contract.Answer {
		return w.exchange(ctx, m.ID, w.Encode(m))
	}
	refused := w.await(m.ID)
	if err := w.write(ctx, senderOf(w.Token), string(w.Encode(m))); err != nil {
		return contract.State{}, err
	}
	after := uuid.NewString()
	if _, err := w.exchange(ctx, after, []byte(strings.Replace(ampHello(w.Token), `"hello"`, `"`+after+`"`, 1))); err != nil {
		return contract.State{}, err
	}
	select {
	case r := <-refused:
		return ampState(r, nil)
	default:
		return contract.State{Status: contract.Working}, nil
	}
}

// Post implements [contract.Client], over a connection of its own: one that has brought
// much that is no message is ended.
func (w *ampWire) Post(ctx context.Context, body []byte) (contract.State, error) {
	host, _, _ := strings.Cut(w.URL, "/amp/")
	return newAMPWire(w.t, w.open, host, w.Token, nil).exchange(ctx, "", body)
}

// await returns where the answer to a message comes.
func (w *ampWire) await(id string) <-chan amptest.Reply {
	got := make(chan amptest.Reply, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[id] = got
	return got
}

// exchange sends a text and waits for what comes about it.
func (w *ampWire) exchange(ctx context.Context, id string, text []byte) (contract.State, error) {
	got := w.await(id)
	if err := w.write(ctx, senderOf(w.Token), string(text)); err != nil {
		return contract.State{}, err
	}
	select {
	case r := <-got:
		return ampState(r, nil)
	case <-ctx.Done():
		return contract.State{}, context.Cause(ctx)
	}
}

func openAMPSocket(t testing.TB, url, token string, take func(string)) func(context.Context, string, string) error {
	s, err := amptest.Dial(t.Context(), url+"/amp/v1/invoke", http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	running(t, func(ctx context.Context) {
		for {
			text, err := s.ReadText(ctx)
			if err != nil {
				return
			}
			take(text)
		}
	})
	return func(ctx context.Context, _, text string) error { return s.Send(ctx, text) }
}
