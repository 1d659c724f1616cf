package pages_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// The example in Python answers as its README says.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	python, _ := guests.Python(t)
	if python == "" {
		t.Skip("no Python with the libraries for agents; make python makes one")
	}
	const dir = "../../../../examples/subprocess/python"
	program := filepath.Join(guests.Root(), "bin", "python", "clerk")
	if out, err := exec.Command(python, "../../../../sdk/python/build.py", filepath.Join(dir, "agent.py"), program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := install(t).run(t, "the bees are busy", nil, "run", "-c", filepath.Join(dir, "swarm.toml"), "--data", filepath.Join(t.TempDir(), "data"))
	if got.code != 0 || got.stdout != "4 words, 4 in this task, counted in Python\n" {
		t.Errorf("%d: %s\n%s", got.code, got.stdout, got.stderr)
	}
}

// The review of the workflow example runs with agents in Wasm and one in Python (I-097).
func TestPythonWorkflow(t *testing.T) {
	t.Parallel()
	python, _ := guests.Python(t)
	if python == "" {
		t.Skip("no Python with the libraries for agents; make python makes one")
	}
	const dir = "../../../../examples/workflow"
	program := filepath.Join(guests.Root(), "bin", "python", "security")
	if out, err := exec.Command(python, "../../../../sdk/python/build.py", filepath.Join(dir, "python/agent.py"), program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ask := hosttest.ReadText(t, filepath.Join(dir, "ask"))
	got := install(t).run(t, ask, nil, "run", "-c", filepath.Join(dir, "python/swarm.toml"), "--data", filepath.Join(t.TempDir(), "data"))
	if got.code != 0 || !strings.Contains(got.stdout, `{"by":"Python","findings":["eval of a text"]}`) || !strings.Contains(got.stdout, "1 functions, 1 findings, 1 loops") {
		t.Errorf("%d: %s\n%s", got.code, got.stdout, got.stderr)
	}
}
