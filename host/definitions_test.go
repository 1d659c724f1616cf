package host_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/config"
	"skep/host/internal/guests"
	"skep/host/internal/subprocess"
)

// grantedSwarm is a file whose agents have different grants on one module.
const grantedSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
breakpoint_tools = ["confirm"]
[agents.boss]
source = "file:script.wasm"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "task", http = ["GET https://api.example.com/v1"], secrets = ["key"], retry_in_doubt = false }
limits = { memory = "64MiB", turn = "1m", cpu = "5s" }
[agents.math]
source = "file:script.wasm"
comm_targets = ["boss"]
actions = ["confirm"]
allow = { kv = "instance" }
limits = { memory = "32MiB", turn = "2m" }
[agents.calc]
source = "bundled:calculator"
comm_targets = ["boss"]
[actions.confirm]
source = "human"
description = "a person confirms"
parameters = { type = "object" }
[secrets.key]
value = "env::SKEP_TEST_KEY"
hosts = ["https://api.example.com"]
header = "X-Key"
[secrets.other]
value = "env::SKEP_TEST_KEY"
hosts = ["https://other.example.com"]
header = "X-Key"
[tenants.acme]
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
[[auth.keys]]
id = "ada"
role = "admin"
key = "a-key-of-ada-the-admin"
[[auth.keys]]
id = "ann"
role = "admin"
tenant = "acme"
key = "a-key-of-ann-of-acme"
`

const (
	opKey  = "a-key-of-the-operator"
	adaKey = "a-key-of-ada-the-admin"
	annKey = "a-key-of-ann-of-acme"
)

// site is a host on a file that can be changed.
type site struct {
	*running
	t         *testing.T
	dir, data string
}

func newSite(t *testing.T, file string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), data: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.dir, "script.wasm"), guests.Bytes(t, "plugins/script"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.write(file)
	s.start()
	t.Cleanup(func() { _ = s.stop() })
	return s
}

func (s *site) write(file string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "swarm.toml"), []byte(file), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) read() (*config.Config, error) {
	return config.Load(filepath.Join(s.dir, "swarm.toml"), config.Options{
		BundleDir: filepath.Join(guests.Root(), "bin", "plugins"),
		Env:       func(name string) (string, bool) { return "a secret", name == "SKEP_TEST_KEY" },
	})
}

func (s *site) start() {
	s.t.Helper()
	cfg, err := s.read()
	if err != nil {
		s.t.Fatal(err)
	}
	s.running = run(s.t, host.Options{
		Config: cfg, DataDir: s.data, CacheDir: guests.CacheDir(s.t), Listen: "127.0.0.1:0", AdminListen: "off", Reread: s.read,
		Subprocess: []string{"/proc/self/exe", subprocess.Command},
	})
	s.stop = sync.OnceValue(s.stop)
}

func (s *site) restart() {
	s.t.Helper()
	if err := s.stop(); err != nil {
		s.t.Fatal("stop:", err)
	}
	s.start()
}

// as is a client of somebody.
func (s *site) as(key string) *client.Client {
	s.key = key
	return s.client(s.t)
}

// audited returns the lines of the audit log that say a word.
func (s *site) audited(word string) (lines []string) {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.data, "audit.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, word) {
			lines = append(lines, line)
		}
	}
	return lines
}

// with is a definition whose agent x is as given, beside one that is whole.
func with(x string) string {
	return `{"swarm":{"name":"hive","entrypoint":"boss"},"agents":{
		"boss":{"source":"file:script.wasm","comm_targets":["x"],"enable_entrypoint":true,"can_complete_tasks":true},
		"x":` + x + `}}`
}

const onScript = `"source":"file:script.wasm","comm_targets":["boss"]`

// named is with for an agent of another name than x, on the script module.
func named(name, more string) string {
	return strings.ReplaceAll(with(`{`+onScript+`,`+more+`}`), `"x"`, `"`+name+`"`)
}

// attempts try to read a file, run a program, reach a variable, or widen a grant.
var attempts = map[string]string{
	"a file in params":            with(`{` + onScript + `,"params":{"system":"file::/etc/passwd"}}`),
	"a file deep in params":       with(`{` + onScript + `,"params":{"a":[{"b":["file::swarm.toml"]}]}}`),
	"a file as description":       `{"swarm":{"name":"hive","entrypoint":"boss","description":"file::/etc/hostname"},"agents":{}}`,
	"a module that is a file":     with(`{"source":"file:/bin/true","comm_targets":["boss"]}`),
	"a module by another path":    with(`{"source":"file:./script.wasm","comm_targets":["boss"]}`),
	"a bundled module not named":  with(`{"source":"bundled:analyst","comm_targets":["boss"]}`),
	"a program":                   with(`{"source":"exec:/bin/sh","trusted":true,"comm_targets":["boss"]}`),
	"a trusted module":            with(`{` + onScript + `,"trusted":true}`),
	"a module of a registry":      with(`{"source":"oci://r.example/a@sha256:` + strings.Repeat("0", 64) + `","comm_targets":["boss"]}`),
	"a module by another digest":  with(`{"sha256":"` + strings.Repeat("0", 64) + `","comm_targets":["boss"]}`),
	"an action with code":         `{"swarm":{"name":"hive","entrypoint":"boss"},"agents":{"boss":{` + onScript + `,"enable_entrypoint":true,"can_complete_tasks":true}},"actions":{"run":{"source":"exec:/bin/sh"}}}`,
	"a variable in params":        with(`{` + onScript + `,"params":{"key":"env::SKEP_TEST_KEY"}}`),
	"a variable as a name":        `{"swarm":{"name":"env::USER","entrypoint":"boss"},"agents":{}}`,
	"a variable as a limit":       with(`{` + onScript + `,"limits":{"memory":"env::MEMORY"}}`),
	"a variable in a schema":      `{"swarm":{"name":"hive","entrypoint":"boss"},"agents":{},"actions":{"ask":{"source":"human","description":"d","parameters":{"default":"env::HOME"}}}}`,
	"more memory":                 with(`{` + onScript + `,"limits":{"memory":"65MiB"}}`),
	"more time":                   with(`{` + onScript + `,"limits":{"turn":"3m"}}`),
	"the limits of two agents":    with(`{` + onScript + `,"limits":{"memory":"64MiB","turn":"2m"}}`),
	"the grants of two agents":    with(`{` + onScript + `,"allow":{"kv":"instance","secrets":["key"]}}`),
	"a grant of another module":   with(`{"source":"bundled:calculator","comm_targets":["boss"],"allow":{"kv":"task"}}`),
	"another host":                with(`{` + onScript + `,"allow":{"http":["GET https://evil.example.com"]}}`),
	"another method":              with(`{` + onScript + `,"allow":{"http":["POST https://api.example.com/v1"]}}`),
	"a wider path":                with(`{` + onScript + `,"allow":{"http":["GET https://api.example.com/"]}}`),
	"no key":                      with(`{` + onScript + `,"allow":{"http_no_key":["GET https://api.example.com/v1"]}}`),
	"private addresses":           with(`{` + onScript + `,"allow":{"http":["GET https://api.example.com/v1"],"http_private":true}}`),
	"another secret":              with(`{` + onScript + `,"allow":{"secrets":["other"]}}`),
	"to send again":               with(`{` + onScript + `,"allow":{"secrets":["key"],"retry_in_doubt":true}}`),
	"the grants of another agent": named("calc", `"allow":{"kv":"instance"}`),
	"grants of another by name":   named("math", `"allow":{"secrets":["key"]}`),
	"limits of another by name":   named("math", `"limits":{"memory":"64MiB"}`),
	"an entrypoint more":          named("math", `"enable_entrypoint":true`),
	"one more who completes":      named("math", `"can_complete_tasks":true`),
	"to be public":                strings.Replace(with(`{`+onScript+`}`), `"name"`, `"public":true,"name"`, 1),
	"a model":                     with(`{` + onScript + `,"allow":{"llm":["default"]}}`),
	"another name of the swarm":   strings.Replace(with(`{`+onScript+`}`), `"hive"`, `"other"`, 1),
	"peers":                       `{"peers":{"depot":{"base_url":"https://depot.example"}},` + with(`{` + onScript + `}`)[1:],
	"keys":                        `{"auth":{"keys":[{"id":"x","role":"operator","key":"0123456789abcdef"}]},` + with(`{` + onScript + `}`)[1:],
	"secrets":                     `{"secrets":{"key":{"value":"x","hosts":["https://evil.example.com"],"header":"X-Key"}},` + with(`{` + onScript + `}`)[1:],
	"models":                      `{"models":{"default":{"provider":"script"}},` + with(`{` + onScript + `}`)[1:],
	"limits of the host":          `{"limits":{"task_messages":0},` + with(`{` + onScript + `}`)[1:],
	"two readings of one key":     with(`{` + onScript + `,"allow":{},"allow":{"kv":"instance"}}`),
	"mail to another swarm":       with(`{"source":"file:script.wasm","comm_targets":["boss","stats@depot"]}`),
	"a gateway":                   with(`{` + onScript + `,"expose":["a2a"]}`),
	"an unknown key":              with(`{` + onScript + `,"run_as":"root"}`),
	"more after the definition":   with(`{`+onScript+`}`) + `{"agents":{}}`,
	"nothing that could be meant": `[]`,
}

// Nothing that comes over the network reads a file, runs a program, reaches a
// variable or widens a grant; each attempt is in the audit log.
func TestNetworkDefinitionsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, grantedSwarm)
	ada := s.as(adaKey)
	before, err := ada.Definition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range attempts {
		_, err := ada.LoadSwarm(t.Context(), text)
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
			t.Errorf("%s: %v, want status 400", name, err)
			continue
		}
		for _, leak := range []string{"root:", "a secret", s.dir} {
			if strings.Contains(refused.Detail, leak) {
				t.Errorf("%s: the refusal tells %q: %s", name, leak, refused.Detail)
			}
		}
	}
	after, err := ada.Definition(t.Context())
	if diff := cmp.Diff(before, after); diff != "" || err != nil {
		t.Errorf("the definition in force: %v\n%s", err, diff)
	}
	if err := s.stop(); err != nil {
		t.Error("stop:", err)
	}
	said := 0
	for _, line := range s.audited(`"definition refused: `) {
		var e struct {
			Outcome, Tenant, Principal string
			Count                      int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Outcome != "refused" || e.Tenant != "default" || e.Principal != "admin:ada" {
			t.Errorf("%v: %s", err, line)
		}
		said += max(1, e.Count) // those with one reason share a line
	}
	if said < len(attempts) {
		t.Errorf("%d of %d attempts are in the audit log", said, len(attempts))
	}
}

// What only recombines is in force for its tenant alone, after a restart too, and
// until the file does not cover it any more.
func TestNetworkDefinition(t *testing.T) {
	t.Parallel()
	s := newSite(t, grantedSwarm)
	text := with(`{` + onScript + `,"allow":{"http":["GET https://api.example.com/v1/orders"],"secrets":["key"]},"limits":{"memory":"48MiB"}}`)
	if name, err := s.as(adaKey).LoadSwarm(t.Context(), text); err != nil || name != "hive" {
		t.Fatal(name, err)
	}
	check := func(key, origin, has, hasNot string) {
		t.Helper()
		d, err := s.as(key).Definition(t.Context())
		if err != nil || d.Origin != origin || !strings.Contains(string(d.Definition), has) || strings.Contains(string(d.Definition), hasNot) {
			t.Errorf("%+v, %v", d, err)
		}
	}
	check(adaKey, "network", `"x":{`, `"math"`)
	check(annKey, "file", `"math":{`, `"x":{`)
	if a, err := s.as(adaKey).PostMessage(t.Context(), client.Post{Body: `[["send_request",{"target":"x","subject":"s","body":"hello"}],["await_message",{}]]`}); err != nil || a.Body != "boss got [Re: s] echo: hello" {
		t.Errorf("%q, %v", a.Body, err)
	}
	s.restart()
	check(adaKey, "network", `"x":{`, `"math"`)
	s.write(strings.Replace(grantedSwarm, "/v1", "/v2", 1))
	s.restart()
	check(adaKey, "file", `"math":{`, `"x":{`)
	s.write(grantedSwarm)
	s.restart()
	check(adaKey, "network", `"x":{`, `"math"`)
	if d, err := s.as(adaKey).UnloadDefinition(t.Context()); err != nil || d.Origin != "file" {
		t.Errorf("%+v, %v", d, err)
	}
	s.restart()
	check(adaKey, "file", `"math":{`, `"x":{`)
	if n := len(s.audited(`"swarm.load"`)) + len(s.audited(`"swarm.unload"`)); n != 2 {
		t.Errorf("%d acts are in the audit log, want 2", n)
	}
}

// An instance that lives already has a definition as soon as it is loaded, its
// entrypoint as well. What runs finishes on what it was begun with (G-47).
func TestLoadHoldsForLiveInstance_G47(t *testing.T) {
	t.Parallel()
	s := newSite(t, pausing)
	ask := func(task, body, want string) {
		t.Helper()
		a, err := s.as(adaKey).PostMessage(t.Context(), client.Post{Task: task, Body: body})
		if err != nil || !strings.HasPrefix(a.Body, want) {
			t.Errorf("%s: %q, %v, want %q", task, a.Body, err, want)
		}
	}
	ask("old", pausedScript, `[{"arguments"`)
	ask("ended", "hello", "boss got")
	text := `{"swarm":{"name":"hive","entrypoint":"chief"},"agents":{"chief":{"source":"file:script.wasm","enable_entrypoint":true,"can_complete_tasks":true}}}`
	if _, err := s.as(adaKey).LoadSwarm(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	ask("new", "hello", "chief got")
	ask("ended", "hello", "chief got")
	if got := confirm(t, s.host.Addr(), adaKey, "old"); got != "boss got [Re: s] echo: hello" {
		t.Errorf("what ran before ended with %q", got)
	}
}

// A definition that is shown can be loaded as it is (S-18).
func TestDefinitionRoundTrip(t *testing.T) {
	t.Parallel()
	s := newSite(t, grantedSwarm)
	d, err := s.as(annKey).Definition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.as(annKey).LoadSwarm(t.Context(), string(d.Definition)); err != nil {
		t.Fatal(err)
	}
	again, err := s.as(annKey).Definition(t.Context())
	if err != nil || again.Digest != d.Digest || string(again.Definition) != string(d.Definition) {
		t.Errorf("%v\n%s\n%s", err, d.Definition, again.Definition)
	}
}

// Posts see the old definition or the new one, and tasks finish on what they
// were begun with, while definitions come and go.
func TestLoadsAndPostsRace(t *testing.T) {
	t.Parallel()
	s := newSite(t, grantedSwarm)
	ada := s.as(adaKey)
	var posts sync.WaitGroup
	stop := make(chan struct{})
	const ask = `[["send_request",{"target":%q,"subject":"s","body":"hello"}],["await_message",{}]]`
	for i := range 4 {
		target := []string{"math", "x"}[i%2]
		posts.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := ada.PostMessage(t.Context(), client.Post{Body: fmt.Sprintf(ask, target)})
				if err != nil || a.Body != "boss got [Re: s] echo: hello" && !strings.HasPrefix(a.Body, "boss got [::invalid_recipient::]") {
					t.Errorf("%s: %q, %v", target, a.Body, err)
				}
			}
		})
	}
	for i := range 8 {
		var err error
		if i%2 == 0 {
			_, err = ada.LoadSwarm(t.Context(), with(`{`+onScript+`}`))
		} else {
			_, err = ada.UnloadDefinition(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	}
	close(stop)
	posts.Wait()
}

// eventuallyTrue waits for something that happens soon.
func eventuallyTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never:", what)
		}
	}
}
