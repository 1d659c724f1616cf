package agent_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// nestSwarm has an agent and actions of one conformance guest.
const nestSwarm = `schema = 1
[swarm]
name = "nest"
entrypoint = "conform"
[agents.conform]
%[1]s
enable_entrypoint = true
can_complete_tasks = true
actions = ["run", "echo"]
[actions.run]
%[1]s
actions = ["echo", "run"]
params = { shop = "north" }
[actions.echo]
%[1]s
`

// nestCommands calls an action that calls another, and actions that fail.
const nestCommands = `[["action",{"name":"run","args":{"commands":[
   ["params",{}],["log",{"level":"info","message":"in it"}],["action",{"name":"echo","args":{"n":[1,"ü"]}}],["action",{"name":"run","args":{}}],
   ["action",{"name":"run","args":{"commands":[["blob_put",{"text":"tea"}],["metric",{"name":"n","value":1,"kind":"gauge"}],["span",{"name":"s"}]]}}],
   ["send_request",{"target":"a","subject":"s","body":"b"}]]}}],
 ["action",{"name":"echo","args":{}}],
 ["action",{"name":"run","args":{"commands":[["log",{"level":"info","message":"x"}],["fail",{"code":8,"message":"sold out"}]]}}],
 ["action",{"name":"echo","args":[1]}],
 ["action",{"name":"other","args":{}}],
 ["task_complete",{"finish_message":"done"}]]`

// nestCalls are the calls that the body makes, by their paths.
var nestCalls = []string{
	"1 action", "1.1 log", "1.2 action", "1.3 action", "1.4 action", "1.4.1 blob.put", "1.4.2 metric", "1.4.3 span", "1.5 mail",
	"2 action", "3 action", "3.1 log", "4 action", "5 action", "6 mail",
}

// modelNotes are parts of the results of its commands.
var modelNotes = []string{
	`{"text":"Yes, \"green\" tea.","reasoning":"","tool_calls":[],"finish":"stop","input_tokens":14,`,
	`"tool_calls":[{"id":"c1","name":"price_of","arguments":"{\"item\":\"tea\"}"}],"finish":"tool_calls"`, `{"text":"It is 250."`,
	"ERROR UPSTREAM llm.chat unexpected", "ERROR DENIED llm.chat grant", "ERROR INVALID llm.chat", "ok", "1", "ok",
	"a9f74d1ec36ebdeb", "3 b401e629", "ERROR INVALID blob.get sha256", "ok",
}

