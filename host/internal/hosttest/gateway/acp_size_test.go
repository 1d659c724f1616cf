package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"skep/host/client"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/acptest/peers"
	"skep/host/internal/hosttest"
)

// largeBody is 900 KiB, of which JSON makes 956 KiB.
var largeBody = strings.Repeat("fourteen byte\n\n", 900<<10/15+1)[:900<<10]

// blobOf is how an agent sees a body that is larger than a message to it may be.
func blobOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// remembered is a script that returns what came to the agent in its task.
var remembered = strings.ReplaceAll(hosttest.Script(hosttest.Step{"history", hosttest.Args{"after": 0, "limit": 10}},
	hosttest.Step{"task_complete", hosttest.Args{"finish_message": "{{0}}"}}), `{\u007b`, "{{")

// TestLargeMessagesOverACP: a body of 900 KiB reaches our agent whole, and
// so does one in the answer to its own question, over a WebSocket and over HTTP.
func TestLargeMessagesOverACP(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]peers.Options{
		"websocket": {Name: "agentA", URL: "ws"}, "http": {Name: "agentA"}, "http later": {Name: "agentA", Later: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.AnswerBytes = len(largeBody)
			hive, agent := newACPPeer(t, o, "")
			talk := func(body string) acptest.Message {
				t.Helper()
				question := agent.Send(t, map[string]any{"receiver": "boss", "type": "REQUEST", "body": body, "conversation_id": "large"})
				got := agent.Receive(t)
				wantAnswer(t, got, question, "RESPONSE", "")
				return got
			}
			talk(largeBody)
			if got := talk(remembered); !strings.Contains(got.Body, blobOf(largeBody)) {
				t.Errorf("our agent has got %s", got.Body)
			}
			ask := func(body string) string {
				t.Helper()
				got, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Task: "large", Body: body})
				if err != nil {
					t.Fatal(err)
				}
				return got.Body
			}
			ask(hosttest.RequestOf("agentA@shop", largeBody[:15]))
			if got := ask(remembered); !strings.Contains(got, blobOf(largeBody)) {
				t.Errorf("our agent has the answer %s", got)
			}
			agent.End(t)
		})
	}
}

// smallBody is max_body of the hosts below, in bytes.
const smallBody = 64 << 10

// newSmallACP starts a host with the partner shop that takes messages of [smallBody]; more are
// keys of the partner's table.
func newSmallACP(t *testing.T, more string) *hosttest.Site {
	t.Helper()
	return hosttest.NewSite(t, withACP(file("hive", strings.Replace(shopOverACP(more), "hold", "max_body = \"64KiB\"\nhold", 1))))
}

// fill gives a message a body with which it has so many bytes.
func fill(m acptest.Message, bytes int) acptest.Message {
	m.Body = ""
	m.Body = strings.Repeat("x", bytes-len(m.Text()))
	return m
}

// TestMaxBodyOfACP: a message of max_body is taken, and one with a byte more is refused with
// the name of max_body. Nothing is kept of it: its id, in a smaller message, is new.
func TestMaxBodyOfACP(t *testing.T) {
	t.Parallel()
	hive := newSmallACP(t, "")
	shop := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: shopToken}
	send := func(m acptest.Message, status int, text string) {
		t.Helper()
		r, err := shop.Send(m.Text())
		if err != nil || r.Status != status || !strings.Contains(r.Text, text) {
			t.Errorf("%d bytes got %d %.300s, %v", len(m.Text()), r.Status, r.Text, err)
		}
	}
	m := acptest.New("REQUEST", "agentA", "boss", "")
	m.Header.ConversationID = "sizes"
	const refused = "larger than 65536 bytes; raise max_body of [gateways.acp]"
	send(fill(m, smallBody+1), http.StatusRequestEntityTooLarge, refused)
	send(fill(m, smallBody), http.StatusOK, `"RESPONSE"`)
	send(fill(m, smallBody+1), http.StatusRequestEntityTooLarge, refused)
	m.Header.ID, m.Body = "last", remembered
	send(m, http.StatusOK, `xxx`)
}

// TestMaxBodyOfSocket: a message above max_body ends a WebSocket with a reason. The question
// that waited there keeps its turn, and its repeat on the next WebSocket has the answer.
func TestMaxBodyOfSocket(t *testing.T) {
	t.Parallel()
	hive := newSmallACP(t, "")
	shop := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: shopToken}
	dial := func() *acptest.Socket {
		t.Helper()
		s, err := acptest.Dial(t.Context(), hive.URL(), shopToken)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	send := func(s *acptest.Socket, m acptest.Message) {
		t.Helper()
		if err := s.Send(t.Context(), m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	first, waits := dial(), acptest.New("REQUEST", "agentA", "boss", hosttest.RequestOf("agentB@shop", "how many?"))
	send(first, waits)
	asked, err := first.Read(t.Context())
	if err != nil || asked.Body != "how many?" {
		t.Fatalf("agentB is asked %+v, %v", asked, err)
	}
	send(first, fill(acptest.New("INFORM", "agentA", "boss", ""), smallBody+1))
	if got, err := first.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig || !strings.Contains(err.Error(), "max_body") {
		t.Errorf("the first WebSocket ends with %v, %+v", err, got)
	}
	next := dial()
	send(next, waits)
	if r, err := shop.Send(asked.Reply("RESPONSE", "seven").Text()); err != nil || r.Status != http.StatusAccepted {
		t.Fatalf("the answer got %d %s, %v", r.Status, r.Text, err)
	}
	got, err := next.Read(t.Context())
	for ; err == nil && got.Header.ID == asked.Header.ID; got, err = next.Read(t.Context()) { // it is sent again
	}
	if err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, got, waits, "RESPONSE", "seven")
}

// TestMaxBodyOfPartner: an answer above max_body is refused to the agent of ours that
// asked, with the limit; its task goes on, and the next answer reaches it.
func TestMaxBodyOfPartner(t *testing.T) {
	t.Parallel()
	shop := acptest.NewAgent(t, func(m acptest.Message) (*acptest.Message, int) {
		answer := m.Reply("RESPONSE", "")
		answer = fill(answer, smallBody+map[string]int{"one more": 1}[m.Body])
		return &answer, 0
	})
	hive := newSmallACP(t, "allow_private = true\nurl = \""+shop.URL+"/acp\"")
	if got := asked(t, hive, "agentB@shop", "one more"); !strings.Contains(got, "max_body of [gateways.acp]") {
		t.Errorf("our agent is told %q", got)
	}
	if got := asked(t, hive, "agentB@shop", "enough"); !strings.Contains(got, "xxx") {
		t.Errorf("our agent is told %.300q", got)
	}
	if n := len(shop.Got()); n != 2 {
		t.Errorf("the shop is asked %d times", n)
	}
}
