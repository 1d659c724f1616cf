package pages_test

import (
	"encoding/json"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// TestIACPGatewayPage (I-001, I-028, I-062, I-063): the commands and messages of the page on IaCP
// go with its tables, beside a hub to which the host connects.
func TestIACPGatewayPage(t *testing.T) {
	t.Parallel()
	page, p := hosttest.ReadText(t, "../../../docs/gateway-iacp.md"), install(t)
	hub, err := iacptest.Listen(t.Context(), "127.0.0.1:0", "the-token-of-the-mill", "ack")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	go serveMill(hub)
	blocks := strings.Split(page, "```toml\n")
	if len(blocks) != 3 {
		t.Fatalf("the page has %d tables", len(blocks)-1)
	}
	tables, _, _ := strings.Cut(blocks[1], "```")
	mill, _, _ := strings.Cut(blocks[2], "```")
	address := hosttest.FreeAddress(t, "127.0.0.1")
	text := strings.NewReplacer(
		"bundled:script\"\n", "file:script.wasm\"\nenable_entrypoint = true\ncan_complete_tasks = true\n", "127.0.0.1:9000", address,
		`"iacps://mill.example:9000"`, `"iacp://`+hub.Addr().String()+"\"\nallow_private = true", `entrypoint = "calc"`, "entrypoint = \"clerk\"\nenable_interswarm = true",
	).Replace(swarmOfTables + tables + mill)
	h, _ := hosttest.StartText(t, text, map[string]string{"DEPOT_KEY": "the-token-of-the-depot", "MILL_TOKEN": "the-token-of-the-mill"})
	exchangeOfPage(t, page, address)
	hosttest.SystemProgram(t, "curl")
	all := consolesIn(page)
	if len(all) != 2 {
		t.Errorf("the page has %d commands", len(all))
	}
	for _, s := range all {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "PATH="+filepath.Dir(p.path)+":$PATH; "+strings.ReplaceAll(s.command, "127.0.0.1:9000", address))
		cmd.Env = append(p.env[:len(p.env):len(p.env)], "SKEP_URL="+h.URL(), "SKEP_TOKEN=a-key-of-the-operator")
		if out, err := cmd.CombinedOutput(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
	}
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
	auth := iacptest.New("auth", "depot-1", "", map[string]any{"method": "token", "token": "the-token-of-the-depot"})
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
