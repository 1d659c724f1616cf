package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// movedSwarm has an agent that asks a person.
const movedSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
actions = ["confirm"]
enable_entrypoint = true
can_complete_tasks = true
[actions.confirm]
source = "human"
description = "a person confirms"
parameters = { type = "object" }
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// movedStore is a host whose store is moved between a directory and a server.
type movedStore struct {
	t    *testing.T
	p    *installed
	dir  string
	vars map[string]string
}

// write writes the file with a [store] table.
func (m *movedStore) write(store string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, "swarm.toml"), []byte(movedSwarm+"[store]\n"+store), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *movedStore) file() string { return filepath.Join(m.dir, "swarm.toml") }

// start starts the host of the file.
func (m *movedStore) start(data string) *hosttest.Host {
	m.t.Helper()
	env := func(name string) (string, bool) { v, ok := m.vars[name]; return v, ok }
	cfg, err := config.Load(m.file(), config.Options{Env: env, BundleDir: hosttest.Bundles()})
	if err != nil {
		m.t.Fatal(err)
	}
	h := hosttest.Run(m.t, host.Options{Config: cfg, DataDir: filepath.Join(m.dir, data)})
	h.Key = hosttest.ScriptKey
	return h
}

func (m *movedStore) stop(h *hosttest.Host) {
	m.t.Helper()
	if err := h.Stop(); err != nil {
		m.t.Fatal(err)
	}
}

// command is a command of an operator.
func (m *movedStore) command(command string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = m.dir, append(m.p.env[:len(m.p.env):len(m.p.env)], "PATH="+filepath.Dir(m.p.path)+":"+os.Getenv("PATH"))
	for name, value := range m.vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// kill kills a command once it has printed something to standard error.
func (m *movedStore) kill(command string) {
	m.t.Helper()
	cmd := m.command("exec " + command)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = said.Read(make([]byte, 1))
	}
	if err == nil {
		err = cmd.Process.Kill()
	}
	if err != nil {
		m.t.Fatalf("$ %s\n%v", command, err)
	}
	_ = cmd.Wait() // it was killed
}

// run types a command of an operator, and returns all that it prints.
func (m *movedStore) run(command string) string {
	m.t.Helper()
	cmd := m.command(command)
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("$ %s\n%s%v", command, out, err)
	}
	return string(out)
}

// replay runs the turns of the task again.
func (m *movedStore) replay(data string) {
	m.t.Helper()
	if out := m.run("skep replay t -o json --data " + data); !strings.Contains(out, `"equal": true`) || strings.Contains(out, `"equal": false`) {
		m.t.Errorf("replay in %s:\n%s", data, out)
	}
}

// TestPostgresPage follows the page on PostgreSQL: a task that waits for a person when its
// store is moved to a server goes on there, its turns repeat, and exports are the same on
// both sides, also after the way back.
func TestPostgresPage(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "it moves a store itself")
	m := &movedStore{t: t, p: install(t), dir: t.TempDir(), vars: map[string]string{
		"SKEP_DSN": pgtest.Schema(t), "SKEP_KEYRING": strings.Repeat("5e", 32),
	}}
	if err := os.WriteFile(filepath.Join(m.dir, "script.wasm"), guests.Bytes(t, "plugins/script"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.write("keyring = \"env::SKEP_KEYRING\"\n")
	h := m.start(".skep")
	a, err := h.Client(t).PostMessage(t.Context(), client.Post{Task: "t", Subject: "s", Body: `[["confirm",{"item":"tea"}],["task_complete",{"finish_message":"{{0}}"}]]`})
	if err != nil || !strings.Contains(a.Body, "confirm") {
		t.Fatal(a, err)
	}
	m.stop(h)
	before := m.run("skep tenant export default")

	all := consolesIn(hosttest.ReadText(t, "../../../docs/postgres.md"))
	if len(all) != 10 || all[2].command != "skep serve" {
		t.Fatalf("the page has %q", all)
	}
	onServer, _, _ := strings.Cut(strings.SplitN(hosttest.ReadText(t, "../../../docs/postgres.md"), "```toml\n[store]\n", 2)[1], "```")
	m.write(onServer)
	for command, code := range map[string]string{"skep serve": "3", "skep doctor store": "8"} {
		if out := m.run(command + " 2>&1; test $? = " + code); !strings.Contains(out, "swarm.toml:22:14: the server has no synchronous standby") {
			t.Errorf("$ %s\n%s", command, out)
		}
	}
	onServer = strings.Replace(onServer, `durability = "replicated"`, `durability = "local"     `, 1)
	file := "keyring = \"env::SKEP_KEYRING\"\n"
	m.write(onServer)
	m.follow(all[0])
	m.write(file)
	m.follow(all[1])
	m.write(onServer)
	if after := m.run("skep tenant export default"); after != before {
		t.Errorf("the server has\n%s\nwant\n%s", after, before)
	}
	h = m.start(".skep")
	yes := "yes, with milk"
	if a, err := h.Client(t).PostMessage(t.Context(), client.Post{Task: "t", Result: &yes}); err != nil || a.Body != yes {
		t.Errorf("answer %+v, %v", a, err)
	}
	m.stop(h)
	m.replay(".skep")
	before = m.run("skep tenant export default")
	for _, s := range all[4:7] {
		m.follow(s)
	}
	m.vars["SKEP_OLD"], m.vars["SKEP_KEYRING"] = m.vars["SKEP_KEYRING"], strings.Repeat("a1", 32)
	m.follow(all[7])
	m.write(file)
	m.follow(all[8])
	m.follow(all[3])
	m.follow(shown{"SKEP_KEYRING=$SKEP_OLD " + all[9].command, all[9].output})
	if after := m.run("SKEP_KEYRING=$SKEP_OLD skep tenant export default --data restored"); after != before {
		t.Errorf("the backup has\n%s\nwant\n%s", after, before)
	}
	if after := m.run("skep tenant export default --data back"); after != before {
		t.Errorf("the directory has\n%s\nwant\n%s", after, before)
	}
	m.run("cp -r .skep/modules back/")
	m.replay("back")
}

// follow types a command of the page, and looks at what it prints.
func (m *movedStore) follow(s shown) {
	m.t.Helper()
	if out := m.run(s.command); !s.matches(out) {
		m.t.Errorf("$ %s\n%s, want\n%s", s.command, out, s.output)
	}
}
