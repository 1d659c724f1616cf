package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/mcp"
	"skep/host/internal/turn/mcp/toolpin"
	"skep/host/internal/turn/process"
)

// patience bounds waits for events that must happen; no test measures it.
const patience = 30 * time.Second

// guard is the command line of the guard between host and program.
var guard = []string{"/proc/self/exe", process.Command}

type world struct {
	*mcp.Server
	t       *testing.T
	log     *safe
	changed []string
}

// safe is a buffer for concurrent writers.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func start(t *testing.T, how string, set ...func(*mcp.Spec)) *world {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec := mcp.Spec{
		Name: "notes", Command: []string{self}, Dir: t.TempDir(), Env: []string{playKey + "=" + how},
		Timeout: 20 * time.Second, IdleTimeout: time.Hour, MaxResult: 1 << 20,
	}
	for _, f := range set {
		f(&spec)
	}
	return serve(t, spec)
}

func serve(t *testing.T, spec mcp.Spec) *world {
	t.Helper()
	w := &world{t: t, log: &safe{}}
	var mu sync.Mutex
	w.Server = mcp.New(spec, mcp.Options{
		Guard: guard, Version: "test", Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		OnToolChanged: func(tenant, server, tool string) {
			mu.Lock()
			defer mu.Unlock()
			w.changed = append(w.changed, tenant+" "+server+" "+tool)
		},
	})
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) tools() []toolpin.Tool {
	w.t.Helper()
	tools, fault := w.Tools(w.t.Context(), "default")
	if fault != nil {
		w.t.Fatalf("%v\n%s", fault, w.log)
	}
	return tools
}

func (w *world) pin(tool string) string {
	w.t.Helper()
	t, ok := toolpin.Find(w.tools(), tool)
	if !ok {
		w.t.Fatalf("there is no tool %s", tool)
	}
	return t.SHA256
}

// call calls a tool with its current pin, and returns the answer or the error.
func (w *world) call(tool, text string) string {
	w.t.Helper()
	return w.callAs(w.t.Context(), mcp.Call{Tenant: "default", Tool: tool, Pin: w.pin(tool)}, text)
}

func (w *world) callAs(ctx context.Context, c mcp.Call, text string) string {
	c.Args, _ = json.Marshal(map[string]string{"text": text})
	answer, fault := w.Call(ctx, c)
	if fault != nil {
		return fault.Code.String() + ": " + fault.Message
	}
	return string(answer)
}

// echoPin is the digest of the tool of the hand-written servers.
func echoPin(t *testing.T) string {
	t.Helper()
	made, err := toolpin.New("echo", "Echoes.", json.RawMessage(`{"type":"object"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return made.SHA256
}

// gone waits until a process has exited.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.Trim(pid, `"`))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
		if err != nil || strings.Contains(string(raw), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d lives: %s", n, raw)
		}
	}
}

// TestAnswers: results of tools reach the agent as they are, or without their
// bytes; what a server asks of its client is refused.
func TestAnswers(t *testing.T) {
	t.Parallel()
	w := start(t, "good")
	for _, c := range []struct{ tool, text, want string }{
		{"echo", "Grüße, <b>", `"Grüße, <b>"`},
		{"typed", "", `{"n":7}`},
		{"parts", "", `{"text":"a\nb","parts":[{"type":"image","mimeType":"image/png","bytes":5},{"type":"resource","uri":"file:///x","mimeType":"text/plain","text":"inside"},{"type":"resource_link","name":"y","uri":"file:///y"}]}`},
		{"fail", "tea", `UPSTREAM: tool "fail" of MCP server "notes": no: tea`},
		{"beg", "", `"true true true true"`},
	} {
		if got := w.call(c.tool, c.text); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.tool, got, c.want)
		}
	}
	if got := w.Stats(); got.Sessions != 1 || got.Calls != 5 || got.Failures != 1 {
		t.Errorf("%+v", got)
	}
}

// TestMeta: a server gets the members of _meta that a call has, and no others of it.
func TestMeta(t *testing.T) {
	t.Parallel()
	w := start(t, "good")
	c := mcp.Call{Tenant: "default", Tool: "meta", Pin: w.pin("meta"), Meta: map[string]any{"traceparent": "a", "tracestate": "b"}}
	for range 2 {
		if got := w.callAs(t.Context(), c, ""); got != `"a b"` {
			t.Errorf("the server has %s", got)
		}
	}
	if len(c.Meta) != 2 {
		t.Errorf("the caller's members are %v", c.Meta)
	}
	c.Meta = nil
	if got := w.callAs(t.Context(), c, ""); got != `"<nil> <nil>"` {
		t.Errorf("without members the server has %s", got)
	}
}

