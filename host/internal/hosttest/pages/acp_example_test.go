package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// TestACPExample: the commands of the example for ACP print what its page says: a program
// with generated codecs talks to an agent with such, whose files are what the compiler
// writes today.
func TestACPExample(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"python3", "curl", "javac", "java"} {
		if _, err := exec.LookPath(program); err != nil && guests.ToolchainsRequired() {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
	const example = "../../../../examples/acp"
	page, p, dir := hosttest.ReadText(t, example+"/README.md"), install(t), t.TempDir()
	host := hosttest.Start(t, example+"/swarm.toml", t.TempDir())
	defer func() {
		if err := host.Stop(); err != nil {
			t.Error("stop:", err)
		}
	}()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.path, filepath.Join(dir, "bin", "skep")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"examples/acp", "spec/gateways/acp"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("../../../..", name))); err != nil {
			t.Fatal(err)
		}
	}
	vars := "SKEP_URL=http://" + host.Addr() + "\n"
	run := 0
	for _, s := range consolesIn(page) {
		switch {
		case strings.HasPrefix(s.command, ": "):
			vars += s.command + "\n"
			continue
		case strings.HasPrefix(s.command, "bin/skep serve"), strings.HasPrefix(s.command, "bin/skep run"):
			continue // host serves; TestExamples runs
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", vars+s.command)
		cmd.Dir, cmd.Env = dir, p.env
		if out, err := cmd.CombinedOutput(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
		run++
	}
	if run != 8 {
		t.Errorf("%d commands", run)
	}
	for _, name := range []string{"messages.go", "parse.go", "read.go", "write.go"} {
		file := filepath.Join("examples", "acp", "agent", name)
		if hosttest.ReadText(t, filepath.Join(dir, file)) != hosttest.ReadText(t, filepath.Join("../../../..", file)) {
			t.Errorf("%s is not what the compiler writes: run the command of the page", file)
		}
	}
}
