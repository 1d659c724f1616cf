package gateway_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// toolSwarm has an agent of bundled:tool with two of the three file actions and two whose code
// declares that they only read, that users and boss ask, and that MCP clients see.
const toolSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
comm_targets = ["files"]
enable_entrypoint = true
can_complete_tasks = true
[agents.files]
source = "bundled:tool"
comm_targets = ["boss"]
enable_entrypoint = true
can_complete_tasks = true
expose = ["mcp"]
actions = ["read_file", "write_file", "http_get", "http_head"]
[actions.http_get]
source = "bundled:http"
allow = { http = ["https://example.com"] }
[actions.http_head]
source = "bundled:http"
allow = { http = ["https://example.com"] }
effect = "write"
[actions.read_file]
source = "builtin:fs/read_file"
root = "notes"
[actions.write_file]
source = "builtin:fs/write_file"
root = "notes"
write = true
[actions.delete_file]
source = "builtin:fs/delete_file"
root = "notes"
write = true
[gateways.mcp]
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

// toolSite is a host of toolSwarm with one note.
func toolSite(t *testing.T) *hosttest.Site {
	t.Helper()
	s := hosttest.EmptySite(t)
	if err := os.MkdirAll(filepath.Join(s.Dir, "notes", "default"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "notes", "default", "tea.md"), []byte("green"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Write(toolSwarm)
	s.Start()
	return s
}

// TestToolAgent (V-I29, I-034, I-035, I-073): the agent runs the action that a request
// names within its grants; what is unknown, not granted, not permitted or malformed is
// answered, over REST and to another agent alike. A tool for each action is served over MCP.
func TestToolAgent(t *testing.T) {
	t.Parallel()
	s := toolSite(t)
	tests := []struct{ body, want string }{
		{`{"tool":"read_file","parameters":{"path":"tea.md"}}`, `{"status":"success","output":"green"`},
		{`{"tool_name":"read_file","parameters":{"path":"tea.md"},"execution_context":{"permissions":["read"]}}`, `{"status":"success","output":"green"`},
		{`{"tool_name":"write_file","parameters":{"path":"tea.md","content":"x"},"execution_context":{"permissions":["read"]}}`, `"code":"PERMISSION_DENIED"`},
		{`{"tool_name":"http_head","parameters":{"url":"https://example.com"},"execution_context":{"permissions":["read"]}}`, `"code":"PERMISSION_DENIED"`},
		{`{"tool_name":"http_get","parameters":{},"execution_context":{"permissions":["read"]}}`, `"code":"INVALID_FORMAT"`},
		{`{"tool":"read_file","parameters":{"way":"tea.md"}}`, `"code":"INVALID_FORMAT"`},
		{`{"tool":"delete_file","parameters":{"path":"tea.md"}}`, `"code":"TOOL_NOT_FOUND"`},
		{`{"tool":"no_such","parameters":{}}`, `"code":"TOOL_NOT_FOUND"`},
		{`read tea.md`, `"code":"INVALID_FORMAT"`},
	}
	for i, test := range tests {
		got, err := s.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Task: fmt.Sprint("user ", i), Entrypoint: "files", Body: test.body})
		if err != nil || !strings.Contains(got.Body, test.want) {
			t.Errorf("a user's %s: %s, %v", test.body, got.Body, err)
		}
		body := hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": "files", "subject": "s", "body": test.body}}, hosttest.Step{"await_message", hosttest.Args{}})
		got, err = s.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Task: fmt.Sprint("agent ", i), Body: body})
		if err != nil || !strings.Contains(got.Body, test.want) {
			t.Errorf("an agent's %s: %s, %v", test.body, got.Body, err)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(s.Dir, "notes", "default", "tea.md")); err != nil || string(raw) != "green" {
		t.Errorf("the note is %q, %v", raw, err)
	}
	t.Run("mcp", func(t *testing.T) { toolsOverMCP(t, s) })
}

func toolsOverMCP(t *testing.T, s *hosttest.Site) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: s.URL() + "/mcp", HTTPClient: &http.Client{Transport: bearer(hosttest.AliceKey)}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		name := tool.Name
		if tool.Annotations != nil && tool.Annotations.ReadOnlyHint {
			name += " reads"
		}
		names = append(names, name)
	}
	if want := []string{"files", "files__http_get reads", "files__http_head", "files__read_file reads", "files__write_file"}; !slices.Equal(names, want) {
		t.Errorf("tools %q, want %q", names, want)
	}
	got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "files__read_file", Arguments: map[string]any{"path": "tea.md"}})
	if err != nil || !strings.Contains(textOf(got), `"output":"green"`) {
		t.Errorf("a call: %q, %v", textOf(got), err)
	}
	if got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "files__read_file", Arguments: map[string]any{"way": "x"}}); err == nil && !got.IsError {
		t.Errorf("a call that does not fit: %q", textOf(got))
	}
}
