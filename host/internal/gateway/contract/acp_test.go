package contract_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/contract"
)

// TestACP (A-010, A-012, A-020, A-042, G-042, V-A05, V-A16): the contract of gateways, held by
// ACP over HTTP. Its case 07 has a second message of a conversation, its case 26 further header
// fields, its case 27 a peer that answers all.
func TestACP(t *testing.T) {
	t.Parallel()
	contract.Run(t, acpProtocol())
}

func acpProtocol() contract.Protocol {
	return contract.Protocol{
		Name: "acp", Self: "depot-1", Realms: true,
		Without: map[string]string{
			"06/realm":    "it has no word for a call that waits for a person",
			"14":          "it has no stream to read again; TestSocketEnds and TestRevoked of package acp end connections and calls",
			"17/realm":    "a message has no deadline",
			"18":          "it has no word for withdrawing a message",
			"19":          "it has no word for withdrawing a message",
			"20":          "it has no stream to read again; TestSocket of package acp has progress",
			"21":          "it has no stream to read again",
			"22/question": "it has no word for a call that waits for a person",
			"22/stream":   "it has no stream to read again",
			"25":          "a body is a text, of at most 1 MiB",
		},
		Dial: func(_ testing.TB, url, token string) contract.Client {
			return acpClient{acptest.Client{URL: url + "/acp/v1/messages", Token: token}}
		},
		Serve: serveACP,
	}
}

// acpClient is a realm's agent.
type acpClient struct{ acptest.Client }

// sender is the agent of the client's token.
func (c acpClient) sender() string { return senderOf(c.Token) }

// senderOf is the agent of a token that the partner's ids allow: of the token of depot
// depot-1, and of a partner without ids the partner itself.
func senderOf(token string) string {
	m := tokenName.FindStringSubmatch(token)
	switch {
	case m == nil:
		return "far"
	case m[1] == "depot", m[1] == "shop":
		return m[1] + "-1"
	}
	return m[1]
}

// Encode implements [contract.Client].
func (c acpClient) Encode(m contract.Message) []byte {
	kind := "REQUEST"
	if m.Kind == contract.Tell {
		kind = "INFORM"
	}
	from := m.From
	if from == "" {
		from = c.sender()
	}
	a := acptest.New(kind, from, m.To, m.Text)
	a.Header.ID, a.Header.Timestamp, a.Header.ConversationID = m.ID, "2023-10-25T10:00:00Z", m.Thread
	if m.Thread == "" {
		a.Header.ConversationID = "conversation of " + m.ID
	}
	if m.Kind == contract.Answer {
		a.Header.Type, a.Header.ReplyTo = "RESPONSE", m.Question.ID
	}
	text := a.Text()
	if m.Hops > 0 {
		text = strings.Replace(text, `"header":{`, fmt.Sprintf(`"header":{"x_hops":%d,`, m.Hops), 1)
	}
	for name, value := range m.Extra {
		text = strings.Replace(text, `"header":{`, fmt.Sprintf(`"header":{%q:%q,`, name, value), 1)
	}
	return []byte(text)
}

// Send implements [contract.Client].
func (c acpClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	return c.Post(ctx, c.Encode(m))
}

// Post implements [contract.Client].
func (c acpClient) Post(_ context.Context, body []byte) (contract.State, error) {
	return acpState(c.Client.Send(string(body)))
}

// plain are the characters of ids that stand in an address as they are.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// Look implements [contract.Client].
func (c acpClient) Look(_ context.Context, m contract.Message) (contract.State, error) {
	place := m.ID
	if strings.ContainsFunc(m.ID, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		place = "~" + base64.RawURLEncoding.EncodeToString([]byte(m.ID))
	}
	return acpState(c.Get(c.URL + "/" + place))
}

// Read implements [contract.Client].
func (acpClient) Read(context.Context, contract.Message, int64, func(contract.Piece)) (contract.State, error) {
	return contract.State{}, errors.ErrUnsupported
}

// Cancel implements [contract.Client].
func (acpClient) Cancel(context.Context, contract.Message) error { return errors.ErrUnsupported }

// acpReasons are the codes of ERROR messages.
var acpReasons = map[string]contract.Reason{
	"malformed": contract.Invalid, "unsupported_version": contract.Invalid, "unknown_receiver": contract.Unknown, "forbidden": contract.Denied,
	"duplicate": contract.Conflict, "busy": contract.Busy, "internal": contract.Internal,
}

