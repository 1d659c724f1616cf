package gateway_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/iacp/iacptest/peers"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// framed is a swarm whose agents are asked over IaCP by agents of depot.
const framed = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
enable_interswarm = true
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
comm_targets = ["clerk", "*@depot"]
enable_interswarm = true
expose = ["iacp"]
[agents.clerk]
source = "file:script.wasm"
comm_targets = ["planner", "*@depot"]
enable_interswarm = true
allow = { kv = "task" }
expose = ["iacp"]
[agents.planner]
source = "bundled:workflow"
comm_targets = ["clerk", "*@depot"]
enable_interswarm = true
can_complete_tasks = true
allow = { kv = "task" }
expose = ["iacp"]
[agents.files]
source = "bundled:tool"
comm_targets = ["boss"]
actions = ["read_file"]
expose = ["iacp"]
[actions.read_file]
source = "builtin:fs"
root = "notes"
[gateways.iacp]
listen = "LISTEN"
[gateways.iacp.partners.depot]
ids = ["depot-*"]
CERTIFICATES
may = ["ask", "tell", "tools", "workflows", "broadcast"]
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
[[auth.keys]]
id = "depot"
role = "agent"
key = "a-token-of-the-realm-depot"
[server]
TLS
`

// newFramedSite starts a host of framed, over TLS if tls is set, with texts of it replaced,
// and returns where it listens for IaCP.
func newFramedSite(t *testing.T, tls bool, replaced ...string) (s *hosttest.Site, addr string) {
	t.Helper()
	addr = hosttest.FreeAddress(t, "127.0.0.1")
	s = hosttest.EmptySite(t)
	table, certificates := "", ""
	if tls {
		certificates = `certificates = ["spoke.depot.example"]`
		table = `tls = { cert = "cert.pem", key = "key.pem", client_ca = "ca.pem" }`
		ca, caText := newAuthority(t)
		cert, key := ca.sign(t, &x509.Certificate{DNSNames: []string{"hive.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil)
		spoke, spokeKey := ca.sign(t, &x509.Certificate{DNSNames: []string{"spoke.depot.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, nil)
		for name, text := range map[string]string{"ca.pem": caText, "cert.pem": cert, "key.pem": key, "spoke.pem": spoke, "spoke.key": spokeKey} {
			if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	notes := filepath.Join(s.Dir, "notes", "default")
	if err := errors.Join(os.MkdirAll(notes, 0o700), os.WriteFile(filepath.Join(notes, "tea.md"), []byte("green"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s.Write(strings.NewReplacer(append(replaced, "LISTEN", addr, "TLS", table, "CERTIFICATES", certificates)...).Replace(framed))
	s.Start()
	return s, addr
}

// answerOf is the last answer to a job of a peer.
func answerOf(t *testing.T, did peers.Event) (kind string, payload map[string]any) {
	t.Helper()
	answers, _ := did["answers"].([]any)
	if len(answers) == 0 {
		t.Fatalf("no answer: %v", did)
	}
	last, _ := answers[len(answers)-1].(map[string]any)
	kind, _ = last["message_type"].(string)
	payload, _ = last["payload"].(map[string]any)
	return kind, payload
}

// spokeJob is a job that sends a message to an agent.
func spokeJob(to, kind, payload string) string {
	return fmt.Sprintf(`{"to":%q,"send":{"message_type":%q,"payload":%s}}`, to, kind, payload)
}

// diamond is a plan whose steps b and c wait for a, and d for both.
const diamond = `{"workflow_id":"w","workflow_name":"diamond","participants":[{"agent_id":"clerk","role":"worker","responsibilities":["a"]}],
"execution_plan":{"steps":[{"id":"a","agent_id":"clerk","task_type":"mail.message","parameters":{"body":"1"}},{"id":"b","agent_id":"clerk","task_type":"mail.message","parameters":{"body":"2"},"depends_on":["a"]},
{"id":"c","agent_id":"clerk","task_type":"mail.message","parameters":{"body":"3"},"depends_on":["a"]},{"id":"d","agent_id":"clerk","task_type":"mail.message","parameters":{"body":"4"},"depends_on":["b","c"]}]}}`

// oneLine is JSON without its line ends, as jobs are.
func oneLine(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestIACPPeers (I-006, I-007, I-023, I-024, I-026, I-028, I-034, I-036, I-037, I-039,
// I-041, I-050, I-054, I-052, I-057, I-070, I-072, I-077, V-I13): a spoke that was
// written from the document shakes hands, authenticates, registers, finds agents,
// asks them, runs a tool and a workflow, is refused, and is connected again after its
// connection was cut and after the host was restarted.
func TestIACPPeers(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]struct {
		tls   bool
		flags []string
	}{
		"TCP":                            {false, []string{"--api-key", "a-token-of-the-realm-depot"}},
		"TLS with a token":               {true, []string{"--tls", "--token", "a-token-of-the-realm-depot", "--server-name", "hive.example"}},
		"TLS with a certificate":         {true, []string{"--tls", "--server-name", "hive.example", "--cert", "spoke.pem", "--cert-key", "spoke.key"}},
		"TLS without a handshake (D-I1)": {true, []string{"--tls", "--server-name", "hive.example", "--cert", "spoke.pem", "--cert-key", "spoke.key", "--bare"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, addr := newFramedSite(t, over.tls)
			flags := []string{"--connect", addr, "--agent-id", "depot-1", "--backoff", "0.2"}
			for _, f := range over.flags {
				if strings.HasPrefix(f, "spoke.") && f != "spoke.depot.example" {
					f = filepath.Join(s.Dir, f)
				}
				flags = append(flags, f)
			}
			if over.tls {
				flags = append(flags, "--ca", filepath.Join(s.Dir, "ca.pem"))
			}
			spoke := peers.Start(t, "spoke", flags...)
			if !slices.Contains(flags, "--bare") {
				limits, _ := spoke.Next(t, "handshake")["payload"].(map[string]any)
				if limits["max_message_size"] != float64(16<<20) || limits["max_nesting"] != 10.0 {
					t.Errorf("the limits are not the document's: %v", limits)
				}
			}
			spoke.Next(t, "registered")
			exchangeWith(t, spoke)
			spoke.Do(t, `{"drop":true}`)
			spoke.Next(t, "disconnected")
			spoke.Next(t, "registered")
			exchangeWith(t, spoke)
			s.Restart()
			spoke.Next(t, "disconnected")
			spoke.Next(t, "registered")
			exchangeWith(t, spoke)
		})
	}
}

// exchangeWith lets a spoke send what the document has.
func exchangeWith(t *testing.T, spoke *peers.Peer) {
	t.Helper()
	for _, c := range []struct{ to, kind, payload, wantKind, want string }{
		{"boss", "task_request", `{"task_type":"analysis","description":"look","parameters":{"text":"hello"}}`, "task_response", `"status":"completed"`},
		{"boss", "task_request", `{"task_type":"mail.message","parameters":{"body":"hello"}}`, "task_response", `"status":"completed"`},
		{"files", "tool_request", `{"tool_name":"read_file","parameters":{"path":"tea.md"},"execution_context":{"permissions":["read"]},"callback_required":true}`, "tool_response", `"output":"green"`},
		{"files", "tool_request", `{"tool_name":"grow","parameters":{}}`, "tool_response", `"status":"error"`},
		{"planner", "workflow_start", oneLine(t, diamond), "task_response", `"done":4`},
		{"planner", "workflow_status", `{"workflow_id":"w"}`, "task_response", `"code":"NOT_FOUND"`},
		{"", "agent_discover", `{"discovery_type":"all","response_format":"detailed"}`, "agent_discover_response", `"agent_id":"planner"`},
		{"", "agent_discover", `{"discovery_type":"all","response_format":"detailed"}`, "agent_discover_response", `"read_tools":["read_file"],"supported_tools":["read_file"]`},
		{"nowhere", "task_request", `{"task_type":"x"}`, "error_response", "AGENT_NOT_FOUND"},
		{"boss", "poem", `{}`, "error_response", "INVALID_MESSAGE_FORMAT"},
	} {
		kind, payload := answerOf(t, spoke.Do(t, spokeJob(c.to, c.kind, c.payload)))
		if got, err := json.Marshal(payload); err != nil || kind != c.wantKind || !strings.Contains(string(got), c.want) {
			t.Errorf("%s to %q is answered by a %s %s, %v", c.kind, c.to, kind, got, err)
		}
	}
	long := fmt.Sprintf(`{"tool_name":"read_file","parameters":{"path":"tea.md"},"note":%q}`, strings.Repeat("x", 1<<20))
	if kind, payload := answerOf(t, spoke.Do(t, spokeJob("files", "tool_request", long))); kind != "tool_response" || payload["output"] != "green" {
		t.Errorf("a request of 1 MiB is answered by a %s %v", kind, payload)
	}
	forged := `{"to":"boss","send":{"message_type":"task_request","sender":{"agent_id":"other"},"payload":{}}}`
	if kind, payload := answerOf(t, spoke.Do(t, forged)); kind != "error_response" || payload["error_code"] != "PERMISSION_DENIED" {
		t.Errorf("a forged sender is answered by a %s %v", kind, payload)
	}
}

// TestIACPPeerAsked (I-023, I-030, I-031, I-057, I-059, V-I15, V-I31, V-I32, D-I3):
// our agent asks
// the agent of a spoke that was written from the document: it has the answer, a
// rejection and a failure with their codes, and waits while the spoke is away.
func TestIACPPeerAsked(t *testing.T) {
	t.Parallel()
	s, addr := newFramedSite(t, false)
	spoke := peers.Start(t, "spoke", "--connect", addr, "--agent-id", "depot-1", "--backoff", "0.2", "--api-key", "a-token-of-the-realm-depot")
	spoke.Next(t, "registered")
	for kind, want := range map[string]string{"echo": "how many?", "count": "how many?", "reject": "PERMISSION_DENIED", "fail": "TIMEOUT"} {
		body := fmt.Sprintf(`{"message_type":"task_request","payload":{"task_type":%q,"description":"how many?"}}`, kind)
		if got := askDepot(s, kind, body); !strings.Contains(got, want) {
			t.Errorf("%s: %s", kind, got)
		}
		spoke.Next(t, "took")
	}
	asText := `{"message_type":"task_request","payload":{"task_type":"fail","parameters":{"as_text":true}}}`
	if got := askDepot(s, "fault", asText); !strings.Contains(got, "the task failed as it was told") {
		t.Errorf("an error that is a text: %s", got)
	}
	spoke.Next(t, "took")
	if got := askDepot(s, "text", "plain"); !strings.Contains(got, "plain") {
		t.Errorf("a text: %s", got)
	}
	spoke.Next(t, "took")
	spoke.Do(t, `{"drop":true}`)
	if got := askDepot(s, "away", "plain again"); !strings.Contains(got, "plain again") {
		t.Errorf("after the connection was cut: %s", got)
	}
	spoke.Next(t, "took")
}

// askDepot lets boss ask depot-1 in a task of its own.
func askDepot(s *hosttest.Site, task, body string) string {
	return s.Do(hosttest.AliceKey, task, hosttest.Step{"send_request", hosttest.Args{"target": "depot-1@depot", "subject": "s", "body": body}}, hosttest.Step{"await_message", hosttest.Args{}})
}

// TestIACPPeerWorkflows (I-021, I-039, I-090, I-091, I-093, I-095, V-I25, V-I33, V-I34, V-I38):
// workflows that a spoke starts run in the order of their plan, with results of steps before,
// by agents of ours and by the spoke's own; one with a cycle is rejected. What is for all
// reaches each agent.
func TestIACPPeerWorkflows(t *testing.T) {
	t.Parallel()
	_, addr := newFramedSite(t, false)
	spoke := peers.Start(t, "spoke", "--connect", addr, "--agent-id", "depot-1", "--api-key", "a-token-of-the-realm-depot")
	spoke.Next(t, "registered")
	const step = `{"id":%q,"agent_id":%q,"task_type":"mail.message","parameters":{"body":%q},"depends_on":[%s]}`
	inOrder := fmt.Sprintf(step, "a", "clerk", "1", "") + "," + fmt.Sprintf(step, "b", "clerk", "2 after ${steps.a.result}", "") + "," +
		fmt.Sprintf(step, "c", "depot-1@depot", "3", `"a"`) + "," + fmt.Sprintf(step, "d", "clerk", "4 after ${steps.b.result} and ${steps.c.status}", "")
	cycle := fmt.Sprintf(step, "a", "clerk", "1", `"b"`) + "," + fmt.Sprintf(step, "b", "clerk", "2", `"a"`)
	for name, c := range map[string]struct{ steps, participants, status, text string }{
		"a diamond":        {inOrder, `[{"agent_id":"clerk","role":"worker","responsibilities":["a"]},{"agent_id":"depot-1@depot","role":"specialist","responsibilities":["c"]}]`, "completed", "4 after"},
		"responsibilities": {`"sow","reap"`, `[{"agent_id":"clerk","role":"worker","responsibilities":["sow","reap"]}]`, "completed", `"done":2`},
		"a partner's tool": {`{"id":"sum","agent_id":"depot-1@depot","tool_name":"add","parameters":{"numbers":[17,4]}}`, `[{"agent_id":"depot-1@depot","role":"specialist","responsibilities":[]}]`, "completed", `"result":21`},
		"a partner's task": {`{"id":"no","agent_id":"depot-1@depot","task_type":"reject"}`, `[{"agent_id":"depot-1@depot","role":"specialist","responsibilities":[]}]`, "failed", "PERMISSION_DENIED"},
		"a cycle":          {cycle, `[{"agent_id":"clerk","role":"worker","responsibilities":["a"]}]`, "rejected", "circle"},
	} {
		plan := fmt.Sprintf(`{"workflow_id":"w","workflow_name":%q,"participants":%s,"execution_plan":{"steps":[%s]}}`, name, c.participants, c.steps)
		kind, payload := answerOf(t, spoke.Do(t, spokeJob("planner", "workflow_start", plan)))
		text, err := json.Marshal(payload)
		if err != nil || kind != "task_response" || payload["status"] != c.status || !strings.Contains(string(text), c.text) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	held := `{"workflow_id":"w","execution_plan":{"steps":[{"id":"a","agent_id":"depot-1@depot","task_type":"hold"}]}}`
	spoke.Do(t, fmt.Sprintf(`{"answers":false,"to":"planner","send":{"message_type":"workflow_start","conversation_id":"held","payload":%s}}`, held))
	spoke.Next(t, "took")
	for _, c := range [][2]string{{"workflow_status", "running"}, {"workflow_cancel", "stopping"}} {
		_, payload := answerOf(t, spoke.Do(t, fmt.Sprintf(`{"to":"planner","send":{"message_type":%q,"conversation_id":"held","payload":{"workflow_id":"w"}}}`, c[0])))
		if result, _ := payload["result"].(map[string]any); payload["status"] != "completed" || result["state"] != c[1] {
			t.Errorf("a %s is answered by %v", c[0], payload)
		}
	}
	spoke.Do(t, `{"release":true}`)
	script := hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": "depot-1@depot", "subject": "s", "body": "heard"}})
	all := fmt.Sprintf(`{"recipient":{"broadcast":true},"message_type":"task_request","payload":{"task_type":"mail.message","parameters":{"body":%q}},"metadata":{"requires_response":false}}`, script)
	spoke.Do(t, fmt.Sprintf(`{"answers":false,"send":%s}`, all))
	heard := map[any]bool{}
	for len(heard) < 2 {
		m, _ := spoke.Next(t, "took")["message"].(map[string]any)
		if text := fmt.Sprint(m["payload"]); strings.Contains(text, "heard") {
			sender, _ := m["sender"].(map[string]any)
			heard[sender["agent_id"]] = true
		}
	}
	if !heard["boss"] || !heard["clerk"] {
		t.Errorf("heard by %v", heard)
	}
}

// TestIACPPeerRefused (I-053, I-072): a spoke with a wrong credential is told so, and the
// connection ends.
func TestIACPPeerRefused(t *testing.T) {
	t.Parallel()
	_, addr := newFramedSite(t, false)
	spoke := peers.Start(t, "spoke", "--connect", addr, "--agent-id", "depot-1", "--api-key", "a-wrong-key-of-the-depot")
	if got, _ := spoke.Next(t, "unwanted")["reason"].(string); !strings.Contains(got, "AUTHENTICATION_FAILED") {
		t.Errorf("refused by %q", got)
	}
}

// TestIACPOpenSSL (I-050, I-051, I-062, I-074): the TLS client of OpenSSL verifies the
// host's certificate on the port of IaCP with TLS 1.3, and a handshake that it sends is
// answered by a frame.
func TestIACPOpenSSL(t *testing.T) {
	t.Parallel()
	openssl, err := exec.LookPath("openssl")
	if err != nil && guests.ToolchainsRequired() {
		t.Fatal("openssl is missing")
	} else if err != nil {
		t.Skip("needs openssl")
	}
	s, addr := newFramedSite(t, true)
	cmd := exec.Command(openssl, "s_client", "-connect", addr, "-servername", "hive.example", "-verify_hostname", "hive.example", "-verify_return_error", "-CAfile", filepath.Join(s.Dir, "ca.pem"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := new(hosttest.LogBuffer)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := `{"iacp_version":"1.0","message_id":"123e4567-e89b-12d3-a456-426614174000","timestamp":"2025-09-21T10:30:00Z","sender":{"agent_id":"depot-1"},"message_type":"handshake","payload":{"versions":["1.0"],"features":[]}}`
	if _, err := stdin.Write(append([]byte{0, 0, 0, byte(len(text))}, text...)); err != nil {
		t.Fatal(err)
	}
	hosttest.Eventually(t, "the handshake is answered", func() bool { return strings.Contains(string(out.Bytes()), "handshake_ack") })
	_ = stdin.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Error("s_client does not end")
	}
	for _, want := range []string{"TLSv1.3", "Verification: OK", "Verified peername: hive.example"} {
		if !strings.Contains(string(out.Bytes()), want) {
			t.Errorf("no %q in %s", want, string(out.Bytes()))
		}
	}
}
