package definition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/hosttest"
)

// pausedScript waits for a person, repeats what it got, and asks math.
const pausedScript = `[["confirm",{}],["send_request",{"target":"math","subject":"s","body":"hello"}],["await_message",{}]]`

// pausingSwarm makes boss ask people.
var pausingSwarm = strings.Replace(hosttest.GrantedSwarm, "comm_targets = [\"math\"]\n", "comm_targets = [\"math\"]\nactions = [\"confirm\"]\n", 1)

// renamedSwarm has agent sums in the place of math.
var renamedSwarm = strings.NewReplacer("[agents.math]", "[agents.sums]", `["math"]`, `["sums"]`).Replace(pausingSwarm)

const askSums = `[["send_request",{"target":"sums","subject":"s","body":"hello"}],["await_message",{}]]`

// ask posts to a task as ada, and wants an answer that begins so.
func ask(t *testing.T, s *hosttest.Site, task, body, want string) {
	t.Helper()
	a, err := s.As(hosttest.AdaKey).PostMessage(t.Context(), client.Post{Task: task, Body: body})
	if err != nil || !strings.HasPrefix(a.Body, want) {
		t.Errorf("%s: %q, %v, want %q", task, a.Body, err, want)
	}
}

// A task that is paused finishes on the file it was begun with, after a reload
// and after a restart; new ones go by the new file; one that has ended and is
// posted to again does as well.
func TestReloadKeepsTasks(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", again), func(t *testing.T) {
			t.Parallel()
			s := hosttest.NewSite(t, pausingSwarm)
			ask(t, s, "old", pausedScript, `[{"arguments"`)
			ask(t, s, "ended", "hello", "boss got")
			s.Write(renamedSwarm)
			if again {
				s.Restart()
			} else if _, err := s.As(hosttest.OperatorKey).Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			ask(t, s, "new", askSums, "boss got [Re: s] echo: hello")
			ask(t, s, "ended", askSums, "boss got [Re: s] echo: hello")
			if got := confirm(t, s.Addr(), hosttest.AdaKey, "old"); got != "boss got [Re: s] echo: hello" {
				t.Errorf("resumed: %q", got)
			}
			ask(t, s, "old", askSums, "boss got [Re: s] echo: hello")
		})
	}
}