// The environment is the configured one only.
func TestWhereItRuns(t *testing.T) {
	t.Setenv("SKEP_TEST_LEAK", "yes")
	w := start(t, "good", func(s *mcp.Spec) { s.Env = append(s.Env, "A=b") })
	var text string
	if err := json.Unmarshal([]byte(w.call("env", "")), &text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "SKEP_TEST_LEAK") || !strings.Contains(text, "A=b") {
		t.Errorf("%s", text)
	}
	if got := w.call("dir", ""); !strings.Contains(got, t.Name()) {
		t.Errorf("it runs in %s", got)
	}
}

// Each tenant has its own session and process.
func TestTenantsApart(t *testing.T) {
	t.Parallel()
	w := start(t, "good")
	pin := w.pin("pid")
	one := w.callAs(t.Context(), mcp.Call{Tenant: "one", Tool: "pid", Pin: pin}, "")
	two := w.callAs(t.Context(), mcp.Call{Tenant: "two", Tool: "pid", Pin: pin}, "")
	again := w.callAs(t.Context(), mcp.Call{Tenant: "one", Tool: "pid", Pin: pin}, "")
	if one == two || one != again {
		t.Errorf("processes %s, %s and %s", one, two, again)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, one)
	gone(t, two)
	if got := w.callAs(t.Context(), mcp.Call{Tenant: "one", Tool: "pid", Pin: pin}, ""); !strings.HasPrefix(got, "UNAVAILABLE") {
		t.Errorf("after the end: %s", got)
	}
}

// A tool whose definition changes during a session is refused.
func TestChangedDefinitions(t *testing.T) {
	t.Parallel()
	w := start(t, "good")
	echo, pid := w.pin("echo"), w.pin("pid")
	if got := w.callAs(t.Context(), mcp.Call{Tenant: "default", Tool: "echo", Pin: strings.Repeat("0", 64)}, "x"); !strings.Contains(got, "DENIED") ||
		!strings.Contains(got, `definition of tool "echo" changed since it was pinned; see `+"`skep mcp pin notes echo`") {
		t.Errorf("%s", got)
	}
	if got := w.call("turn", ""); got != `"turned"` {
		t.Fatal(got)
	}
	// The server announces its new list at any time.
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		got := w.callAs(t.Context(), mcp.Call{Tenant: "default", Tool: "echo", Pin: echo}, "x")
		if strings.HasPrefix(got, "DENIED") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("still called: %s", got)
		}
	}
	if got := w.callAs(t.Context(), mcp.Call{Tenant: "default", Tool: "pid", Pin: pid}, "x"); !strings.Contains(got, `it has no tool "pid" any more`) {
		t.Errorf("%s", got)
	}
	if want := []string{"default notes echo", "default notes pid"}; fmt.Sprint(w.changed) != fmt.Sprint(want) {
		t.Errorf("told of %v", w.changed)
	}
}

