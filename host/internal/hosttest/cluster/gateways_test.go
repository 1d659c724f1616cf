package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// gatewaySwarm is a swarm that hosts serve over the gateways that they can serve together.
var gatewaySwarm = strings.Replace(hosttest.ScriptSwarm, "can_complete_tasks = true\n", "can_complete_tasks = true\nexpose = [\"a2a\", \"mcp\"]\n", 1) + `
[gateways.a2a]
push = false
sign_cards = false
[gateways.mcp]
`

// call sends a JSON-RPC request to a gateway of a host, and returns the answer.
func call(ctx context.Context, p *hosttest.Process, path, method string, params map[string]any) (string, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.Addr+path, strings.NewReader(string(body)))
	if err != nil {
		return "", err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer a-key-for-the-crash-test",
		"A2A-Version": "1.0", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": "boss",
	} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

// wantCall fails unless a host's answer has texts.
func wantCall(t *testing.T, p *hosttest.Process, path, method string, params map[string]any, texts ...string) string {
	t.Helper()
	got, err := call(t.Context(), p, path, method, params)
	for _, text := range texts {
		if err != nil || !strings.Contains(got, text) {
			t.Fatalf("%s at %s: %s, %v, want %s", method, p.Addr, got, err, text)
		}
	}
	return got
}

// completing is a script that waits and then completes its task.
func completing(ms int, text string) string {
	return fmt.Sprintf(`[["sleep",{"ms":%d}],["task_complete",{"finish_message":%q}]]`, ms, text)
}

// sent are the parameters of a message over A2A.
func sent(id, thread, text string) map[string]any {
	return map[string]any{"message": map[string]any{"messageId": id, "contextId": thread, "role": "ROLE_USER", "parts": []any{map[string]any{"text": text}}}}
}

// called are the parameters of a call over MCP, without an id of its own.
func called(arguments map[string]any) map[string]any {
	return map[string]any{"name": "boss", "arguments": arguments, "_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{},
		"io.modelcontextprotocol/clientInfo": map[string]any{"name": "test", "version": "1"},
	}}
}

const a2aBoss, completed = "/a2a/hive/boss", "TASK_STATE_COMPLETED"

// TestGateways: who speaks A2A or MCP may send each request to another of several hosts. Those that wait
// when a host is killed get their answers, and each message is taken once.
func TestGateways(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	hosts := hostsRunning(t, 3, pgtest.Schema(t), gatewaySwarm)
	for _, p := range hosts {
		waitReady(t, p)
	}
	at := func(n int) *hosttest.Process { return hosts[n%len(hosts)] }
	const threads = 6
	for n := range threads {
		thread := fmt.Sprint("thread-", n)
		for i := range 2 {
			id, text := fmt.Sprintf("m-%d-%d", n, i), fmt.Sprintf("answer %d of %d", i, n)
			for again := range 2 { // a repeat is the same message
				wantCall(t, at(n+i+again), a2aBoss, "SendMessage", sent(id, thread, completing(0, text)), completed, text)
			}
		}
		var first struct {
			Result struct {
				Content struct {
					Task string `json:"task_id"`
				} `json:"structuredContent"`
			}
		}
		got := wantCall(t, at(n), "/mcp", "tools/call", called(map[string]any{"message": completing(0, "first")}), `"done"`, "first")
		_, event, _ := strings.Cut(got, "data: ")
		if err := json.NewDecoder(strings.NewReader(event)).Decode(&first); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		wantCall(t, at(n+1), "/mcp", "tools/call", called(map[string]any{"message": completing(0, "second"), "task_id": first.Result.Content.Task}), `"done"`, "second")
	}
	for _, p := range hosts {
		for n := range threads {
			wantCall(t, p, a2aBoss, "GetTask", map[string]any{"id": fmt.Sprintf("m-%d-1", n)}, completed, fmt.Sprint("answer 1 of ", n))
		}
		if list := wantCall(t, p, a2aBoss, "ListTasks", map[string]any{}, completed); strings.Count(list, completed) != 2*threads {
			t.Errorf("the tasks at %s: %s", p.Addr, list)
		}
	}
	killWhileTheyWait(t, hosts)
}

// killWhileTheyWait kills the first host while callers wait at the others for answers of all three.
func killWhileTheyWait(t *testing.T, hosts []*hosttest.Process) {
	t.Helper()
	const slow = 9
	var all sync.WaitGroup
	for n := range slow {
		all.Go(func() {
			id := fmt.Sprint("slow-", n)
			got, err := call(t.Context(), hosts[1+n%2], a2aBoss, "SendMessage", sent(id, id, completing(1500, id+" is done")))
			if err != nil || !strings.Contains(got, completed) || !strings.Contains(got, id+" is done") {
				t.Errorf("%s: %s, %v", id, got, err)
			}
		})
	}
	alice := hosts[1].Client()
	hosttest.Eventually(t, "all are taken", func() bool {
		list, err := call(t.Context(), hosts[1], a2aBoss, "ListTasks", map[string]any{})
		return err == nil && strings.Count(list, `"id":"slow-`) == slow
	})
	hosts[0].Kill()
	all.Wait()
	for n := range slow {
		checkTaskMail(t, alice, fmt.Sprint("slow-", n), map[string]int{"boss": 2})
	}
}
