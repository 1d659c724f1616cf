package agent_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/turn/model/modeltest"
)

// TestLLMAgentAndProviders has the same agent talk to servers that speak the formats
// of both providers and refuse what those refuse: reasoning that must come back, calls
// beside each other, one of them garbled, an answer that breaks off, and the history
// of an earlier turn.
func TestLLMAgentAndProviders(t *testing.T) {
	t.Parallel()
	providers := map[string]struct {
		serve func(modeltest.Answer) *modeltest.Server
		path  string
	}{"openai": {modeltest.OpenAI, "/v1"}, "anthropic": {modeltest.Anthropic, ""}}
	for name, p := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := p.serve(modeltest.InOrder(
				modeltest.Reply{
					Reasoning: []string{"first ", "look"}, Signature: "signed", Text: []string{"Let me ", "see."},
					Calls: []modeltest.Call{
						{ID: "a1", Name: "kv_get", Arguments: []string{`{"ke`, `y":"hives"}`}},
						{ID: "a2", Name: "kv_put", Arguments: []string{`{"key":"hives","value":"7"}`}},
						{ID: "a3", Name: "kv_get", Arguments: []string{`{"key"`}},
					},
				},
				modeltest.Reply{Text: []string{"It is ", "seven ", "or so"}, Events: 4},
				modeltest.Reply{Calls: []modeltest.Call{{ID: "b1", Name: "task_complete", Arguments: []string{`{"finish_message":"7"}`}}}},
				modeltest.Reply{Calls: []modeltest.Call{{ID: "c1", Name: "task_complete", Arguments: []string{`{"finish_message":"still 7"}`}}}},
			))
			wire := httptest.NewServer(s)
			t.Cleanup(wire.Close)
			c := startLLMAt(t, name, wire.URL+p.path).Client(t)
			for _, want := range []string{"7", "still 7"} {
				a, err := c.PostMessage(t.Context(), client.Post{Task: "count", Body: "how many?"})
				if err != nil || a.Body != want {
					t.Fatalf("answered %q, %v, want %q", a.Body, err, want)
				}
			}
			asked := s.Requests()
			if len(asked) != 4 {
				t.Fatalf("%d requests", len(asked))
			}
			for _, want := range []string{"NOT_FOUND", "are no JSON", "a3"} {
				if !strings.Contains(string(asked[1].Body), want) {
					t.Errorf("the second question lacks %q", want)
				}
			}
			if name == "anthropic" && !strings.Contains(string(asked[1].Body), "signed") {
				t.Error("the reasoning did not go back")
			}
			if last := string(asked[3].Body); !strings.Contains(last, "SUCCESS: task completed") || !strings.Contains(last, "called kv_put") {
				t.Errorf("the second turn knows nothing of the first: %s", last)
			}
		})
	}
}

// startLLMAt starts a host of one agent whose model is at an address.
func startLLMAt(t *testing.T, provider, url string) *hosttest.Host {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"key": "a-key-for-tests", "swarm.toml": fmt.Sprintf(`schema = 1
[swarm]
name = "desk"
entrypoint = "clerk"
[agents.clerk]
source = "bundled:llm"
enable_entrypoint = true
can_complete_tasks = true
allow = { llm = ["default"], kv = "agent" }
params = { ops = ["kv_get", "kv_put"] }
[models.default]
provider = %q
base_url = %q
model = "test"
api_key = "file::key"
allow_private = true
`, provider, url)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), t.TempDir())
	r.StopAtEnd(t)
	return r
}
