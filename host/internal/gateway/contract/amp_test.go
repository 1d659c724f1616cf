package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/contract"
)

// TestAMP (M-020, M-023, M-025, M-090, M-091, M-098, M-113): the contract of gateways, held by AMP
// over HTTP.
func TestAMP(t *testing.T) {
	t.Parallel()
	contract.Run(t, ampProtocol())
}

func ampProtocol() contract.Protocol {
	return contract.Protocol{
		Name: "amp", Self: "depot-1", Realms: true,
		Without: map[string]string{
			"06/realm":    "it has no word for a call that waits for a person",
			"14":          "it has no stream to read again",
			"18":          "it has no word for withdrawing a message",
			"19":          "it has no word for withdrawing a message",
			"20":          "it has no stream to read again",
			"21":          "it has no stream to read again",
			"22/question": "it has no word for a call that waits for a person",
			"22/stream":   "it has no stream to read again",
			"25":          "a payload is JSON",
			"26/back":     "an answer has no routing hints",
		},
		Dial: func(_ testing.TB, url, token string) contract.Client {
			return ampClient{amptest.Client{URL: url + "/amp/v1/invoke", Token: token}}
		},
		Serve: serveAMP,
	}
}

// ampClient is a realm's agent.
type ampClient struct{ amptest.Client }

// Encode implements [contract.Client].
func (c ampClient) Encode(m contract.Message) []byte {
	a := amptest.Mail(senderOf(c.Token), m.To, m.Text)
	if m.Kind == contract.Tell {
		a = amptest.New("event", senderOf(c.Token), m.To, amptest.Object{"event_type": "mail.message", "body": m.Text})
	}
	if m.Kind == contract.Answer {
		a = amptest.New("response", senderOf(c.Token), m.To, amptest.Result(amptest.Object{"text": m.Text}))
		a.Message.Headers["correlation_id"] = m.Question.ID
	}
	if m.From != "" {
		a.Message.Source.AgentID = m.From
	}
	a.Message.ID, a.Message.Timestamp, a.Message.Source.SessionID = m.ID, "2025-01-27T10:00:00Z", m.Thread
	hints := amptest.Object{}
	for name, value := range m.Extra {
		hints[name] = value
	}
	if m.Hops > 0 {
		hints["hops"] = m.Hops
	}
	a.Message.Headers["routing_hints"] = hints
	if !m.By.IsZero() {
		a.Message.Headers["timeout_ms"] = time.Until(m.By).Milliseconds()
	}
	return []byte(a.Text())
}

// Send implements [contract.Client].
func (c ampClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	return c.Post(ctx, c.Encode(m))
}

// Post implements [contract.Client].
func (c ampClient) Post(_ context.Context, body []byte) (contract.State, error) {
	return ampState(c.Client.Post(string(body)))
}

// Look implements [contract.Client].
func (c ampClient) Look(_ context.Context, m contract.Message) (contract.State, error) {
	return ampState(c.Get(strings.TrimSuffix(c.URL, "invoke") + "messages/" + gateway.PathOfID(m.ID)))
}

// Read implements [contract.Client].
func (ampClient) Read(context.Context, contract.Message, int64, func(contract.Piece)) (contract.State, error) {
	return contract.State{}, errors.ErrUnsupported
}

// Cancel implements [contract.Client].
func (ampClient) Cancel(context.Context, contract.Message) error { return errors.ErrUnsupported }

// ampReason is the kind of an error message.
func ampReason(code, reason string) contract.Reason {
	switch reason {
	case "CONFLICT":
		return contract.Conflict
	case "FORBIDDEN":
		return contract.Denied
	case "DRAINING":
		return contract.Stopping
	case "INTERNAL":
		return contract.Internal
	}
	return map[string]contract.Reason{
		"AGENT_NOT_FOUND": contract.Unknown, "CAPABILITY_NOT_FOUND": contract.Unknown, "AUTHENTICATION_FAILED": contract.NoCredential,
		"RATE_LIMIT_EXCEEDED": contract.Busy, "INVALID_SCHEMA": contract.Invalid, "TIMEOUT": contract.Stopping,
	}[code]
}

// ampState is what an HTTP reply means.
func ampState(r amptest.Reply, err error) (contract.State, error) {
	switch {
	case err != nil:
		return contract.State{}, err
	case r.Status == http.StatusAccepted:
		return contract.State{Status: contract.Working}, nil
	case r.Status == http.StatusRequestEntityTooLarge: // also by the listener, which reads no such body
		return contract.State{}, &contract.Refused{Reason: contract.Large, Text: r.Text}
	case r.Message == nil:
		return contract.State{}, fmt.Errorf("the reply is no message: %d %s", r.Status, r.Text)
	}
	m := *r.Message
	s := contract.State{Status: contract.Done, Thread: m.Message.Source.SessionID, Raw: r.Text}
	if m.Message.Type == "error" {
		code, text, reason := m.Fault()
		if code == "TIMEOUT" {
			return contract.State{Status: contract.Failed, Text: text, Raw: r.Text}, nil
		}
		return contract.State{}, &contract.Refused{Reason: ampReason(code, reason), Text: text}
	}
	s.Text = ampText(m.Result())
	if m.Message.Payload["status"] == "failed" {
		metadata, _ := m.Message.Payload["metadata"].(amptest.Object)
		s.Status, s.Text = contract.Failed, fmt.Sprint(metadata["message"])
	}
	return s, nil
}

// ampText is a text that a result has, or the result itself.
func ampText(result amptest.Object) string {
	if text, ok := result["text"].(string); ok && len(result) == 1 {
		return text
	}
	raw, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// serveAMP serves a foreign agent that answers in the HTTP reply.
func serveAMP(t testing.TB, address string, handle contract.Handler) (string, func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, err := amptest.Parse(text)
		if err != nil {
			t.Error(err)
		}
		status, answer := answerAMP(r.Context(), m, handle)
		if answer == nil {
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer.Text())
	}))
	_ = server.Listener.Close()
	server.Listener = l
	server.Start()
	return server.URL + "/invoke", func() {
		server.CloseClientConnections()
		server.Close()
	}
}

// answerAMP lets the foreign agent answer a message of ours.
func answerAMP(ctx context.Context, m amptest.Message, handle contract.Handler) (status int, answer *amptest.Message) {
	b := m.Message
	in := contract.Message{ID: b.ID, From: b.Source.AgentID, To: b.Destination.AgentID, Thread: b.Source.SessionID}
	parameters, _ := b.Payload["parameters"].(amptest.Object)
	in.Text, _ = parameters["body"].(string)
	if b.Type == "event" {
		in.Kind = contract.Tell
		in.Text, _ = b.Payload["body"].(string)
	}
	hints, _ := b.Headers["routing_hints"].(amptest.Object)
	hops, _ := hints["hops"].(float64)
	in.Hops = int(hops)
	s, err := handle(ctx, in, func(contract.Piece) {})
	var refused *contract.Refused
	var reply amptest.Message
	switch {
	case in.Kind == contract.Tell:
		return http.StatusAccepted, nil
	case errors.As(err, &refused):
		reply = m.Reply("error", amptest.Error("INVALID_SCHEMA", refused.Text))
		return http.StatusBadRequest, &reply
	case err != nil:
		return http.StatusInternalServerError, nil
	case s.Status == contract.Failed:
		reply = m.Reply("response", amptest.Object{"status": "failed", "result": amptest.Object{}, "metadata": amptest.Object{"message": s.Text}})
	default:
		reply = m.Reply("response", amptest.Result(amptest.Object{"text": s.Text}))
	}
	return http.StatusOK, &reply
}
