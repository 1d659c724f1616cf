package gateway_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/hosttest"
)

// partnerOfACP is a partner whose agents are agent*, and its key.
const partnerOfACP = `[gateways.acp]
dsl = "file:acme.acp"
[gateways.acp.partners.acme]
ids = ["agent*"]
may = ["ask", "tell"]
[[auth.keys]]
id = "acme"
role = "agent"
key = "the-token-of-acme-at-hive"
`

// withACP serves boss over ACP, too.
func withACP(file string) string {
	return strings.Replace(file, `expose = ["mcp", "a2a"]`, `expose = ["mcp", "a2a", "acp"]`, 1)
}

// newACPSite starts a host that serves acme over ACP, with a field x_order in its headers.
func newACPSite(t *testing.T) (*hosttest.Site, acptest.Client) {
	t.Helper()
	s := hosttest.EmptySite(t)
	text, err := os.ReadFile("../../../../spec/gateways/acp/acp-1.0.acp")
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "conversation_id: String?", "conversation_id: String?, x_order: Int?", 1))
	if err := os.WriteFile(filepath.Join(s.Dir, "acme.acp"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Write(withACP(file("hive", partnerOfACP)))
	s.Start()
	return s, acptest.Client{URL: s.URL() + "/acp/v1/messages", Token: "the-token-of-acme-at-hive"}
}

// TestHostServesACP (A-020, A-070, V-A16): a REQUEST to an exposed agent gets its
// RESPONSE, the same after a restart. Fields of the operator's are checked, and additional
// ones reach the agent and come back.
func TestHostServesACP(t *testing.T) {
	t.Parallel()
	s, acme := newACPSite(t)
	send := func(text string) acptest.Reply {
		t.Helper()
		r, err := acme.Send(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	q := acptest.New("REQUEST", "agentA", "boss", "hello")
	q.Header.ConversationID = "conv456"
	text := strings.Replace(q.Text(), `"header":{`, `"header":{"x_order":7,"x_trace":{"a":[1]},`, 1)
	first := send(text)
	if first.Status != http.StatusOK || first.Message == nil || first.Message.Header.Type != "RESPONSE" || first.Message.Header.ConversationID != "conv456" ||
		!strings.Contains(first.Message.Body, "hello") || !strings.Contains(first.Text, `"x_trace":{"a":[1]}`) {
		t.Fatalf("got %d %s", first.Status, first.Text)
	}
	s.Restart()
	acme.URL = s.URL() + "/acp/v1/messages"
	if again := send(text); again.Text != first.Text {
		t.Errorf("after a restart %s, not %s", again.Text, first.Text)
	}
	next := acptest.New("QUERY", "agentA", "boss@hive", "and then?")
	next.Header.ConversationID = "conv456"
	if r := send(next.Text()); r.Message == nil || r.Message.Header.Type != "INFORM" {
		t.Errorf("the conversation goes on with %d %s", r.Status, r.Text)
	}
	if r := send(strings.Replace(text, `"x_order":7`, `"x_order":"7"`, 1)); r.Status != http.StatusBadRequest || !strings.Contains(r.Text, "x_order") {
		t.Errorf("a field of another type: %d %s", r.Status, r.Text)
	}
	if r := send(acptest.New("REQUEST", "agentA", "hidden", "x").Text()); r.Status != http.StatusNotFound {
		t.Errorf("an unexposed agent: %d %s", r.Status, r.Text)
	}
	if r := send(acptest.New("INFORM", "agentA", "boss", "news").Text()); r.Status != http.StatusAccepted {
		t.Errorf("an INFORM: %d %s", r.Status, r.Text)
	}
	if lines := s.Audited("gateway.message"); len(lines) < 2 {
		t.Errorf("audited: %q", lines)
	}
	acme.Token = "no-token"
	if r := send(text); r.Status != http.StatusUnauthorized {
		t.Errorf("a stranger: %d %s", r.Status, r.Text)
	}
}