// guestSources are the sources of the guests by their language.
func guestSources(t *testing.T) map[string]string {
	t.Helper()
	module := filepath.Join(t.TempDir(), "go.wasm")
	if err := os.WriteFile(module, guests.Bytes(t, "testguests/conform"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"go":         fmt.Sprintf("source = %q", "file:"+module),
		"go process": fmt.Sprintf("source = %q\ntrusted = true", "exec:"+guests.Program(t, "testguests/conform")),
	}
	for _, name := range []string{"assemblyscript", "c", "rust"} {
		all[name] = fmt.Sprintf("source = %q", "file:"+filepath.Join(guests.Root(), "spec", "conformance", "guests", name+".wasm"))
	}
	return all
}

// An agent, an action and the action that this calls, in each language: all are told
// the same, and their calls have the same numbers in the record.
func TestActionsNestInEveryLanguage(t *testing.T) {
	t.Parallel()
	var first []string
	all := guestSources(t)
	for _, language := range slices.Sorted(maps.Keys(all)) {
		dir := t.TempDir()
		file, data := filepath.Join(dir, "swarm.toml"), filepath.Join(dir, "data")
		if err := os.WriteFile(file, fmt.Appendf(nil, nestSwarm, all[language]), 0o600); err != nil {
			t.Fatal(err)
		}
		notes := conformNotes(t, file, data, nestCommands)
		if first == nil {
			first = notes
		}
		if len(notes) != 6 || !slices.Equal(notes, first) {
			t.Errorf("%s: %q\nwant %q", language, notes, first)
		}
		if strings.Contains(all[language], "exec:") {
			if calls := skippedOf(t, file, data); len(calls) != 1 || !strings.Contains(calls[0], "does not repeat itself") {
				t.Errorf("%s: skipped %q", language, calls)
			}
			continue
		}
		if calls := callsOf(t, file, data); !slices.Equal(calls, nestCalls) {
			t.Errorf("%s: %q\nwant %q", language, calls, nestCalls)
		}
	}
}

// modelSwarmOf has an agent that may ask a model, which answers from a file.
const modelSwarmOf = `schema = 1
[swarm]
name = "mind"
entrypoint = "conform"
[models.default]
provider = "script"
cassette = "rules.toml"
[agents.conform]
%s
enable_entrypoint = true
can_complete_tasks = true
allow = { llm = ["default"] }
`

const modelRules = `[[rule]]
last = [{ role = "user", is = "Tea?" }]
text = "Yes, \"green\" tea."
usage = { input_tokens = 14, output_tokens = 3 }
[[rule]]
last = [{ role = "user", is = "Price?" }]
text = "Let me see."
calls = [{ id = "c1", name = "price_of", arguments = '{"item":"tea"}' }]
usage = { input_tokens = 20, output_tokens = 9 }
[[rule]]
last = [{ role = "assistant", match = "Let me" }, { role = "tool", is = "250" }]
text = "It is 250."
usage = { input_tokens = 30, output_tokens = 4 }
`

// modelCommands asks whole and in pieces, goes on after a tool call, and is refused; then it
// measures, and keeps bytes.
const modelCommands = `[["chat",{"model":"default","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Tea?"}],"max_tokens":50,"temperature":0.5}],
 ["chat_stream",{"model":"default","messages":[{"role":"user","content":"Price?"}],"tools":[{"name":"price_of","description":"","parameters":{"type":"object"}}],"tool_choice":"auto"}],
 ["chat_stream",{"model":"default","messages":[{"role":"user","content":"Price?"},
   {"role":"assistant","content":"Let me see.","tool_calls":[{"id":"c1","name":"price_of","arguments":"{\"item\":\"tea\"}"}]},{"role":"tool","content":"250","tool_call_id":"c1"}]}],
 ["chat",{"model":"default","messages":[{"role":"user","content":"Coffee?"}]}],
 ["chat_stream",{"model":"other","messages":[{"role":"user","content":"Tea?"}]}],
 ["chat",{"model":"default","messages":[]}],
 ["metric",{"name":"questions","value":6,"kind":"counter","labels":{"shop":"north"}}],
 ["span",{"name":"all","attributes":{"a":"b"}}],["end_span",{"id":1,"error":"why","attributes":{"c":"d"}}],
 ["blob_put",{"text":"tea"}],["blob_get",{"sha256":"a9f74d1ec36ebdeb2da3f6e5868090cd2a2d20b3dcca7b62f60304b1d3d9ef42"}],["blob_get",{"sha256":"none"}],
 ["task_complete",{"finish_message":"done"}]]`

// Models, measures and blobs answer agents in every language alike.
func TestModelsAnswerEveryLanguage(t *testing.T) {
	t.Parallel()
	var first []string
	all := guestSources(t)
	for _, language := range slices.Sorted(maps.Keys(all)) {
		dir := t.TempDir()
		file := filepath.Join(dir, "swarm.toml")
		for name, text := range map[string]string{"swarm.toml": fmt.Sprintf(modelSwarmOf, all[language]), "rules.toml": modelRules} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		notes := conformNotes(t, file, filepath.Join(dir, "data"), modelCommands)
		if first == nil {
			first = notes
		}
		if len(notes) != 13 || !slices.Equal(notes, first) {
			t.Errorf("%s: %q\nwant %q", language, notes, first)
		}
	}
	for i, want := range modelNotes {
		if i < len(first) && !strings.Contains(first[i], want) {
			t.Errorf("command %d was told %s\nwant %s", i+1, first[i], want)
		}
	}
}

// conformNotes has a conformance guest run a command list, and gives what its commands
// were told.
func conformNotes(t *testing.T, file, data, body string) (notes []string) {
	t.Helper()
	h := hosttest.Start(t, file, data)
	defer func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := h.Client(t).PostMessage(t.Context(), client.Post{Task: "t", Body: body}); err != nil {
		t.Fatal(err)
	}
	for e, err := range h.Client(t).Entries(t.Context(), "t", "conform", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "note" {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// skippedOf are the reasons why turns were not run again.
func skippedOf(t *testing.T, file, data string) (reasons []string) {
	t.Helper()
	cfg, err := config.Load(file, config.Options{BundleDir: filepath.Join(guests.Root(), "bin", "plugins")})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store = hosttest.StoreOf(t, data, cfg.Store)
	turns, err := datadir.Replay(t.Context(), datadir.ReplayOptions{Config: cfg, DataDir: data, CacheDir: guests.CacheDir(t), Task: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range turns {
		reasons = append(reasons, turn.Skipped)
	}
	return reasons
}

// callsOf are the paths and the ops of a turn's calls, in their order.
func callsOf(t *testing.T, file, data string) (calls []string) {
	t.Helper()
	cfg, err := config.Load(file, config.Options{BundleDir: hosttest.Bundles()})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store = hosttest.StoreOf(t, data, cfg.Store)
	turns, err := datadir.Replay(t.Context(), datadir.ReplayOptions{
		Config: cfg, DataDir: data, CacheDir: guests.CacheDir(t), Task: "t",
		Each: func(_ int64, _ string, c datadir.ReplayedCall) { calls = append(calls, fmt.Sprint(c.Call, " ", c.Op)) },
	})
	if err != nil || len(turns) != 1 || turns[0].Difference != "" {
		t.Errorf("%+v, %v", turns, err)
	}
	return calls
}
