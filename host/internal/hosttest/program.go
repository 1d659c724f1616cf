package hosttest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/guests"
)

// Program is the program of this test binary, built at its first use.
var program builtProgram

// builtProgram is the program skep in a directory of its own.
type builtProgram struct {
	once sync.Once
	dir  string
	err  error
}

func (p *builtProgram) build() (path string, err error) {
	p.once.Do(func() {
		if p.dir, p.err = os.MkdirTemp("", "skep-hosttest-"); p.err == nil {
			p.err = BuildProgram(p.dir)
		}
	})
	return filepath.Join(p.dir, "skep"), p.err
}

// BuildProgram makes the program skep in a directory, without the race detector, under
// which a command takes seconds to start. It links the bundled modules beside it. Flags are further ones of go build.
func BuildProgram(dir string, flags ...string) error {
	file, system := filepath.Join(dir, "skep"), runtime.GOOS
	if wine := os.Getenv("SKEP_WINE"); wine != "" {
		start := fmt.Sprintf("#!/bin/sh\nunset TMPDIR\nexec %s %s.exe \"$@\"\n", wine, file)
		if err := os.WriteFile(file, []byte(start), 0o700); err != nil {
			return err
		}
		file, system = file+".exe", "windows"
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", file}, flags...)
	cmd := exec.Command("go", append(args, "./host/cmd/skep")...)
	cmd.Dir, cmd.Env = guests.Root(), append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build skep: %w\n%s", err, out)
	}
	return os.Symlink(Bundles(), filepath.Join(dir, "plugins"))
}

func (p *builtProgram) remove() {
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}

// Program returns the file of the program as operators have it: the bundled modules
// lie beside it.
func Program(t *testing.T) string {
	t.Helper()
	guests.Bytes(t, "plugins/script") // builds all guests if it must
	path, err := program.build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ProgramWith builds the program for this test alone, with flags of go build.
func ProgramWith(t *testing.T, flags ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	if err := BuildProgram(dir, flags...); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "skep")
}

// ProgramFrom builds the program for this test alone, with other texts for files of its sources, by path
// (https://pkg.go.dev/cmd/go#hdr-Compile_packages_and_dependencies).
func ProgramFrom(t *testing.T, sources map[string]string) (path string) {
	t.Helper()
	dir, replaced := t.TempDir(), map[string]string{}
	for file, text := range sources {
		replaced[file] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replaced[file], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return ProgramWith(t, "-overlay", overlay)
}

// CacheHome returns a directory for XDG_CACHE_HOME, in which the program finds the
// compiled code of all guests.
func CacheHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	if err := os.Symlink(guests.CacheDir(t), filepath.Join(home, "skep")); err != nil {
		t.Fatal(err)
	}
	return home
}

// ProgramSwarm is a swarm whose one agent is the program worker.
const ProgramSwarm = `schema = 1
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

// ProgramDir returns a directory with a file and the program worker.
func ProgramDir(t *testing.T, file string, worker []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"swarm.toml": []byte(file), "worker": worker} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ConformProgram returns the conformance guest as a program.
func ConformProgram(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(guests.Program(t, "testguests/conform"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ProcessesNamed lists the processes of this machine with a name, which is their first
// argument.
func ProcessesNamed(t *testing.T, name string) (pids []int) {
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
