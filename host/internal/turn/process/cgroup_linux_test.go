package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/turn"
	"skep/host/internal/turn/process"
)

// fakeCgroup is a directory with the files of a control group; the kernel does nothing in
// it.
func fakeCgroup(t *testing.T, controllers string) string {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte(controllers), 0o600),
		os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A process enters a group of its own with its limits, and what the kernel has killed there
// for its memory ends by limits.memory.
func TestProcessHasAControlGroup(t *testing.T) {
	parent, err := process.OpenCgroup(fakeCgroup(t, "cpu memory pids\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := openWith(t, process.Options{Cgroup: parent.Dir()})
	pid := pidOf(t, p)
	groups, err := filepath.Glob(filepath.Join(parent.Dir(), "skep-agent-*"))
	if err != nil || len(groups) != 1 {
		t.Fatal(groups, err)
	}
	for file, want := range map[string]string{
		"cgroup.procs": strconv.Itoa(pid), "memory.max": strconv.Itoa((256 + 64) << 20), "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "512",
		"../cgroup.subtree_control": "+memory +pids",
	} {
		if got, err := os.ReadFile(filepath.Join(groups[0], file)); string(got) != want {
			t.Errorf("%s: %q %v, want %q", file, got, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(groups[0], "memory.events"), []byte("oom 1\noom_kill 1\noom_group_kill 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan *turn.Exit)
	go func() {
		_, exit := ask(t, t.Context(), p, "hang", "")
		ended <- exit
	}()
	for !p.Busy() {
		runtime.Gosched()
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := <-ended; exit == nil || exit.Kind != turn.ExitMemory {
		t.Errorf("ended as %v", exit)
	}
}

// A group that may not limit memory is none.
func TestUselessControlGroup(t *testing.T) {
	for setting, want := range map[string]string{
		"off": "process_cgroup is off", fakeCgroup(t, "cpu pids"): "may not limit memory", filepath.Join(t.TempDir(), "none"): "no such file",
	} {
		c, err := process.OpenCgroup(setting)
		if err == nil || !strings.Contains(err.Error(), want) || c.Dir() != "" || c.Close() != nil {
			t.Errorf("%s: %q %v, want %q", setting, c.Dir(), err, want)
		}
	}
}

// What confines processes here is told, and why what does not.
func TestConfinements(t *testing.T) {
	all, err := process.Confinements("off")
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	for _, c := range all {
		if c.Detail == "" || c.Name == "own root" && c.InForce != canMount() || c.Name == "cgroup" && (c.InForce || !strings.Contains(c.Detail, "process_cgroup is off")) {
			t.Errorf("%+v", c)
		}
	}
}
