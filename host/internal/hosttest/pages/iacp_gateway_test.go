package pages_test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// TestIACPGatewayPage (I-001, I-028, I-062, I-063): the files of the page on IaCP are whole as
// they stand, its commands and messages have the answers that it shows, and the host connects
// to a hub in the place of the page's.
func TestIACPGatewayPage(t *testing.T) {
	t.Parallel()
	hub, err := iacptest.Listen(t.Context(), "127.0.0.1:0", "a-key-of-ours-at-the-mill", "ack")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	go serveMill(hub)
	page, address := hosttest.ReadText(t, "../../../docs/iacp.md"), hosttest.FreeAddress(t, "127.0.0.1")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	w := newWalk(t, "swarm.toml", "depot.py")
	w.samples = []string{"json"}
	w.replace = []string{
		"127.0.0.1:9000", address, `("127.0.0.1", 9000)`, `("127.0.0.1", ` + port + `)`,
		`"iacps://mill.example:9000"`, `"iacp://` + hub.Addr().String() + "\"\nallow_private = true",
	}
	const ping = "SKEP_TOKEN=a-key-of-the-operator-on-this-machine skep gateway ping mill"
	w.waits[ping] = "for n in $(seq 600); do " + ping + " | grep -q active && break; sleep 0.1; done"
	w.read(page)
	if w.tried != 6 {
		t.Errorf("%d commands", w.tried)
	}
	exchangeOfPage(t, page, address)
}

// exchangeOfPage sends the messages of the page, and wants the answer that it shows, but for what
// is new in each answer.
func exchangeOfPage(t *testing.T, page, address string) {
	t.Helper()
	var messages []iacptest.Message
	for _, block := range strings.Split(page, "```json\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		m := iacptest.Message{Raw: text}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		messages = append(messages, m)
	}
	if len(messages) != 3 {
		t.Fatalf("the page has %d messages", len(messages))
	}
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	c := iacptest.Begun(raw)
	auth := iacptest.New("auth", "depot-1", "", map[string]any{"method": "token", "token": "a-key-of-the-depot-on-this-machine"})
	for _, step := range []struct{ send, answer string }{
		{messages[0].Raw, "handshake_ack"}, {string(auth.Text()), "auth_result"}, {messages[1].Raw, "ack"},
	} {
		if err := c.Send([]byte(step.send)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Read(); err != nil || got.Type != step.answer {
			t.Fatalf("%s is answered by %s, %v", step.send, got.Raw, err)
		}
	}
	got, err := c.Read()
	want := messages[2]
	want.ID, want.Timestamp, want.Conversation = got.ID, got.Timestamp, got.Conversation
	if err != nil || string(got.Text()) != string(want.Text()) {
		t.Errorf("the answer is %s, %v, want %s", got.Raw, err, want.Raw)
	}
}

// serveMill lets the host register at a hub whose agent is mill-1, until the hub is closed.
func serveMill(hub *iacptest.Hub) {
	for {
		c, err := hub.Spoke()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for {
				m, err := c.Read()
				if err != nil {
					return
				}
				if m.Type == "agent_register" {
					_ = c.Send(m.Reply("agent_register_response", map[string]any{"status": "registered", "agents": []any{map[string]any{"agent_id": "mill-1"}}}).Text())
				}
			}
		}()
	}
}
