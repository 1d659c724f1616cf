package agent_test

import (
	"testing"

	"skep/host/internal/gateway/amp/amptest"
)

// meteredSwarm has an agent for partners over AMP whose answers a model writes.
const meteredSwarm = `schema = 1
[swarm]
name = "desk"
entrypoint = "lead"
enable_interswarm = true
[agents.lead]
source = "bundled:llm"
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
expose = ["amp"]
allow = { llm = ["default"] }
params = { system = "You answer customers." }
[models.default]
provider = "script"
model = "gpt-4"
cassette = "rules.toml"
[gateways.amp.partners.acme]
ids = ["agent-*"]
[[auth.keys]]
id = "acme"
role = "agent"
key = "the-token-of-acme-at-desk"
`

const meteredRules = `
[[rule]]
last = [{ role = "user", match = '<body>\nand two' }]
text = "Twenty."
usage = { input_tokens = 120, output_tokens = 7 }
[[rule]]
last = [{ role = "user", match = '<body>\nwhat do hives cost' }]
text = "Ten each."
usage = { input_tokens = 100, output_tokens = 50 }
`

// TestAMPAnswerHasUsage (M-025): an answer has the models that were used for it, and how many tokens
// its turns have consumed, without those of other questions of the conversation. A repeat of the
// question gets the same.
func TestAMPAnswerHasUsage(t *testing.T) {
	t.Parallel()
	h := startLLM(t, meteredSwarm, meteredRules)
	c := amptest.Client{URL: h.URL() + "/amp/v1/invoke", Token: "the-token-of-acme-at-desk"}
	for _, q := range []struct {
		text   string
		tokens float64
	}{{"what do hives cost?", 150}, {"and two?", 127}} {
		m := amptest.Mail("agent-1", "lead", q.text)
		m.Message.Source.SessionID = "s-1"
		first, err := c.Send(m)
		if err != nil || first.Message == nil {
			t.Fatalf("%s: %d %s, %v", q.text, first.Status, first.Text, err)
		}
		metadata, _ := first.Message.Message.Payload["metadata"].(amptest.Object)
		if metadata["tokens_consumed"] != q.tokens || metadata["model_used"] != "gpt-4" {
			t.Errorf("%s: %s", q.text, first.Text)
		}
		if again, err := c.Send(m); err != nil || again.Text != first.Text {
			t.Errorf("%s: again %s, %v", q.text, again.Text, err)
		}
	}
}
