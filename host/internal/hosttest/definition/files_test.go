package definition_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/datadir"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// filesSwarm has every file action, and one that reads what all tenants share.
const filesSwarm = `schema = 1
[swarm]
name = "desk"
entrypoint = "clerk"
[agents.clerk]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["read_file", "read_directory", "write_file", "create_directory", "delete_file", "read_manual", "ask"]
[actions.read_file]
source = "builtin:fs"
root = "notes"
[actions.read_directory]
source = "builtin:fs"
root = "notes"
[actions.write_file]
source = "builtin:fs"
root = "notes"
write = true
max_file = "1KiB"
max_total = "1500"
[actions.create_directory]
source = "builtin:fs"
root = "notes"
write = true
[actions.delete_file]
source = "builtin:fs"
root = "notes"
write = true
[actions.read_manual]
source = "builtin:fs/read_file"
root = "manual"
shared = true
[actions.ask]
source = "human"
description = "Ask a person."
parameters = { type = "object", required = ["item"], properties = { item = { type = "string" } } }
` + hosttest.CallerTables

// newFiles is a site whose file actions have their roots.
func newFiles(t *testing.T) *hosttest.Site {
	t.Helper()
	s := hosttest.EmptySite(t)
	for _, dir := range []string{"notes", "manual"} {
		if err := os.Mkdir(filepath.Join(s.Dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "manual", "page"), []byte("for all"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Write(filesSwarm)
	s.Start()
	return s
}

// Agents read and write files of their tenant only: not of another
// tenant, not of the operator, whatever path they ask for.
func TestFileActions(t *testing.T) {
	t.Parallel()
	s := newFiles(t)
	at := func(p string) hosttest.Args { return hosttest.Args{"path": p} }
	got := s.Do(hosttest.AdaKey, "t",
		hosttest.Step{"write_file", hosttest.Args{"path": "a/b.txt", "content": "ada's"}}, hosttest.Step{"create_directory", at("c")}, hosttest.Step{"read_directory", at(".")},
		hosttest.Step{"read_file", at("a/b.txt")}, hosttest.Step{"read_manual", at("page")}, hosttest.Step{"write_file", hosttest.Args{"path": "d", "content": strings.Repeat("x", 1025)}},
		hosttest.Step{"write_file", hosttest.Args{"path": "d", "content": strings.Repeat("x", 1024)}}, hosttest.Step{"write_file", hosttest.Args{"path": "e", "content": strings.Repeat("x", 1000)}},
		hosttest.Step{"read_file", at("../acme/a")}, hosttest.Step{"read_file", hosttest.Args{"paht": "x"}}, hosttest.Step{"delete_file", at("d")})
	for _, want := range []string{
		`"successfully wrote to a/b.txt" | "successfully created directory at c" | "a/\nc/" | "ada's" | "for all" | `,
		"LIMIT: failed to execute action tool: the content has 1025 bytes, at most 1024; [actions.write_file] max_file allows more",
		"would have 2029 bytes, at most 1500; [actions.write_file] max_total allows more",
		`path must not have "..": "../acme/a"`, `INVALID: the arguments of action "read_file": paht: is not a known key; path: is missing`,
		`| "successfully deleted d"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	got = s.Do(hosttest.AnnKey, "t", hosttest.Step{"read_directory", at(".")}, hosttest.Step{"read_file", at("a/b.txt")}, hosttest.Step{"read_file", at("default/a/b.txt")}, hosttest.Step{"read_manual", at("page")},
		hosttest.Step{"write_file", hosttest.Args{"path": "a/b.txt", "content": "ann's"}})
	for _, want := range []string{`"" | `, `NOT_FOUND: failed to execute action tool: there is no "a/b.txt"`, `there is no "default/a/b.txt"`, `"for all"`, "successfully wrote"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	for tenant, want := range map[string]string{"default": "ada's", "acme": "ann's"} {
		if got, err := os.ReadFile(filepath.Join(s.Dir, "notes", tenant, "a", "b.txt")); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", tenant, got, err)
		}
	}
	if err := s.As(hosttest.OperatorKey).EraseTenant(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(s.Dir, "notes"))
	if err != nil || len(left) != 1 || left[0].Name() != "default" {
		t.Errorf("left is %v: %v", left, err)
	}
}

// A host that dies in an erasure may leave files of a tenant that keeps nothing else.
// The erasure can be asked for again.
func TestFilesOfAnErasureThatWasCutShort(t *testing.T) {
	t.Parallel()
	s := newFiles(t)
	left := filepath.Join(s.Dir, "notes", "acme")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "f"), []byte("ann's"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.As(hosttest.OperatorKey).EraseTenant(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the files are there: %v", err)
	}
	if err := s.As(hosttest.OperatorKey).EraseTenant(t.Context(), "acme"); err == nil || !strings.Contains(err.Error(), "keeps nothing") {
		t.Errorf("erased twice: %v", err)
	}
}

// What was asked and told is in the record: a replay touches no file.
func TestFilesReplay(t *testing.T) {
	t.Parallel()
	s := newFiles(t)
	s.Do(hosttest.AdaKey, "t", hosttest.Step{"write_file", hosttest.Args{"path": "f", "content": "one"}}, hosttest.Step{"read_file", hosttest.Args{"path": "f"}}, hosttest.Step{"delete_file", hosttest.Args{"path": "f"}})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	cfg, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store = hosttest.StoreOf(t, s.Data, cfg.Store)
	turns, err := datadir.Replay(t.Context(), datadir.ReplayOptions{Config: cfg, DataDir: s.Data, CacheDir: guests.CacheDir(t), Task: "t"})
	if err != nil || len(turns) != 1 || turns[0].Difference != "" {
		t.Errorf("%+v, %v", turns, err)
	}
	if left, err := os.ReadDir(filepath.Join(s.Dir, "notes", "default")); err != nil || len(left) != 0 {
		t.Errorf("left is %v: %v", left, err)
	}
}

// A definition over the network has the file actions of the file with the roots of
// the file, and no others.
func TestFilesOverTheNetwork(t *testing.T) {
	t.Parallel()
	s := newFiles(t)
	def := func(action string) string {
		return `{"swarm":{"name":"desk","entrypoint":"clerk"},"agents":{"clerk":{"source":"file:script.wasm","enable_entrypoint":true,"can_complete_tasks":true,"actions":["write_file"]}},
			"actions":{` + action + `}}`
	}
	for action, want := range map[string]string{
		`"write_file":{"source":"builtin:fs","root":"/etc"}`:                                                        "actions.write_file.root: only the operator's file may say so",
		`"write_file":{"source":"builtin:fs","write":true}`:                                                         "actions.write_file.write: only",
		`"write_file":{"source":"builtin:fs","shared":true}`:                                                        "actions.write_file.shared: only",
		`"write_file":{"source":"builtin:fs","max_file":"8MiB"}`:                                                    "actions.write_file.max_file: only",
		`"write_file":{"source":"builtin:fs","max_total":"8GiB"}`:                                                   "actions.write_file.max_total: only",
		`"write_file":{"source":"builtin:fs/write_file"}`:                                                           "no module that the operator's file names",
		`"write_file":{"source":"builtin:fs","timeout":"3m"}`:                                                       "actions.write_file.timeout: the operator's file allows 2m0s",
		`"write_file":{"source":"builtin:fs"},"write_more":{"source":"builtin:fs"}`:                                 "actions.write_more: the operator's file has no action of this name with code",
		`"write_file":{"source":"builtin:fs","limits":{"memory":"1MiB"}}`:                                           "the host does this one itself",
		`"write_file":{"source":"builtin:fs"},"ask":{"source":"human","description":"d","parameters":{"$ref":"#"}}`: "the parameters of action",
	} {
		if _, err := s.As(hosttest.AnnKey).LoadSwarm(t.Context(), def(action)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", action, err, want)
		}
	}
	if _, err := s.As(hosttest.AnnKey).LoadSwarm(t.Context(), def(`"write_file":{"source":"builtin:fs"}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := s.Do(hosttest.AnnKey, "", hosttest.Step{"write_file", hosttest.Args{"path": "f", "content": "x"}}, hosttest.Step{"read_file", hosttest.Args{"path": "f"}}); !strings.Contains(got, `"successfully wrote to f" | `) || !strings.Contains(got, `has no action "read_file"`) {
			t.Error(got)
		}
		if got, err := os.ReadFile(filepath.Join(s.Dir, "notes", "acme", "f")); err != nil || string(got) != "x" {
			t.Errorf("%q, %v", got, err)
		}
		s.Restart()
	}
}

// A task that was begun with an action that the file has no more goes on without it.
func TestFilesAreTakenAway(t *testing.T) {
	t.Parallel()
	s := newFiles(t)
	body := strings.ReplaceAll(hosttest.Script(hosttest.Step{"ask", hosttest.Args{"item": "tea"}}, hosttest.Step{"read_file", hosttest.Args{"path": "f"}}, hosttest.Step{"read_manual", hosttest.Args{"path": "page"}},
		hosttest.Step{"task_complete", hosttest.Args{"finish_message": "{{1}} | {{2}}"}}), `{\u007b`, "{{")
	if _, err := s.As(hosttest.AdaKey).PostMessage(t.Context(), client.Post{Task: "t", Body: body}); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(filesSwarm, `"read_file", `, "", 1)
	s.Write(strings.Replace(text, "[actions.read_file]\nsource = \"builtin:fs\"\nroot = \"notes\"\n", "", 1))
	s.Restart()
	got := confirm(t, s.Addr(), hosttest.AdaKey, "t")
	if !strings.Contains(got, `UNSUPPORTED: failed to execute action tool: the operator's file does not have the action "read_file" any more`) || !strings.Contains(got, "for all") {
		t.Error(got)
	}
}

// A person is only asked what has the form that the file gives, and the agent is
// told which member has not.
func TestHumanArguments(t *testing.T) {
	t.Parallel()
	s := newFiles(t)
	for given, want := range map[string]string{
		`{"item":1}`:     "item: must be a string, not a number",
		`{"itme":"tea"}`: "item: is missing",
		`{}`:             "item: is missing",
	} {
		got, err := s.As(hosttest.AdaKey).PostMessage(t.Context(), client.Post{Body: `[["ask",` + given + `],["task_complete",{"finish_message":"{{0}}"}]]`})
		if err != nil || !strings.Contains(got.Body, `INVALID: the arguments of action "ask": `+want) {
			t.Errorf("%s: %s, %v", given, got.Body, err)
		}
	}
	got, err := s.As(hosttest.AdaKey).PostMessage(t.Context(), client.Post{Task: "good", Body: `[["ask",{"item":"tea"}]]`})
	if err != nil || !strings.Contains(got.Body, `"function_call"`) {
		t.Errorf("%s, %v", got.Body, err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s.Write(strings.Replace(filesSwarm, "\n[agents.clerk]", "\nbreakpoint_tools = [\"read_manual\"]\n[agents.clerk]", 1))
	s.Start()
	stopped := s.Do(hosttest.AdaKey, "t", hosttest.Step{"read_manual", hosttest.Args{"paht": "page"}}, hosttest.Step{"ask", hosttest.Args{}})
	if !strings.Contains(stopped, `INVALID: the arguments of action "read_manual": paht: is not a known key`) {
		t.Error(stopped)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	cfg, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store = hosttest.StoreOf(t, s.Data, cfg.Store)
	turns, err := datadir.Replay(t.Context(), datadir.ReplayOptions{Config: cfg, DataDir: s.Data, CacheDir: guests.CacheDir(t), Task: "t"})
	if err != nil || len(turns) != 1 || turns[0].Difference != "" {
		t.Errorf("%+v, %v", turns, err)
	}
}

// What the host keeps is in no root, and what cannot be checked is refused at start.
func TestFileFaults(t *testing.T) {
	t.Parallel()
	s := newFiles(t)
	cfg, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data, old, new, want string
	}{
		"data within":    {data: filepath.Join(s.Dir, "notes", "data"), want: "actions.read_file.root and "},
		"data around":    {data: s.Dir, want: "which is the host's own, lie one within the other"},
		"parameters":     {old: "max_file = \"1KiB\"", new: "parameters = { dependencies = {} }", want: `the parameters of action "write_file" cannot be checked`},
		"a human's":      {old: "required = [\"item\"]", new: "\"$ref\" = \"#\"", want: `the parameters of action "ask" cannot be checked`},
		"root that went": {old: `root = "notes"`, new: `root = "gone"`, want: "cannot be opened: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			gone := filepath.Join(s.Dir, "gone")
			if err := os.MkdirAll(gone, 0o700); err != nil {
				t.Fatal(err)
			}
			cfg := cfg
			if c.old != "" {
				cfg, err = config.Parse("swarm.toml", []byte(strings.ReplaceAll(filesSwarm, c.old, c.new)), s.Dir, config.Options{})
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Remove(gone); err != nil {
				t.Fatal(err)
			}
			data := c.data
			if data == "" {
				data = t.TempDir()
			}
			faults := definition.Faults(cfg, data)
			if len(faults) == 0 || !strings.Contains(faults.Error(), c.want) || faults[0].Line < 10 {
				t.Errorf("%v, want %q", faults, c.want)
			}
			h, err := host.New(context.Background(), host.Options{Config: cfg, DataDir: data, CacheDir: guests.CacheDir(t), Listen: "127.0.0.1:0", AdminListen: "off"})
			if err == nil {
				_ = h.Close()
				t.Error("the host starts")
			}
		})
	}
	if faults := definition.Faults(cfg, s.Data); len(faults) > 0 {
		t.Error(faults)
	}
}

// A root, and how much may be written, are shown by a plan, and what is wider is
// told apart.
func TestFilesPlan(t *testing.T) {
	t.Parallel()
	s := newFiles(t)
	if err := os.Mkdir(filepath.Join(s.Dir, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		old, new string
		widened  bool
	}{
		"actions.read_manual.root":     {`root = "manual"`, `root = "other"`, true},
		"actions.write_file.max_total": {`max_total = "1500"`, `max_total = "1600"`, true},
		"actions.write_file.max_file":  {`max_file = "1KiB"`, `max_file = "1000"`, false},
		"actions.read_manual.shared":   {"shared = true", "", false},
	} {
		s.Write(strings.Replace(filesSwarm, c.old, c.new, 1))
		p, err := s.As(hosttest.OperatorKey).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, change := range p {
			if change.Name == name {
				found = true
				if change.Widened != c.widened || change.Restart {
					t.Errorf("%+v", change)
				}
			}
		}
		if !found {
			t.Errorf("no %s in %+v", name, p)
		}
	}
}
