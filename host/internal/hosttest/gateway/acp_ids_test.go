package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/hosttest"
)

// twoPartnersOverACP are acme and depot, whose agents have the same ids.
const twoPartnersOverACP = `[gateways.acp]
[gateways.acp.partners.acme]
ids = ["*"]
[gateways.acp.partners.depot]
ids = ["*"]
[[auth.keys]]
id = "acme"
role = "agent"
key = "the-token-of-acme-at-hive"
[[auth.keys]]
id = "depot"
role = "agent"
key = "the-token-of-depot-at-hive"
`

// TestLikeIDsOverACP: ids of messages and conversations that differ in case, in
// the form of Unicode or in a space at the end only are different ones, and those of two partners
// are. Each message has its own turn, and a repeat its answer; no conversation sees another.
func TestLikeIDsOverACP(t *testing.T) {
	t.Parallel()
	hive := hosttest.NewSite(t, strings.Replace(withACP(file("hive", twoPartnersOverACP)), "[agents.boss]\n", "[agents.boss]\nallow = { kv = \"task\" }\n", 1))
	type message struct{ token, sender, id, conversation string }
	var sent []message
	for _, token := range []string{"the-token-of-acme-at-hive", "the-token-of-depot-at-hive"} {
		for _, id := range []string{"m1", "M1", "caf\u00e9", "cafe\u0301", "\u212a", "k", "K", "a/b", "a%2Fb", "~YQ", "a"} {
			sent = append(sent, message{token, "agentA", id, id})
		}
	}
	keep := func(m message, value string) acptest.Message {
		q := acptest.New("REQUEST", m.sender, "boss", hosttest.Script(
			hosttest.Step{"kv.get", hosttest.Args{"key": "k", "scope": "task"}}, hosttest.Step{"kv.put", hosttest.Args{"key": "k", "value": value, "scope": "task"}},
			hosttest.Step{"task_complete", hosttest.Args{"finish_message": value + " after {{0}}"}}))
		q.Header.ID, q.Header.ConversationID, q.Header.Timestamp = m.id, m.conversation, "2026-01-01T00:00:00Z"
		return q
	}
	for _, again := range []bool{false, true} {
		for i, m := range sent {
			client := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: m.token}
			value := strings.Repeat("x", i+1)
			r, err := client.Send(keep(m, value).Text())
			if err != nil || r.Status != http.StatusOK || r.Message == nil || r.Message.Header.ReplyTo != m.id || r.Message.Header.ConversationID != m.conversation ||
				!strings.HasPrefix(r.Message.Body, value+" after ERROR NOT_FOUND") {
				t.Errorf("%q of %s (a repeat: %v) got %d %s, %v", m.id, m.token, again, r.Status, r.Text, err)
			}
		}
	}
}