// A plan shows what a reload then does; what allows more is told apart, and no
// secret is shown.
func TestPlanAndReload(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, hosttest.GrantedSwarm)
	op := s.As(hosttest.OperatorKey)
	if changes, err := op.Plan(t.Context()); err != nil || len(changes) != 0 {
		t.Fatalf("the file as it is: %+v, %v", changes, err)
	}
	s.Write(strings.NewReplacer(
		`kv = "task"`, `kv = "agent"`, `memory = "32MiB"`, `memory = "16MiB"`, `"env::SKEP_TEST_KEY"`+"\nhosts = [\"https://other", `"another secret"`+"\nhosts = [\"https://other",
		"[agents.calc]", "[agents.sum]").Replace(hosttest.GrantedSwarm))
	planned, err := op.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range planned {
		got = append(got, fmt.Sprintf("%s %s %s %v", c.Kind, c.Name, c.Change, c.Widened))
		if text := string(c.Before) + string(c.After); strings.Contains(text, "a secret") || strings.Contains(text, "another secret") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	want := []string{
		"grant boss.kv changed true", "agent sum added true", "limit agents.math.limits.memory changed false",
		"secret other changed false", "agent calc removed false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	done, err := op.Reload(t.Context())
	if diff := cmp.Diff(planned, done); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if left, err := op.Plan(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("after the reload: %+v, %v", left, err)
	}
	if n := len(s.Audited(`"config.reload"`)); n != 1 {
		t.Errorf("%d reloads are in the audit log", n)
	}
}

// What cannot be taken over whole is not taken over at all.
func TestReloadRefused(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, hosttest.GrantedSwarm)
	before, err := s.As(hosttest.AdaKey).Definition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wider := strings.Replace(hosttest.GrantedSwarm, `kv = "task"`, `kv = "instance"`, 1)
	for name, c := range map[string]struct{ file, says string }{
		"a fault":       {wider + "[agents.x]\n", "agents.x.source"},
		"an address":    {wider + "[server]\nlisten = \"127.0.0.1:1\"\n", "server listen"},
		"a store":       {wider + "[store]\njournal_retention = \"1h\"\n", "server store.journal_retention"},
		"a tenant":      {wider + "[tenants.globex]\n", "tenant globex"},
		"a key":         {strings.Replace(wider, "a-key-of-ada-the-admin", "another-key-of-ada", 1), "server auth.keys"},
		"a module cap":  {wider + "[limits.module]\nfunctions = 40_000\n", "limit limits.module.functions"},
		"a name":        {strings.Replace(wider, `name = "hive"`, `name = "other"`, 1), "swarm name"},
		"too little":    {strings.Replace(wider, `memory = "32MiB"`, `memory = "64KiB"`, 1), "raise [agents.math] limits.memory"},
		"no module":     {strings.Replace(wider, "bundled:calculator", "file:broken.wasm", 1), "nothing has changed"},
		"no such grant": {strings.Replace(wider, "GET https://api", "GET api", 1), "nothing has changed"},
	} {
		if err := os.WriteFile(s.Dir+"/broken.wasm", []byte("not wasm"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Write(c.file)
		_, err := s.As(hosttest.OperatorKey).Reload(t.Context())
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusConflict || !strings.Contains(refused.Detail, c.says) {
			t.Errorf("%s: %v, want 409 that says %q", name, err, c.says)
		}
	}
	if _, err := s.As(hosttest.AdaKey).Reload(t.Context()); err == nil {
		t.Error("an admin reloads")
	}
	after, err := s.As(hosttest.AdaKey).Definition(t.Context())
	if diff := cmp.Diff(before, after); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A host without a certificate takes its file over at a SIGHUP, records it, and goes
// on as it was when the file is at fault.
func TestHangup(t *testing.T) {
	t.Parallel()
	hangups := make(chan os.Signal)
	s := hosttest.NewSite(t, hosttest.GrantedSwarm, func(o *host.Options) { o.Hangups = hangups })
	s.Write("schema = 2\n")
	hangups <- syscall.SIGHUP
	refused := func() int { return len(s.Audited(`"config.reload","outcome":"refused"`)) }
	hosttest.Eventually(t, "the refusal is recorded", func() bool { return refused() > 0 }) // the file was read
	s.Write(renamedSwarm)
	hangups <- syscall.SIGHUP
	hangups <- syscall.SIGHUP // taken once the second has been seen to
	a, err := s.As(hosttest.AdaKey).PostMessage(t.Context(), client.Post{Body: askSums})
	if err != nil || a.Body != "boss got [Re: s] echo: hello" {
		t.Errorf("after the reload: %+v, %v", a, err)
	}
	if n := refused(); n != 1 {
		t.Errorf("%d refused reloads are recorded", n)
	}
	if n := len(s.Audited(`"config.reload","outcome":"done"`)); n == 0 {
		t.Error("no reload is recorded")
	}
}

// A task that was begun with a wider file does what it was begun with within what
// the file grants today.
func TestReloadNarrowsOldTasks(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, pausingSwarm)
	body := `[["kv.put",{"key":"a","value":"1","scope":"task"}],["confirm",{}],["kv.put",{"key":"b","value":"2","scope":"task"}],["task_complete",{"finish_message":"{{0}} {{2}}"}]]`
	if a, err := s.As(hosttest.AdaKey).PostMessage(t.Context(), client.Post{Task: "old", Body: body}); err != nil || !strings.HasPrefix(a.Body, "[{") {
		t.Fatal(a.Body, err)
	}
	s.Write(strings.Replace(pausingSwarm, `kv = "task", `, "", 1))
	if _, err := s.As(hosttest.OperatorKey).Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := confirm(t, s.Addr(), hosttest.AdaKey, "old"); !strings.Contains(got, "DENIED") {
		t.Errorf("%q", got)
	}
}

// A consent that the operator adds, and a tool that is taken away, hold for unfinished
// tasks.
func TestReloadAddsConsent(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, pausingSwarm)
	for task, body := range map[string]string{
		"asks":     `[["confirm",{}],["send_request",{"target":"math","subject":"s","body":"hello"}],["await_message",{}]]`,
		"excluded": `[["confirm",{}],["send_broadcast",{"subject":"s","body":"hello"}],["task_complete",{"finish_message":"{{1}}"}]]`,
	} {
		if a, err := s.As(hosttest.AdaKey).PostMessage(t.Context(), client.Post{Task: task, Body: body}); err != nil || !strings.HasPrefix(a.Body, "[{") {
			t.Fatal(a.Body, err)
		}
	}
	s.Write(strings.Replace(pausingSwarm, `breakpoint_tools = ["confirm"]`, "breakpoint_tools = [\"confirm\", \"send_request\"]\nexclude_tools = [\"send_broadcast\"]", 1))
	if _, err := s.As(hosttest.OperatorKey).Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for task, want := range map[string]string{"asks": `"name":"send_request"`, "excluded": "exclude_tools names it"} {
		if got := confirm(t, s.Addr(), hosttest.AdaKey, task); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", task, got, want)
		}
	}
}

