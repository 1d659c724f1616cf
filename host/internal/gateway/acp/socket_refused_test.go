package acp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/wire"
)

// TestSocketRefused: a WebSocket without the subprotocol acp.v1 is not opened, one that
// lists it among others has it, and a binary frame ends one.
func TestSocketRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	url := strings.Replace(s.server.URL, "http", "ws", 1) + "/acp/v1/ws"
	o := websocket.DialOptions{HTTPClient: s.server.Client(), HTTPHeader: http.Header{"Authorization": {"Bearer " + s.Token}}}
	conn, r, err := websocket.Dial(t.Context(), url, &o)
	if err == nil {
		_ = conn.CloseNow()
	}
	if err == nil || r == nil || r.StatusCode != http.StatusBadRequest {
		t.Fatalf("without a subprotocol: %v, %v", r, err)
	}
	o.Subprotocols = []string{"acp.v2", "acp.v1"}
	conn, _, err = websocket.Dial(t.Context(), url, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	if conn.Subprotocol() != "acp.v1" {
		t.Errorf("the subprotocol is %q", conn.Subprotocol())
	}
	if err := conn.Write(t.Context(), websocket.MessageBinary, []byte(document)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("after a binary frame: %v", err)
	}
}

// TestSocketRefusedTell: what only tells and is refused gets an ERROR with the reason
// where it asks for an ACKNOWLEDGE, and nothing where it does not.
func TestSocketRefusedTell(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	conn := s.dial(t)
	for _, c := range []struct{ kind, sender, receiver, replyTo, want string }{
		{"INFORM", "agentA", "clac", "", `unknown_receiver: there is no receiver "clac"; did you mean "calc"?`},
		{"INFORM", "mallory", "calc", "", `forbidden: "mallory" is not an agent of "acme"`},
		{"RESPONSE", "agentA", "calc", "m1", `unknown_receiver: reply_to "m1": no question with this id`},
	} {
		quiet := acptest.New(c.kind, c.sender, c.receiver, "news")
		quiet.Header.ReplyTo = c.replyTo
		if err := conn.Send(t.Context(), quiet.Text()); err != nil {
			t.Fatal(err)
		}
		asks := acptest.New(c.kind, c.sender, c.receiver, "news")
		asks.Header.ReplyTo = c.replyTo
		m := exchange(t, conn, strings.Replace(asks.Text(), `"header":{`, `"header":{"x_ack":"requested",`, 1))
		if m.Header.Type != "ERROR" || m.Header.ReplyTo != asks.Header.ID || !strings.HasPrefix(m.Body, c.want) {
			t.Errorf("%s to %s: %+v; want %s", c.kind, c.receiver, m, c.want)
		}
	}
}

// noPlace is a pace at which nothing has a place.
type noPlace struct{ wire.Within }

func (noPlace) Acquire(int64) error { return errors.New("bodies are on their way") }

// TestSocketUnread: a message that is too slow, or has no place, ends its socket, and
// its refusal is among the events that operators read.
func TestSocketUnread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pace   wire.Pace
		status websocket.StatusCode
		reason string
	}{
		{wire.Within(50 * time.Millisecond), websocket.StatusPolicyViolation, "not whole in its time"},
		{noPlace{wire.Within(time.Hour)}, websocket.StatusTryAgainLater, "there is no place for a message"},
	} {
		s := newSite(t, func(o *acp.Options) { o.Pace = func(string) wire.Pace { return c.pace } })
		conn, _, err := websocket.Dial(t.Context(), strings.Replace(s.server.URL, "http", "ws", 1)+"/acp/v1/ws", &websocket.DialOptions{
			HTTPClient: s.server.Client(), HTTPHeader: http.Header{"Authorization": {"Bearer " + s.Token}}, Subprotocols: []string{"acp.v1"},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		w, err := conn.Writer(t.Context(), websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != c.status || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("the peer has %v, want %v", err, c.status)
		}
		for deadline := time.Now().Add(time.Minute); s.g.Health().Connections > 0; time.Sleep(time.Millisecond) { // the event comes before the end
			if time.Now().After(deadline) {
				t.Fatal("the socket does not end")
			}
		}
		events := s.rt.Events()
		if len(events) != 1 {
			t.Fatalf("the events are %+v", events)
		}
		last := events[0]
		if last.Verdict != "refused" || !strings.Contains(last.Reason, c.reason) {
			t.Errorf("the event is %+v, want %q", last, c.reason)
		}
	}
}
