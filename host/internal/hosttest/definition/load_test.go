package definition_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// definitionWith is a definition whose agent x is as given, beside one that is whole.
func definitionWith(x string) string {
	return `{"swarm":{"name":"hive","entrypoint":"boss"},"agents":{
		"boss":{"source":"file:script.wasm","comm_targets":["x"],"enable_entrypoint":true,"can_complete_tasks":true},
		"x":` + x + `}}`
}

const onScript = `"source":"file:script.wasm","comm_targets":["boss"]`

// definitionNamed is with for an agent of another name than x, on the script module.
func definitionNamed(name, more string) string {
	return strings.ReplaceAll(definitionWith(`{`+onScript+`,`+more+`}`), `"x"`, `"`+name+`"`)
}

// attempts try to read a file, run a program, reach a variable, or widen a grant.
var attempts = map[string]string{
	"a file in params":            definitionWith(`{` + onScript + `,"params":{"system":"file::/etc/passwd"}}`),
	"a file deep in params":       definitionWith(`{` + onScript + `,"params":{"a":[{"b":["file::swarm.toml"]}]}}`),
	"a file as description":       `{"swarm":{"name":"hive","entrypoint":"boss","description":"file::/etc/hostname"},"agents":{}}`,
	"a module that is a file":     definitionWith(`{"source":"file:/bin/true","comm_targets":["boss"]}`),
	"a module by another path":    definitionWith(`{"source":"file:./script.wasm","comm_targets":["boss"]}`),
	"a bundled module not named":  definitionWith(`{"source":"bundled:analyst","comm_targets":["boss"]}`),
	"a program":                   definitionWith(`{"source":"exec:/bin/sh","trusted":true,"comm_targets":["boss"]}`),
	"a trusted module":            definitionWith(`{` + onScript + `,"trusted":true}`),
	"a module of a registry":      definitionWith(`{"source":"oci://r.example/a@sha256:` + strings.Repeat("0", 64) + `","comm_targets":["boss"]}`),
	"a module by another digest":  definitionWith(`{"sha256":"` + strings.Repeat("0", 64) + `","comm_targets":["boss"]}`),
	"an action with code":         `{"swarm":{"name":"hive","entrypoint":"boss"},"agents":{"boss":{` + onScript + `,"enable_entrypoint":true,"can_complete_tasks":true}},"actions":{"run":{"source":"exec:/bin/sh"}}}`,
	"a variable in params":        definitionWith(`{` + onScript + `,"params":{"key":"env::SKEP_TEST_KEY"}}`),
	"a variable as a name":        `{"swarm":{"name":"env::USER","entrypoint":"boss"},"agents":{}}`,
	"a variable as a limit":       definitionWith(`{` + onScript + `,"limits":{"memory":"env::MEMORY"}}`),
	"a variable in a schema":      `{"swarm":{"name":"hive","entrypoint":"boss"},"agents":{},"actions":{"ask":{"source":"human","description":"d","parameters":{"default":"env::HOME"}}}}`,
	"more memory":                 definitionWith(`{` + onScript + `,"limits":{"memory":"65MiB"}}`),
	"more time":                   definitionWith(`{` + onScript + `,"limits":{"turn":"3m"}}`),
	"the limits of two agents":    definitionWith(`{` + onScript + `,"limits":{"memory":"64MiB","turn":"2m"}}`),
	"the grants of two agents":    definitionWith(`{` + onScript + `,"allow":{"kv":"instance","secrets":["key"]}}`),
	"a grant of another module":   definitionWith(`{"source":"bundled:calculator","comm_targets":["boss"],"allow":{"kv":"task"}}`),
	"another host":                definitionWith(`{` + onScript + `,"allow":{"http":["GET https://evil.example.com"]}}`),
	"another method":              definitionWith(`{` + onScript + `,"allow":{"http":["POST https://api.example.com/v1"]}}`),
	"a wider path":                definitionWith(`{` + onScript + `,"allow":{"http":["GET https://api.example.com/"]}}`),
	"no key":                      definitionWith(`{` + onScript + `,"allow":{"http_no_key":["GET https://api.example.com/v1"]}}`),
	"private addresses":           definitionWith(`{` + onScript + `,"allow":{"http":["GET https://api.example.com/v1"],"http_private":true}}`),
	"another secret":              definitionWith(`{` + onScript + `,"allow":{"secrets":["other"]}}`),
	"to send again":               definitionWith(`{` + onScript + `,"allow":{"secrets":["key"],"retry_in_doubt":true}}`),
	"the grants of another agent": definitionNamed("calc", `"allow":{"kv":"instance"}`),
	"grants of another by name":   definitionNamed("math", `"allow":{"secrets":["key"]}`),
	"limits of another by name":   definitionNamed("math", `"limits":{"memory":"64MiB"}`),
	"an entrypoint more":          definitionNamed("math", `"enable_entrypoint":true`),
	"one more who completes":      definitionNamed("math", `"can_complete_tasks":true`),
	"to be public":                strings.Replace(definitionWith(`{`+onScript+`}`), `"name"`, `"public":true,"name"`, 1),
	"a model":                     definitionWith(`{` + onScript + `,"allow":{"llm":["default"]}}`),
	"another name of the swarm":   strings.Replace(definitionWith(`{`+onScript+`}`), `"hive"`, `"other"`, 1),
	"peers":                       `{"peers":{"depot":{"base_url":"https://depot.example"}},` + definitionWith(`{` + onScript + `}`)[1:],
	"keys":                        `{"auth":{"keys":[{"id":"x","role":"operator","key":"0123456789abcdef"}]},` + definitionWith(`{` + onScript + `}`)[1:],
	"secrets":                     `{"secrets":{"key":{"value":"x","hosts":["https://evil.example.com"],"header":"X-Key"}},` + definitionWith(`{` + onScript + `}`)[1:],
	"models":                      `{"models":{"default":{"provider":"script"}},` + definitionWith(`{` + onScript + `}`)[1:],
	"limits of the host":          `{"limits":{"task_messages":0},` + definitionWith(`{` + onScript + `}`)[1:],
	"two readings of one key":     definitionWith(`{` + onScript + `,"allow":{},"allow":{"kv":"instance"}}`),
	"mail to another swarm":       definitionWith(`{"source":"file:script.wasm","comm_targets":["boss","stats@depot"]}`),
	"a gateway":                   definitionWith(`{` + onScript + `,"expose":["a2a"]}`),
	"an unknown key":              definitionWith(`{` + onScript + `,"run_as":"root"}`),
	"more after the definition":   definitionWith(`{`+onScript+`}`) + `{"agents":{}}`,
	"nothing that could be meant": `[]`,
}

