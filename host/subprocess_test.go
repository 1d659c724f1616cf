package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/config"
	"skep/host/internal/guests"
	"skep/host/internal/subprocess"
)

const processFile = `schema = 1
[swarm]
name = "desk"
entrypoint = "worker"
[agents.worker]
source = "exec:worker"
trusted = true
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "agent" }
`

// processDir holds a swarm whose one agent is a program.
func processDir(t *testing.T, file string, program []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"swarm.toml": []byte(file), "worker": program} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func conformProgram(t *testing.T) []byte {
	t.Helper()
	program, err := os.ReadFile(guests.Program(t, "testguests/conform"))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// runningAs lists the processes that are called by a name, which is their first
// argument.
func runningAs(t *testing.T, name string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		first, _, _ := strings.Cut(string(raw), "\x00")
		if pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && bad == nil && first == name {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A process that is killed in the middle of a turn ends that turn, and nothing
// else: the next task has a new one.
func TestProcessKilledInTurn(t *testing.T) {
	name := "worker" + strconv.Itoa(os.Getpid())
	dir := processDir(t, strings.Replace(processFile, "exec:worker", "exec:"+name, 1), nil)
	if err := os.WriteFile(filepath.Join(dir, name), conformProgram(t), 0o700); err != nil {
		t.Fatal(err)
	}
	h := startHost(t, filepath.Join(dir, "swarm.toml"), filepath.Join(dir, ".skep"))
	cl := h.client(t)
	if _, err := cl.PostAsync(t.Context(), client.Post{Task: "long", Body: `[["sleep",{"ms":600000}]]`}); err != nil {
		t.Fatal(err)
	}
	// A process that is killed before the turn is in it is only replaced.
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Second) {
		record, err := cl.Task(t.Context(), "long")
		if err == nil && record.State == "failed" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the task goes on: %+v %v", record, err)
		}
		for _, pid := range runningAs(t, "exec:"+name) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
				t.Fatal(err)
			}
		}
	}
	a, err := cl.PostMessage(t.Context(), client.Post{Task: "next", Body: `[["call",{"op":20,"request":{"key":"k"}}],["task_complete",{"finish_message":"still here"}]]`})
	if err != nil || a.Body != "still here" {
		t.Errorf("the next task: %+v %v", a, err)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	if left := runningAs(t, "exec:"+name); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// A program that is no agent keeps a host from starting, and says why.
func TestProgramThatIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		file, program, want string
	}{
		"ends":   {processFile, "#!/bin/sh\necho 'no library' >&2; exit 3\n", "no library"},
		"pinned": {strings.Replace(processFile, "trusted = true", "trusted = true\nsha256 = \""+strings.Repeat("0", 64)+"\"", 1), "#!/bin/sh\n", "pinned is 0000"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := processDir(t, c.file, []byte(c.program))
			cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = host.New(t.Context(), host.Options{
				Config: cfg, DataDir: filepath.Join(dir, ".skep"), Listen: "127.0.0.1:0", AdminListen: "off",
				Subprocess: []string{"/proc/self/exe", subprocess.Command},
			})
			if err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
