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

// ownHeaderFields are the header fields that the operator of newACPSite declares.
const ownHeaderFields = "x_token: String, x_capabilities: List<String>?, x_order: Int?"

// newACPSite starts a host that serves acme over ACP, with ownHeaderFields.
func newACPSite(t *testing.T) (*hosttest.Site, acptest.Client) {
	t.Helper()
	s := hosttest.EmptySite(t)
	text, err := os.ReadFile("../../../../spec/gateways/acp/acp-1.0.acp")
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "conversation_id: String?", "conversation_id: String?, "+ownHeaderFields, 1))
	if err := os.WriteFile(filepath.Join(s.Dir, "acme.acp"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Write(withACP(file("hive", partnerOfACP)))
	s.Start()
	return s, acptest.Client{URL: s.URL() + "/acp/v1/messages", Token: "the-token-of-acme-at-hive"}
}

// TestHostServesACP (A-012, A-020, A-070, V-A16): a REQUEST to an exposed agent gets its
// RESPONSE, the same after a restart. Fields of the operator's are demanded and checked;
// they and additional ones reach the agent and come back.
func TestHostServesACP(t *testing.T) {
	t.Parallel()
	s, acme := newACPSite(t)
	send := func(m acptest.Message, fields string) acptest.Reply {
		t.Helper()
		r, err := acme.Send(strings.Replace(m.Text(), `"header":{`, `"header":{`+fields, 1))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	q := acptest.New("REQUEST", "agentA", "boss", "hello")
	q.Header.ConversationID = "conv456"
	fields := []string{`"x_token":"octarine"`, `"x_capabilities":["ask","tell"]`, `"x_order":7`, `"x_trace":{"a":[1]}`}
	own := strings.Join(fields, ",") + ","
	first := send(q, own)
	if first.Status != http.StatusOK || first.Message == nil || first.Message.Header.Type != "RESPONSE" || first.Message.Header.ConversationID != "conv456" ||
		!strings.Contains(first.Message.Body, "hello") {
		t.Fatalf("got %d %s", first.Status, first.Text)
	}
	for _, field := range fields {
		if !strings.Contains(first.Text, field) {
			t.Errorf("%s does not come back in %s", field, first.Text)
		}
	}
	s.Restart()
	acme.URL = s.URL() + "/acp/v1/messages"
	if again := send(q, own); again.Text != first.Text {
		t.Errorf("after a restart %s, not %s", again.Text, first.Text)
	}
	history := hosttest.Step{"history", hosttest.Args{"after": 0, "limit": 10}}
	next := acptest.New("QUERY", "agentA", "boss@hive", hosttest.Script(history, hosttest.Step{"task_complete", hosttest.Args{"finish_message": "{{0}}"}}))
	next.Header.ConversationID = "conv456"
	seen := send(next, `"x_token":"t",`)
	if seen.Message == nil || seen.Message.Header.Type != "INFORM" {
		t.Fatalf("the conversation goes on with %d %s", seen.Status, seen.Text)
	}
	for _, field := range fields {
		if !strings.Contains(seen.Message.Body, field) {
			t.Errorf("the agent does not see %s but %s", field, seen.Message.Body)
		}
	}
	for fields, place := range map[string]string{
		"": "x_token: is missing", `"x_token":7,`: "x_token: is no string", `"x_token":"t","x_order":"7",`: "x_order: is no whole number",
		`"x_token":"t","x_capabilities":["ask",7],`: "x_capabilities[1]: is no string",
	} {
		r := send(acptest.New("REQUEST", "agentA", "boss", "hello"), fields)
		if r.Status != http.StatusBadRequest || r.Message == nil || !strings.HasPrefix(r.Message.Body, "malformed: Message.header."+place) {
			t.Errorf("%s got %d %s", fields, r.Status, r.Text)
		}
	}
	if r := send(acptest.New("REQUEST", "agentA", "hidden", "x"), `"x_token":"t",`); r.Status != http.StatusNotFound {
		t.Errorf("an unexposed agent: %d %s", r.Status, r.Text)
	}
	if r := send(acptest.New("INFORM", "agentA", "boss", "news"), `"x_token":"t",`); r.Status != http.StatusAccepted {
		t.Errorf("an INFORM: %d %s", r.Status, r.Text)
	}
	hosttest.Eventually(t, "the refusals in the audit log", func() bool { return len(s.Audited("gateway.message")) >= 2 })
	acme.Token = "no-token"
	if r := send(q, own); r.Status != http.StatusUnauthorized {
		t.Errorf("a stranger: %d %s", r.Status, r.Text)
	}
}

// TestTimeoutOverACP (A-026, V-A18): a REQUEST to an agent that waits for another until
// the time of its task is over is answered by an ERROR with the code timeout, and so is a
// repeat after a restart.
func TestTimeoutOverACP(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, withACP(file("hive", "[limits]\ntask_timeout = \"1s\"\n"+strings.Replace(partnerOfACP, `dsl = "file:acme.acp"`, "", 1))))
	acme := acptest.Client{URL: s.URL() + "/acp/v1/messages", Token: "the-token-of-acme-at-hive"}
	q := acptest.New("REQUEST", "agentA", "boss", hosttest.RequestOf("agentB@acme", "how many?"))
	q.Header.ContentType, q.Header.ConversationID = "application/json", "conv456"
	first, err := acme.Send(q.Text())
	if err != nil || first.Status != http.StatusOK || first.Message == nil {
		t.Fatalf("got %d %s, %v", first.Status, first.Text, err)
	}
	h := first.Message.Header
	fault, err := acptest.ParseFault(*first.Message)
	if err != nil || fault.Code != "timeout" || fault.Message != "The time for the request is over." || *fault.Retry ||
		h.ReplyTo != q.Header.ID || h.ConversationID != "conv456" || h.Sender != "boss" {
		t.Errorf("got %s, %v", first.Text, err)
	}
	s.Restart()
	acme.URL = s.URL() + "/acp/v1/messages"
	if again, err := acme.Send(q.Text()); err != nil || again.Text != first.Text {
		t.Errorf("after a restart %s, not %s: %v", again.Text, first.Text, err)
	}
}