// Misbehaving servers cause no harm, and the errors name server and tool.
func TestMisbehaving(t *testing.T) {
	t.Parallel()
	short := func(s *mcp.Spec) { s.Timeout = 2 * time.Second }
	for how, c := range map[string]struct {
		want string
		set  func(*mcp.Spec)
	}{
		"garbage":   {`UNAVAILABLE: MCP server "notes": it wrote what is no message of MCP to its stdout: "Listening on stdio, have fun"`, nil},
		"silent":    {`UNAVAILABLE: MCP server "notes": it did not answer within 2s, the timeout of [mcp.notes]; its last words: waiting for the moon`, short},
		"deaf":      {`UNAVAILABLE: MCP server "notes": it did not answer within 2s`, short},
		"shut":      {`UNAVAILABLE: MCP server "notes": it ended with exit code 3; its last words: no moon today`, nil},
		"stillborn": {`UNAVAILABLE: MCP server "notes": it ended with exit code 3; its last words: no moon today, token is [secret TOKEN]`, nil},
		"flood":     {`UNAVAILABLE: MCP server "notes": it sends too much that it was not asked for`, nil},
		"endless":   {`UNAVAILABLE: MCP server "notes": it sent more than one answer may have: a line of more than`, nil},
		"blank":     {`UNAVAILABLE: MCP server "notes": it sends too much that it was not asked for`, nil},
		"refuses":   {`UNAVAILABLE: MCP server "notes": calling "initialize": not you`, nil},
		"version":   {`UNAVAILABLE: MCP server "notes": unsupported protocol version: "1999-01-01"`, nil},
		"pages":     {`UNAVAILABLE: MCP server "notes": its list of tools has more than 64 pages`, nil},
		"fat":       {`UNAVAILABLE: MCP server "notes": it sent more than one answer may have`, nil},
		"many":      {`UNAVAILABLE: MCP server "notes": it has more than 512 tools`, nil},
		"listless":  {`UNAVAILABLE: MCP server "notes": it did not answer within 2s`, short},
		"nolist":    {`UNAVAILABLE: MCP server "notes": its list of tools is no such list`, nil},
		"twins":     {`DENIED: MCP server "notes": the definition of tool "echo" changed since it was pinned, and cannot be used: the server has 2 tools`, nil},
		"odd":       {`DENIED: MCP server "notes": the definition of tool "echo" changed since it was pinned, and cannot be used: tool "echo": inputSchema`, nil},

		"dies":     {`UNAVAILABLE: tool "echo" of MCP server "notes": no answer came, and the call may have been carried out: it ended with exit code 7; its last words: out of cheese`, nil},
		"chatty":   {`UNAVAILABLE: tool "echo" of MCP server "notes": no answer came, and the call may have been carried out: it sends too much`, nil},
		"long":     {`LIMIT: tool "echo" of MCP server "notes": no answer came, and the call may have been carried out: it sent more than one answer may have`, nil},
		"nothing":  {`UPSTREAM: tool "echo" of MCP server "notes": its answer is no result of a tool`, nil},
		"needs":    {`UPSTREAM: tool "echo" of MCP server "notes": it asks for more input`, nil},
		"unknown":  {`{"text":"","parts":[{"type":"hologram","mimeType":"x/y","bytes":3}]}`, nil},
		"number":   {`{"id":9007199254740993,"f":1e2}`, nil},
		"stranger": {`"ok"`, nil},

		"strangers":         {`UNAVAILABLE: tool "echo" of MCP server "notes": no answer came, and the call may have been carried out: it sends too much`, nil},
		"escaped":           {`"[secret TOKEN] a/b"`, nil},
		"escaped structure": {`{"b":1e2,"a":["[secret TOKEN]",9007199254740993,"` + "\uFFFD" + ` \"\\"]}`, nil},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := start(t, how, func(s *mcp.Spec) {
				s.Env, s.Hidden = append(s.Env, "TOKEN=hunter2-hunter2"), map[string]string{"TOKEN": "hunter2-hunter2"}
				if c.set != nil {
					c.set(s)
				}
			})
			got := w.callAs(t.Context(), mcp.Call{Tenant: "default", Tool: "echo", Pin: echoPin(t)}, "x")
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("%s\nwant %s\n%s", got, c.want, w.log)
			}
			if strings.Contains(got+w.log.String(), "hunter2-hunter2") {
				t.Errorf("the secret shows: %s\n%s", got, w.log)
			}
		})
	}
}

func TestAnswerTooLarge(t *testing.T) {
	t.Parallel()
	w := start(t, "good", func(s *mcp.Spec) { s.MaxResult = 1024 })
	if got := w.call("echo", strings.Repeat("x", 2000)); !strings.HasPrefix(got, `LIMIT: tool "echo" of MCP server "notes": its answer has 2`) || !strings.Contains(got, "at most 1024 ([mcp.notes] max_result)") {
		t.Error(got)
	}
	if got := w.call("echo", "x"); got != `"x"` {
		t.Errorf("afterwards: %s", got)
	}
}

// A call without an answer is repeated only if it is repeatable.
func TestInDoubt(t *testing.T) {
	t.Parallel()
	for _, repeat := range []bool{false, true} {
		w := start(t, "good")
		path := filepath.Join(t.TempDir(), "calls")
		c := mcp.Call{Tenant: "default", Tool: "die", Pin: w.pin("die"), Repeatable: repeat}
		got := w.callAs(t.Context(), c, path)
		calls, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case repeat && (got != `"lived"` || len(calls) != 2):
			t.Errorf("%d calls, %s", len(calls), got)
		case !repeat && (len(calls) != 1 || !strings.Contains(got, "may have been carried out: it ended with exit code 9")):
			t.Errorf("%d calls, %s", len(calls), got)
		}
		if got := w.callAs(t.Context(), c, path); got != `"lived"` {
			t.Errorf("the next call: %s", got)
		}
	}
}