// acpReason is why an ERROR message refuses. A host that stops has no code of its own.
func acpReason(f acptest.Fault) contract.Reason {
	if f.Code == "busy" && strings.Contains(f.Message, "shutting down") {
		return contract.Stopping
	}
	return acpReasons[f.Code]
}

// acpStatuses are the refusals of what gets no ERROR.
var acpStatuses = map[int]contract.Reason{
	http.StatusUnauthorized: contract.NoCredential, http.StatusForbidden: contract.Denied, http.StatusNotFound: contract.Unknown,
	http.StatusConflict: contract.Conflict, http.StatusTooManyRequests: contract.Busy, http.StatusServiceUnavailable: contract.Stopping,
	http.StatusRequestEntityTooLarge: contract.Large, http.StatusBadRequest: contract.Invalid,
}

// acpState is what an HTTP reply means.
func acpState(r acptest.Reply, err error) (contract.State, error) {
	if err != nil {
		return contract.State{}, err
	}
	switch {
	case r.Status == http.StatusAccepted:
		return contract.State{Status: contract.Working}, nil
	case r.Message == nil:
		return contract.State{}, &contract.Refused{Reason: acpStatuses[r.Status], Text: r.Text}
	}
	m := *r.Message
	var raw struct {
		Header map[string]any `json:"header"`
	}
	if err := json.Unmarshal([]byte(r.Text), &raw); err != nil {
		return contract.State{}, err
	}
	s := contract.State{Status: contract.Done, Thread: m.Header.ConversationID, Text: m.Body, Raw: r.Text, Extra: raw.Header}
	if r.Status == http.StatusOK && m.Header.Type != "ERROR" {
		return s, nil
	}
	fault, err := acptest.ParseFault(m)
	switch {
	case err != nil:
		return contract.State{}, err
	case r.Status == http.StatusRequestEntityTooLarge:
		return contract.State{}, &contract.Refused{Reason: contract.Large, Text: fault.Message}
	case r.Status != http.StatusOK:
		return contract.State{}, &contract.Refused{Reason: acpReason(fault), Text: fault.Message}
	}
	s.Status, s.Text = contract.Failed, fault.Message
	return s, nil
}

// serveACP serves a foreign agent that answers in the HTTP reply.
func serveACP(t testing.TB, address string, handle contract.Handler) (string, func()) {
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
		m, err := acptest.Parse(text)
		if err != nil {
			t.Error(err)
		}
		status, answer := answerACP(r.Context(), m, hopsOf(t, text), handle)
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
	return server.URL + "/acp", func() {
		server.CloseClientConnections()
		server.Close()
	}
}

// hopsOf is how often a message was handed on.
func hopsOf(t testing.TB, text []byte) int {
	var raw struct {
		Header struct {
			Hops int `json:"x_hops"`
		} `json:"header"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Error(err)
	}
	return raw.Header.Hops
}

// answerACP lets the foreign agent answer a message of ours.
func answerACP(ctx context.Context, m acptest.Message, hops int, handle contract.Handler) (status int, answer *acptest.Message) {
	in := contract.Message{ID: m.Header.ID, From: m.Header.Sender, To: m.Header.Receiver, Thread: m.Header.ConversationID, Text: m.Body, Hops: hops}
	if m.Header.Type == "INFORM" {
		in.Kind = contract.Tell
	}
	s, err := handle(ctx, in, func(contract.Piece) {})
	var refused *contract.Refused
	reply := m.Reply("RESPONSE", s.Text)
	switch {
	case in.Kind == contract.Tell:
		return http.StatusAccepted, nil
	case errors.As(err, &refused):
		reply = m.Reply("ERROR", acpError(string(refused.Reason), refused.Text))
		return http.StatusBadRequest, &reply
	case err != nil:
		return http.StatusInternalServerError, nil
	case s.Status == contract.Failed:
		reply = m.Reply("ERROR", acpError("failed", s.Text))
	}
	return http.StatusOK, &reply
}

func acpError(code, text string) string {
	raw, err := json.Marshal(map[string]string{"code": code, "message": text})
	if err != nil {
		panic(err)
	}
	return string(raw)
}
