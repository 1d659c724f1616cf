package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// attackedSwarm is toolSwarm with an operator, and two tenants with a user alice each, one of
// which has few messages a day.
const attackedSwarm = toolSwarm + `[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
[tenants.acme]
[[auth.keys]]
id = "alice"
role = "user"
tenant = "acme"
key = "a-key-of-acme-the-tenant"
[tenants.poor]
messages_per_day = 3
[[auth.keys]]
id = "alice"
role = "user"
tenant = "poor"
key = "a-key-of-poor-the-tenant"
`

// attackedSite is a host of attackedSwarm with one note of the tenant default.
func attackedSite(t *testing.T) *hosttest.Site {
	t.Helper()
	s := hosttest.EmptySite(t)
	for name, text := range map[string]string{"tea.md": "green", "long.md": strings.Repeat("tea ", 80<<10)} {
		file := filepath.Join(s.Dir, "notes", "default", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Write(attackedSwarm)
	s.Start()
	return s
}

// toolCaller posts requests to the agent files, each in a task of its own.
type toolCaller struct {
	t *testing.T
	s *hosttest.Site
	n int
}

func (c *toolCaller) call(key string, body any) (string, error) {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	c.n++
	a, err := c.s.As(key).PostMessage(c.t.Context(), client.Post{Task: fmt.Sprint("t", c.n), Entrypoint: "files", Body: string(raw)})
	return a.Body, err
}

func writeOf(path, content string) map[string]any {
	return map[string]any{"tool": "write_file", "parameters": map[string]any{"path": path, "content": content}}
}

func readOf(path string) map[string]any {
	return map[string]any{"tool": "read_file", "parameters": map[string]any{"path": path}}
}

// Keys of the tenants of the attacked site.
const acmeKey, poorKey = "a-key-of-acme-the-tenant", "a-key-of-poor-the-tenant"

// TestToolAttacks (I-034, I-035, I-073): names that are none of an action's, arguments that are too
// long, files of another tenant and outputs that are too long for a message have an answer that
// says so, and change nothing; a tenant without messages left runs nothing.
func TestToolAttacks(t *testing.T) {
	t.Parallel()
	s := attackedSite(t)
	c := &toolCaller{t: t, s: s}
	long := strings.Repeat("x", 200<<10)
	c.callByWrongNames(long)
	c.callBeyondBounds(long)
	var refused *client.Error
	if got, err := c.call(hosttest.AliceKey, writeOf("big.md", long+long)); !errors.As(err, &refused) || refused.Status != http.StatusRequestEntityTooLarge && refused.Status != http.StatusBadRequest {
		t.Errorf("a body of 400 KiB is answered with %.300s, %v", got, err)
	}
	var err error
	for i := 0; err == nil && i < 4; i++ {
		_, err = c.call(poorKey, writeOf(fmt.Sprint("more", i), "x"))
	}
	if err == nil || !strings.Contains(err.Error(), "messages_per_day") {
		t.Errorf("without messages left it is %v", err)
	}
	for file, want := range map[string]string{"default/tea.md": "green", "acme/tea.md": "black", "poor/tea.md": "white"} {
		if raw, err := os.ReadFile(filepath.Join(s.Dir, "notes", file)); err != nil || string(raw) != want {
			t.Errorf("%s is %q, %v", file, raw, err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "notes/default/big.md")); !os.IsNotExist(err) {
		t.Errorf("what was refused is there: %v", err)
	}
}

// callByWrongNames calls by names that are none of an action's.
func (c *toolCaller) callByWrongNames(long string) {
	c.t.Helper()
	for _, name := range []string{
		"../read_file", "read_file\x00", "READ_FILE", " read_file", "read_file ", "hive.read_file", "files__read_file", "builtin:fs/read_file",
		"fs/read_file", "task_complete", "send_request", "kv.put", "action", "read_file\u202e", "\u0440ead_file", "boss", "*", long, strings.Repeat("\x01", 40<<10),
	} {
		got, err := c.call(hosttest.AliceKey, map[string]any{"tool": name, "parameters": map[string]any{"path": "tea.md"}})
		if err != nil || !strings.Contains(got, `"code":"TOOL_NOT_FOUND"`) && !strings.Contains(got, `"code":"INVALID_FORMAT"`) || len(got) > 8<<10 {
			c.t.Errorf("tool %.40q is answered with %.300s, %v", name, got, err)
		}
	}
}

// callBeyondBounds calls for more than a message holds, and for files of other tenants.
func (c *toolCaller) callBeyondBounds(long string) {
	c.t.Helper()
	for _, x := range []struct {
		key  string
		body any
		want string
	}{
		{hosttest.AliceKey, readOf(long), `"status":"error"`},
		{hosttest.AliceKey, readOf("long.md"), `read_file has run, and its output of`},
		{hosttest.AliceKey, writeOf("../acme/x", "x"), `"code":"PERMISSION_DENIED"`},
		{acmeKey, readOf("tea.md"), `"status":"error"`},
		{acmeKey, readOf("../default/tea.md"), `"code":"PERMISSION_DENIED"`},
		{acmeKey, writeOf("tea.md", "black"), `"status":"success"`},
		{poorKey, writeOf("tea.md", "white"), `"status":"success"`},
	} {
		if got, err := c.call(x.key, x.body); err != nil || !strings.Contains(got, x.want) || strings.Contains(got, "green") {
			c.t.Errorf("%.80v is answered with %.300s, %v", x.body, got, err)
		}
	}
}

// TestToolEffectPinned: another host that has pinned a reading action of bundled:tool over MCP
// refuses it once its effect is another, since the pin has the annotations.
func TestToolEffectPinned(t *testing.T) {
	t.Parallel()
	s, other := attackedSite(t), hosttest.EmptySite(t)
	other.Write(fmt.Sprintf(`schema = 1
[swarm]
name = "desk"
entrypoint = "clerk"
[agents.clerk]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["get"]
[mcp.shop]
url = %q
auth_token = %q
allow_private = true
[actions.get]
source = "mcp:shop/files__read_file"
[[auth.keys]]
id = "alice"
role = "user"
key = %[2]q
`, s.URL()+"/mcp", hosttest.AliceKey))
	file := filepath.Join(other.Dir, "swarm.toml")
	if out, err := exec.Command(hosttest.Program(t), "mcp", "pin", "shop", "files__read_file", "-c", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	other.Start()
	get := func() string {
		return other.Do(hosttest.AliceKey, "", hosttest.Step{"get", hosttest.Args{"path": "tea.md"}})
	}
	if got := get(); !strings.Contains(got, "green") {
		t.Fatalf("the pinned tool answers %s", got)
	}
	s.Write(strings.Replace(attackedSwarm, "[actions.read_file]\n", "[actions.read_file]\neffect = \"write\"\n", 1))
	if _, err := s.As(hosttest.OperatorKey).Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.Restart() // its session has looked at the tools within a minute
	if got := get(); !strings.Contains(got, "DENIED") || !strings.Contains(got, "changed since it was pinned") {
		t.Errorf("after the effect has changed: %s", got)
	}
}