// So it is with other swarms: a paused task that could write to one cannot when the
// file has it no more, and says so.
func TestReloadNarrowsOldTargets(t *testing.T) {
	t.Parallel()
	remote := strings.NewReplacer(`entrypoint = "boss"`, "entrypoint = \"boss\"\nenable_interswarm = true", `["math"]`, `["math", "stats@depot"]`,
		"can_complete_tasks = true", "can_complete_tasks = true\nenable_interswarm = true").Replace(pausingSwarm)
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", again), func(t *testing.T) {
			t.Parallel()
			s := hosttest.NewSite(t, remote)
			body := `[["confirm",{}],["send_request",{"target":"stats@depot","subject":"s","body":"hello"}],["task_complete",{"finish_message":"{{1}}"}]]`
			if a, err := s.As(hosttest.AdaKey).PostMessage(t.Context(), client.Post{Task: "old", Body: body}); err != nil || !strings.HasPrefix(a.Body, "[{") {
				t.Fatal(a.Body, err)
			}
			s.Write(pausingSwarm)
			if again {
				s.Restart()
			} else if _, err := s.As(hosttest.OperatorKey).Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := confirm(t, s.Addr(), hosttest.AdaKey, "old"); !strings.Contains(got, `may not write to "stats@depot"`) {
				t.Errorf("%q", got)
			}
		})
	}
}

// confirm answers what a paused task waits for, and returns what becomes of it.
func confirm(t *testing.T, addr, key, task string) string {
	t.Helper()
	body := fmt.Sprintf(`{"body":"","task_id":%q,"resume_from":"breakpoint_tool_call","kwargs":{"breakpoint_tool_call_result":"yes"}}`, task)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/message", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var a struct{ Response, Detail string }
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a.Response + a.Detail
}

// A task that waits for a person finishes on what it was begun with though a
// definition was loaded meanwhile and the host was killed; the definition stays
// in force.
func TestKillBetweenDefinitions(t *testing.T) {
	t.Parallel()
	v := hosttest.StartProcess(t, strings.NewReplacer("role = \"user\"", "role = \"admin\"", `["math"]`, "[\"math\"]\nactions = [\"confirm\"]").Replace(hosttest.ScriptSwarm)+`
[actions.confirm]
source = "human"
description = "a person confirms"
parameters = { type = "object" }
`)
	cl := v.Client()
	if a, err := cl.PostMessage(t.Context(), client.Post{Task: "old", Body: pausedScript}); err != nil || !strings.HasPrefix(a.Body, "[{") {
		t.Fatal(a.Body, err)
	}
	if _, err := cl.LoadSwarm(t.Context(), definitionWith(`{`+onScript+`}`)); err != nil {
		t.Fatal(err)
	}
	v.Kill()
	v.Start()
	cl = v.Client()
	const askX = `[["send_request",{"target":"x","subject":"s","body":"hello"}],["await_message",{}]]`
	if a, err := cl.PostMessage(t.Context(), client.Post{Body: askX}); err != nil || a.Body != "boss got [Re: s] echo: hello" {
		t.Errorf("a new task: %q, %v", a.Body, err)
	}
	if got := confirm(t, v.Addr, hosttest.ScriptKey, "old"); got != "boss got [Re: s] echo: hello" {
		t.Errorf("the old task: %q", got)
	}
	if a, err := cl.PostMessage(t.Context(), client.Post{Task: "old", Body: askX}); err != nil || a.Body != "boss got [Re: s] echo: hello" {
		t.Errorf("the old task, posted to again: %q, %v", a.Body, err)
	}
	v.Kill()
}
