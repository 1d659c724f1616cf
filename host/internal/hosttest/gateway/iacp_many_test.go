package gateway_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest/peers"
	"skep/host/internal/hosttest"
)

// TestSoakIACP (I-027, I-057, I-059, V-I46): questions of one conversation, thousands in the
// long form, reach their agent in the order in which a spoke has sent them, each once, and
// each has its answer, while the spoke's connection is cut and the host restarted: each
// question advances a value that only the one before can have set. What a stopping host
// refuses the spoke sends again.
func TestSoakIACP(t *testing.T) {
	t.Parallel()
	many, cuts := 300, "[50, 120]"
	if os.Getenv("SKEP_SOAK") != "" {
		many, cuts = 10_000, "[50, 3000]"
	}
	s, addr := newFramedSite(t, false, "[gateways.iacp]\n", "[limits]\ntask_messages = 0\n[gateways.iacp]\nrate_limit = { requests = 100_000, per = \"1m\" }\n")
	spoke := peers.Start(t, "spoke", "--connect", addr, "--agent-id", "depot-1", "--backoff", "0.1", "--patience", "300", "--api-key", "a-token-of-the-realm-depot")
	spoke.Next(t, "registered")
	script := hosttest.Script(hosttest.Step{"kv.cas", hosttest.Args{"key": "n", "expect": nil, "value": "-1", "scope": "task"}},
		hosttest.Step{"kv.cas", hosttest.Args{"key": "n", "expect": "#P", "value": "#N", "scope": "task"}},
		hosttest.Step{"send_response", hosttest.Args{"target": "depot-1@depot", "subject": "s", "body": "{{1}}"}})
	script = strings.ReplaceAll(script, `{\u007b`, "{{")
	spoke.Begin(t, fmt.Sprintf(`{"to":"clerk","flood":%d,"drop_at":%s,"want":"\"ok\": true","send":{"message_type":"task_request","payload":{"task_type":"mail.message","parameters":{"body":%q}}}}`, many, cuts, script))
	for range 2 {
		spoke.Next(t, "registered")
	}
	s.Restart()
	did := spoke.Next(t, "did")
	if did["fault"] != nil || did["good"] != float64(many) {
		t.Errorf("%v", did)
	}
}