// Nothing that comes over the network reads a file, runs a program, reaches a
// variable or widens a grant; each attempt is in the audit log.
func TestNetworkDefinitionsRefused(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, hosttest.GrantedSwarm)
	ada := s.As(hosttest.AdaKey)
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
		for _, leak := range []string{"root:", "a secret", s.Dir} {
			if strings.Contains(refused.Detail, leak) {
				t.Errorf("%s: the refusal tells %q: %s", name, leak, refused.Detail)
			}
		}
	}
	after, err := ada.Definition(t.Context())
	if diff := cmp.Diff(before, after); diff != "" || err != nil {
		t.Errorf("the definition in force: %v\n%s", err, diff)
	}
	if err := s.Stop(); err != nil {
		t.Error("stop:", err)
	}
	said := 0
	for _, line := range s.Audited(`"definition refused: `) {
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
	s := hosttest.NewSite(t, hosttest.GrantedSwarm)
	text := definitionWith(`{` + onScript + `,"allow":{"http":["GET https://api.example.com/v1/orders"],"secrets":["key"]},"limits":{"memory":"48MiB"}}`)
	if name, err := s.As(hosttest.AdaKey).LoadSwarm(t.Context(), text); err != nil || name != "hive" {
		t.Fatal(name, err)
	}
	check := func(key, origin, has, hasNot string) {
		t.Helper()
		d, err := s.As(key).Definition(t.Context())
		if err != nil || d.Origin != origin || !strings.Contains(string(d.Definition), has) || strings.Contains(string(d.Definition), hasNot) {
			t.Errorf("%+v, %v", d, err)
		}
	}
	check(hosttest.AdaKey, "network", `"x":{`, `"math"`)
	check(hosttest.AnnKey, "file", `"math":{`, `"x":{`)
	if a, err := s.As(hosttest.AdaKey).PostMessage(t.Context(), client.Post{Body: `[["send_request",{"target":"x","subject":"s","body":"hello"}],["await_message",{}]]`}); err != nil || a.Body != "boss got [Re: s] echo: hello" {
		t.Errorf("%q, %v", a.Body, err)
	}
	s.Restart()
	check(hosttest.AdaKey, "network", `"x":{`, `"math"`)
	s.Write(strings.Replace(hosttest.GrantedSwarm, "/v1", "/v2", 1))
	s.Restart()
	check(hosttest.AdaKey, "file", `"math":{`, `"x":{`)
	s.Write(hosttest.GrantedSwarm)
	s.Restart()
	check(hosttest.AdaKey, "network", `"x":{`, `"math"`)
	if d, err := s.As(hosttest.AdaKey).UnloadDefinition(t.Context()); err != nil || d.Origin != "file" {
		t.Errorf("%+v, %v", d, err)
	}
	s.Restart()
	check(hosttest.AdaKey, "file", `"math":{`, `"x":{`)
	if n := len(s.Audited(`"swarm.load"`)) + len(s.Audited(`"swarm.unload"`)); n != 2 {
		t.Errorf("%d acts are in the audit log, want 2", n)
	}
}

