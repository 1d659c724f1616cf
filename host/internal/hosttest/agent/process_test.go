package agent_test

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
	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
	"skep/host/internal/turn/process"
)

// A process that is killed in the middle of a turn ends that turn, and nothing
// else: the next task has a new one.
func TestProcessKilledInTurn(t *testing.T) {
	t.Parallel()
	name := "worker" + strconv.Itoa(os.Getpid())
	dir := hosttest.ProgramDir(t, strings.Replace(hosttest.ProgramSwarm, "exec:worker", "exec:"+name, 1), nil)
	if err := os.WriteFile(filepath.Join(dir, name), hosttest.ConformProgram(t), 0o700); err != nil {
		t.Fatal(err)
	}
	h := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), filepath.Join(dir, ".skep"))
	cl := h.Client(t)
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
		for _, pid := range hosttest.ProcessesNamed(t, "exec:"+name) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
				t.Fatal(err)
			}
		}
	}
	a, err := cl.PostMessage(t.Context(), client.Post{Task: "next", Body: `[["call",{"op":20,"request":{"key":"k"}}],["task_complete",{"finish_message":"still here"}]]`})
	if err != nil || a.Body != "still here" {
		t.Errorf("the next task: %+v %v", a, err)
	}
	if err := h.Stop(); err != nil {
		t.Error(err)
	}
	if left := hosttest.ProcessesNamed(t, "exec:"+name); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// A program that is no agent keeps a host from starting, with the reason.
func TestProgramThatIsNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, program, want string
	}{
		"ends":   {hosttest.ProgramSwarm, "#!/bin/sh\necho 'no library' >&2; exit 3\n", "no library"},
		"pinned": {strings.Replace(hosttest.ProgramSwarm, "trusted = true", "trusted = true\nsha256 = \""+strings.Repeat("0", 64)+"\"", 1), "#!/bin/sh\n", "pinned is 0000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := hosttest.ProgramDir(t, c.file, []byte(c.program))
			cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = host.New(t.Context(), host.Options{
				Config: cfg, DataDir: filepath.Join(dir, ".skep"), Listen: "127.0.0.1:0", AdminListen: "off",
				Subprocess: []string{"/proc/self/exe", process.Command},
			})
			if err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