// A server that does not start is retried after a growing pause.
func TestRests(t *testing.T) {
	t.Parallel()
	w := start(t, "stillborn")
	for range 20 {
		got := w.callAs(t.Context(), mcp.Call{Tenant: "default", Tool: "echo"}, "x")
		if strings.Contains(got, "times in a row and is tried again in") {
			if !strings.Contains(got, "the last failure: it ended with exit code 3") {
				t.Error(got)
			}
			return
		}
	}
	t.Error("it is never left alone")
}

// A cancelled call returns, and the server is notified.
func TestCalledOff(t *testing.T) {
	t.Parallel()
	w := start(t, "good")
	path := filepath.Join(t.TempDir(), "told")
	c := mcp.Call{Tenant: "default", Tool: "slow", Pin: w.pin("slow")}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if got := w.callAs(ctx, c, path); !strings.HasPrefix(got, `CANCELLED: tool "slow" of MCP server "notes"`) {
		t.Error(got)
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the server was not told")
		}
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := w.callAs(ctx, c, path); !strings.HasPrefix(got, "DEADLINE") || !strings.Contains(got, "[actions.NAME] timeout") {
		t.Error(got)
	}
	if got := w.call("echo", "x"); got != `"x"` {
		t.Errorf("afterwards: %s", got)
	}
}

// A server that did not answer is checked before the next call.
func TestHungServerIsReplaced(t *testing.T) {
	t.Parallel()
	w := start(t, "hangs")
	c := mcp.Call{Tenant: "default", Tool: "echo", Pin: echoPin(t)}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if got := w.callAs(ctx, c, "x"); !strings.HasPrefix(got, "DEADLINE") {
		t.Error(got)
	}
}

// No process of a server outlives its session.
func TestNothingStaysBehind(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"close", "kill"} {
		w := start(t, "good")
		child, pid := w.call("fork", ""), w.call("pid", "")
		if end == "kill" {
			n, _ := strconv.Atoi(strings.Trim(pid, `"`))
			if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		} else if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		gone(t, pid)
		gone(t, child)
		if end == "kill" {
			for limit := time.Now().Add(patience); ; {
				if got := w.call("pid", ""); got != pid && !strings.HasPrefix(got, "UNAVAILABLE") {
					break
				} else if time.Now().After(limit) {
					t.Fatalf("it does not come back: %s", got)
				}
			}
		}
	}
}

// An idle session is closed; the next call opens another.
func TestIdle(t *testing.T) {
	t.Parallel()
	w := start(t, "good", func(s *mcp.Spec) { s.IdleTimeout = 10 * time.Millisecond })
	pid := w.call("pid", "")
	gone(t, pid)
	if again := w.call("pid", ""); again == pid || strings.Contains(again, ":") {
		t.Errorf("the next call: %s", again)
	}
}

func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	const token = "hunter2-hunter2"
	w := start(t, "good", func(s *mcp.Spec) {
		s.Env, s.Hidden = append(s.Env, "TOKEN="+token), map[string]string{"mcp.notes.env.TOKEN": token, "short": "x", "none": ""}
	})
	for _, got := range []string{w.call("env", ""), w.call("echo", token), w.call("fail", "it is "+token)} {
		if strings.Contains(got, token) || !strings.Contains(got, "[secret mcp.notes.env.TOKEN]") {
			t.Error(got)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if log := w.log.String(); strings.Contains(log, token) || !strings.Contains(log, "the token is [secret") {
		t.Error(log)
	}
}

// Concurrent calls of several tenants, with sessions that break in between.
func TestMany(t *testing.T) {
	t.Parallel()
	w := start(t, "good")
	echo, die := w.pin("echo"), w.pin("read")
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			tenant := "t" + strconv.Itoa(i%3)
			for n := range 5 {
				want := fmt.Sprint(i, n)
				got := w.callAs(t.Context(), mcp.Call{Tenant: tenant, Tool: "echo", Pin: echo, Repeatable: true}, want)
				if got != strconv.Quote(want) && !strings.HasPrefix(got, abi.CodeUnavailable.String()) {
					t.Errorf("%s: %s", want, got)
				}
			}
			if i%8 == 0 {
				w.callAs(t.Context(), mcp.Call{Tenant: tenant, Tool: "read", Pin: die}, filepath.Join(t.TempDir(), "x"))
			}
		})
	}
	all.Wait()
}
