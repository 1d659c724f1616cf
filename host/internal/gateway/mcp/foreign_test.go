package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// counts is an agent that counts the messages of its task; it asks and fails when told.
func counts(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
	turn.Progress("thinks", -1)
	switch turn.Ask.Body {
	case "ask":
		text, _, _ := turn.Question(ctx, gateway.Question{ID: turn.Ask.ID + "q", Text: "What?"})
		return gateway.Answer{Body: text}
	case "fail":
		return gateway.Answer{Outcome: gateway.Failed, Body: "it failed"}
	}
	return gateway.Answer{Body: fmt.Sprintf("%s %d", turn.Ask.Body, len(turn.History)+1)}
}

// run runs a client and returns what it wrote.
func run(t *testing.T, env string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%v\n%s\n%s", err, out, failed.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// clients of the TypeScript SDK, with a session, and of the Python SDK, without
// one, get the same of the same host.
func TestClientsOfOthers(t *testing.T) {
	t.Parallel()
	f := clients(t)
	h := newHost(t, mcp.Options{}, counts)
	for token, client := range map[string][]string{
		"alice": {f.node, "testdata/clients/client.cjs"},
		"bob":   {f.python, "testdata/clients/client.py"},
	} {
		t.Run(filepath.Ext(client[1]), func(t *testing.T) {
			var got map[string]any
			out := run(t, "NODE_PATH="+f.path(""), client[0], client[1], h.url+"/mcp", token)
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := map[string]any{
				"tools": []any{"calc"}, "first": []any{"hello 1", "done"}, "second": []any{"hello 2", "done"},
				"question": []any{"forty-two", "done"}, "failure": []any{"it failed", "failed"}, "unknown": -32602.0,
				"resources": 4.0, "prompts": []any{"calc"}, "progress": true,
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the client got %s", out)
			}
		})
	}
	if n := h.gateway.Health().Sessions; n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// the inspector's command line lists the tools, finds nothing to warn of in their
// schemas, and calls one.
func TestInspector(t *testing.T) {
	t.Parallel()
	f := clients(t)
	h := newHost(t, mcp.Options{}, counts)
	home := "HOME=" + t.TempDir()
	for _, test := range []struct{ args, want string }{
		{"tools/list --strict", `"calc"`},
		{"tools/call --tool-name calc --tool-arg message=hello", `"hello 1"`},
	} {
		args := append([]string{
			f.path("@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli", h.url + "/mcp",
			"--transport", "http", "--header", "Authorization: Bearer alice", "--method",
		}, strings.Fields(test.args)...)
		if out := run(t, home, f.node, args...); !strings.Contains(out, test.want) {
			t.Errorf("%s: %s", test.args, out)
		}
	}
}
