package gateway_test

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway/uamp/uamptest/peers"
	"skep/host/internal/hosttest"
)

// enveloped is a swarm whose agent is asked over UAMP by an agent of lab.
const enveloped = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
expose = ["uamp"]
[server]
public_url = "https://hive.example"
tls = { cert = "cert.pem", key = "key.pem" }
[gateways.uamp]
max_body = "256KB"
[gateways.uamp.partners.lab]
ids = ["did:key:*"]
[[auth.keys]]
id = "lab"
role = "agent"
key = "a-token-of-the-realm-lab"
`

// uampJob is a request whose text is a script for the agent.
func uampJob(members string, steps ...hosttest.Step) string {
	return fmt.Sprintf(`{"intent":"ask","content":%q%s}`, hosttest.Script(steps...), members)
}

// peerClients are the programs as clients, and the bindings by which they call.
var peerClients = []struct {
	name     string
	language peers.Language
	flags    []string
}{
	{"node", peers.Node, nil},
	{"python", peers.Python, nil},
	{"python over HTTP 3", peers.Python, []string{"--http3"}},
}

// TestUAMPPeers: programs that were written from the protocol's document alone, on
// libraries of others, ask an agent of ours, read its answer in windows and again after a
// lost connection, acknowledge, call off, and verify what the host has signed, over HTTP/2 and over HTTP/3 (U-001,
// U-020, U-024, U-026, U-027, U-050, U-051, U-052, U-061, U-064, U-065, U-085, U-086, U-100,
// U-104).
func TestUAMPPeers(t *testing.T) {
	t.Parallel()
	p := peers.Find(t)
	hive := hosttest.EmptySite(t)
	hive.Write(strings.Replace(enveloped, `max_body`, "http3 = true\nmax_body", 1))
	ca, caText := newAuthority(t)
	cert, key := ca.sign(t, &x509.Certificate{DNSNames: []string{"hive.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil)
	for name, text := range map[string]string{"ca.pem": caText, "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(hive.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hive.Start()
	emit := []hosttest.Step{}
	for i := range 9 {
		emit = append(emit, hosttest.Step{"emit", hosttest.Args{"chunk": fmt.Sprintf("%d ", i)}})
	}
	emit = append(emit, hosttest.Step{"task_complete", hosttest.Args{"finish_message": "counted"}})
	bad := map[string][]string{
		"401 4.01": {"altered", "wrong-key", "other-kid", "none", "hs256", "swapped", "es384", "critical", "past", "future"},
		"400 4.00": {"unsigned", "duplicate", "extra", "missing", "utf8", "deep"},
		"413 4.13": {"large"},
	}
	for _, c := range peerClients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			flags := append(slices.Clone(c.flags), "--url", "https://hive.example", "--connect", "hive.example="+hive.Addr(), "--ca", filepath.Join(hive.Dir, "ca.pem"),
				"--to", "did:web:hive.example:agents:hive:boss", "--bearer", "a-token-of-the-realm-lab")
			do := func(jobs ...string) []peers.Event {
				t.Helper()
				return p.Client(t, c.language, jobs, flags...)
			}
			for i, got := range do(
				`{"intent":"ask","content":"hello"}`,
				uampJob(`,"delta_window":4,"ack":"resume"`, emit...),
				uampJob(`,"delta_window":4,"stream_id":"of `+c.name+`"`, emit...),
				uampJob(`,"drop_after":3`, emit...),
			) {
				stream, _ := got["stream"].(map[string]any)
				want := map[string]any{"gaps": 0.0, "repeats": 0.0, "last": "done"}
				for name, value := range want {
					if stream[name] != value {
						t.Errorf("job %d: %s is %v, want %v: %v", i, name, stream[name], value, got)
					}
				}
				if acks, _ := stream["acks"].([]any); slices.ContainsFunc(acks, func(status any) bool { return status != 202.0 }) {
					t.Errorf("job %d acknowledges with %v", i, acks)
				}
				if seqs, _ := stream["seqs"].([]any); i > 0 && len(seqs) != 10 {
					t.Errorf("job %d has %d deltas: %v", i, len(seqs), got)
				}
			}
			cancelled := do(uampJob(`,"cancel_after":1`, hosttest.Step{"emit", hosttest.Args{"chunk": "x"}}, hosttest.Step{"timer.set", hosttest.Args{"after": "1h", "body": "late"}}))[0]
			if stream, _ := cancelled["stream"].(map[string]any); stream["last"] != "cancel" {
				t.Errorf("called off: %v", cancelled)
			}
			var jobs, want []string
			for answer, kinds := range bad {
				for _, kind := range kinds {
					if kind == "large" && c.language == peers.Python {
						continue // httpx reads no answer before it has sent everything
					}
					jobs, want = append(jobs, fmt.Sprintf(`{"intent":"ask","content":"x","bad":%q}`, kind)), append(want, answer)
				}
			}
			for i, got := range do(jobs...) {
				if answer := fmt.Sprintf("%v %v", got["status"], got["code"]); answer != want[i] || got["verified"] == false {
					t.Errorf("%s is answered by %v", jobs[i], got)
				}
			}
			for _, path := range []string{"/.well-known/agent-manifest.json", "/agents/hive/boss/agent-manifest.json"} {
				if got := do(fmt.Sprintf(`{"get":%q}`, path))[0]; got["status"] != 200.0 || got["verified"] != true {
					t.Errorf("%s: %v", path, got)
				}
			}
		})
	}
}
