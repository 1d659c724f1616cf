package gateway_test

import (
	"fmt"
	"os"
	"strconv"
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

// hubTable is the partner mill, to which the host connects.
const hubTable = `[gateways.iacp.partners.mill]
url = "iacp://127.0.0.1:PORT"
ids = ["mill-*"]
api_key = "a-key-of-hive-at-the-mill"
allow_private = true
[[auth.keys]]
id = "alice"
`

// TestIACPHub (I-023, I-028, I-036, I-054, I-057, I-072, V-I15): the host is a spoke of a hub
// that was written from the document: it authenticates, registers its agents, asks and
// is asked, by the hub itself and by another spoke of the hub, and is there again after the
// hub was restarted.
func TestIACPHub(t *testing.T) {
	t.Parallel()
	start := func(port string) (*peers.Peer, string) {
		hub := peers.Start(t, "hub", "--port", port, "--agent-id", "mill-hub", "--api-key", "a-key-of-hive-at-the-mill")
		got, _ := hub.Next(t, "listens")["port"].(float64)
		return hub, strconv.Itoa(int(got))
	}
	hub, port := start("0")
	s, _ := newFramedSite(t, false, "[[auth.keys]]\nid = \"alice\"\n", strings.Replace(hubTable, "PORT", port, 1), `"*@depot"`, `"*@depot", "*@mill"`)
	for round := range 2 {
		for range 4 {
			hub.Next(t, "registered")
		}
		kind, payload := answerOf(t, hub.Do(t, spokeJob("boss", "task_request", `{"task_type":"mail.message","parameters":{"body":"hello"}}`)))
		if kind != "task_response" || payload["status"] != "completed" {
			t.Errorf("the hub gets a %s %v", kind, payload)
		}
		spoke := peers.Start(t, "spoke", "--connect", "127.0.0.1:"+port, "--agent-id", "mill-2", "--backoff", "0.2", "--api-key", "a-key-of-hive-at-the-mill")
		spoke.Next(t, "registered")
		hub.Next(t, "registered")
		kind, payload = answerOf(t, spoke.Do(t, spokeJob("boss", "task_request", `{"task_type":"mail.message","parameters":{"body":"hello"}}`)))
		if kind != "task_response" || payload["status"] != "completed" {
			t.Errorf("the hub's other spoke gets a %s %v", kind, payload)
		}
		for _, agent := range []string{"mill-hub", "mill-2"} {
			got := s.Do(hosttest.AliceKey, fmt.Sprint(agent, round), hosttest.Step{"send_request", hosttest.Args{"target": agent + "@mill", "subject": "s", "body": "flour"}}, hosttest.Step{"await_message", hosttest.Args{}})
			if !strings.Contains(got, "flour") {
				t.Errorf("%s answers %s", agent, got)
			}
		}
		spoke.Stop()
		if hub.Stop(); round == 0 {
			hub, _ = start(port)
		}
	}
}
