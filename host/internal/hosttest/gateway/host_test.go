package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/client"
	"skep/host/internal/datadir"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// served is a swarm NAME of one agent that is served over MCP and A2A: MORE are partners
// and keys.
const served = `schema = 1
[swarm]
name = "NAME"
entrypoint = "boss"
enable_interswarm = true
[agents.boss]
source = "file:script.wasm"
comm_targets = ["*@*"]
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
expose = ["mcp", "a2a"]
[agents.hidden]
source = "file:script.wasm"
comm_targets = ["boss"]
[gateways.mcp]
[gateways.a2a]
MORE
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

func file(name, more string) string {
	return strings.NewReplacer("NAME", name, "MORE", more).Replace(served)
}

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestHostServesMCP: a client of MCP sees the exposed agent as a tool and
// gets its answer; without a credential nothing is served.
func TestHostServesMCP(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, file("hive", ""))
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	connect := func(key string) (*mcp.ClientSession, error) {
		return c.Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: s.URL() + "/mcp", HTTPClient: &http.Client{Transport: bearer(key)}, DisableStandaloneSSE: true,
		}, nil)
	}
	if session, err := connect("not-a-key"); err == nil {
		session.Close()
		t.Error("a stranger is served")
	}
	session, err := connect(hosttest.AliceKey)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "boss" {
		t.Fatalf("tools %+v, %v", tools, err)
	}
	for range 2 {
		got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "boss", Arguments: map[string]any{"message": "hello"}})
		if err != nil || got.IsError || !strings.Contains(textOf(got), "hello") {
			t.Errorf("answer %q, %v", textOf(got), err)
		}
	}
	if got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hidden", Arguments: map[string]any{"message": "x"}}); err == nil {
		t.Errorf("an unexposed agent answers %q", textOf(got))
	}
}

func textOf(r *mcp.CallToolResult) (text string) {
	if r == nil {
		return ""
	}
	for _, c := range r.Content {
		if one, ok := c.(*mcp.TextContent); ok {
			text += one.Text
		}
	}
	return text
}

// sendA2A sends a message over JSON-RPC and returns the result's text.
func sendA2A(t *testing.T, s *hosttest.Site, key, agent, id, text string) (status int, body string) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": map[string]any{
		"message": map[string]any{"messageId": id, "role": "ROLE_USER", "parts": []any{map[string]any{"text": text}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/a2a/hive/"+agent, strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Version", "1.0")
	rsp, err := (&http.Client{Transport: bearer(key)}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	return rsp.StatusCode, readAll(t, rsp)
}

// TestHostServesA2A: an agent has a card, a message is a task with an
// answer, and a repeat is the same task.
func TestHostServesA2A(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, file("hive", ""))
	_, card := hosttest.Fetch(t, http.DefaultClient, s.URL()+"/.well-known/agent-card.json")
	if !strings.Contains(card, "/a2a/hive/boss") {
		t.Errorf("the host's card is %s", card)
	}
	_, first := sendA2A(t, s, hosttest.AliceKey, "boss", "m1", "hello")
	if !strings.Contains(first, "TASK_STATE_COMPLETED") || !strings.Contains(first, "hello") {
		t.Fatalf("answer %s", first)
	}
	if _, again := sendA2A(t, s, hosttest.AliceKey, "boss", "m1", "hello"); again != first {
		t.Errorf("the repeat is %s, not %s", again, first)
	}
	_, unexposed := sendA2A(t, s, hosttest.AliceKey, "hidden", "m2", "hello")
	_, unknown := sendA2A(t, s, hosttest.AliceKey, "nobody", "m2", "hello")
	if unexposed != unknown {
		t.Errorf("an unexposed agent is %s, an unknown one %s", unexposed, unknown)
	}
	if status, _ := sendA2A(t, s, "not-a-key", "boss", "m3", "x"); status != http.StatusUnauthorized {
		t.Errorf("a stranger gets %d", status)
	}
}

// TestReplayOfAnAnswer: the turn that has answered a partner is run again on its record and
// does the same, though its request is closed by then.
func TestReplayOfAnAnswer(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, file("hive", `[gateways.a2a.partners.acme]
[[auth.keys]]
id = "acme"
role = "agent"
key = "the-token-of-acme-at-hive"
`))
	_, answer := sendA2A(t, s, "the-token-of-acme-at-hive", "boss", "m1", hosttest.Script(
		hosttest.Step{"send_response", hosttest.Args{"target": "acme@acme", "subject": "re", "body": "seven"}}))
	var got struct {
		Result struct {
			Task struct {
				ContextID string `json:"contextId"`
			} `json:"task"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || !strings.Contains(answer, "seven") {
		t.Fatalf("answer %s, %v", answer, err)
	}
	cfg, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store = hosttest.StoreOf(t, s.Data, cfg.Store)
	var calls []string
	turns, err := datadir.Replay(t.Context(), datadir.ReplayOptions{
		Config: cfg, DataDir: s.Data, CacheDir: guests.CacheDir(t), Task: got.Result.Task.ContextID,
		Each: func(_ int64, _ string, c datadir.ReplayedCall) { calls = append(calls, string(c.Request)) },
	})
	if err != nil || len(turns) != 1 || turns[0].Difference != "" || turns[0].Skipped != "" {
		t.Errorf("replay: %+v, %v", turns, err)
	}
	if !strings.Contains(strings.Join(calls, "\n"), "send_response") {
		t.Errorf("the turn made the calls %q", calls)
	}
}

// TestHostsOverA2A: an agent asks an agent of another host over A2A, and has its
// answer, which both hosts keep over a restart.
func TestHostsOverA2A(t *testing.T) {
	t.Parallel()
	depot := hosttest.NewSite(t, file("depot", `[gateways.a2a.partners.hive]
[[auth.keys]]
id = "hive"
role = "agent"
key = "the-token-of-hive-at-depot"
`))
	hive := hosttest.NewSite(t, file("hive", fmt.Sprintf(`[gateways.a2a.partners.depot]
url = "%s/a2a/depot/boss"
auth_token = "the-token-of-hive-at-depot"
allow_private = true
`, depot.URL())))
	got, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Task: "t", Body: hosttest.RequestOf("boss@depot", "how many?")})
	if err != nil || got.Body != "boss got [New Message] boss got [New Message] how many?" {
		t.Fatalf("answer %+v, %v", got, err)
	}
}

func readAll(t *testing.T, r *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