// An instance that lives already has a definition as soon as it is loaded, its
// entrypoint as well. What runs finishes on what it was begun with (G-47).
func TestLoadHoldsForLiveInstance_G47(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, pausingSwarm)
	ask(t, s, "old", pausedScript, `[{"arguments"`)
	ask(t, s, "ended", "hello", "boss got")
	text := `{"swarm":{"name":"hive","entrypoint":"chief"},"agents":{"chief":{"source":"file:script.wasm","enable_entrypoint":true,"can_complete_tasks":true}}}`
	if _, err := s.As(hosttest.AdaKey).LoadSwarm(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	ask(t, s, "new", "hello", "chief got")
	ask(t, s, "ended", "hello", "chief got")
	if got := confirm(t, s.Addr(), hosttest.AdaKey, "old"); got != "boss got [Re: s] echo: hello" {
		t.Errorf("what ran before ended with %q", got)
	}
}

// A definition that is shown can be loaded as it is (S-18).
func TestDefinitionRoundTrip(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, hosttest.GrantedSwarm)
	d, err := s.As(hosttest.AnnKey).Definition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.As(hosttest.AnnKey).LoadSwarm(t.Context(), string(d.Definition)); err != nil {
		t.Fatal(err)
	}
	again, err := s.As(hosttest.AnnKey).Definition(t.Context())
	if err != nil || again.Digest != d.Digest || string(again.Definition) != string(d.Definition) {
		t.Errorf("%v\n%s\n%s", err, d.Definition, again.Definition)
	}
}

// Posts see the old definition or the new one, and tasks finish on what they
// were begun with, while definitions come and go.
func TestLoadsAndPostsRace(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, hosttest.GrantedSwarm)
	ada := s.As(hosttest.AdaKey)
	var posts sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		target := []string{"math", "x"}[i%2]
		posts.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := ada.PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf(target, "hello")})
				if err != nil || a.Body != "boss got [Re: s] echo: hello" && !strings.HasPrefix(a.Body, "boss got [::invalid_recipient::]") {
					t.Errorf("%s: %q, %v", target, a.Body, err)
				}
			}
		})
	}
	for i := range 8 {
		var err error
		if i%2 == 0 {
			_, err = ada.LoadSwarm(t.Context(), definitionWith(`{`+onScript+`}`))
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
