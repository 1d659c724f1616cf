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
	const dir = "../../../../examples/subprocess/python"
	buildPython(t, filepath.Join(dir, "agent.py"), "clerk")
	got := install(t).run(t, "the bees are busy", nil, "run", "-c", filepath.Join(dir, "swarm.toml"), "--data", filepath.Join(t.TempDir(), "data"))
	if got.code != 0 || got.stdout != "4 words, 4 in this task, counted in Python\n" {
		t.Errorf("%d: %s\n%s", got.code, got.stdout, got.stderr)
	}
}

// The review of the workflow example runs with agents in Wasm and one in Python (I-097).
func TestPythonWorkflow(t *testing.T) {
	t.Parallel()
	const dir = "../../../../examples/workflow"
	buildPython(t, filepath.Join(dir, "python/agent.py"), "security")
	ask := hosttest.ReadText(t, filepath.Join(dir, "ask"))
	got := install(t).run(t, ask, nil, "run", "-c", filepath.Join(dir, "python/swarm.toml"), "--data", filepath.Join(t.TempDir(), "data"))
	if got.code != 0 || !strings.Contains(got.stdout, `{"by":"Python","findings":["eval of a text"]}`) || !strings.Contains(got.stdout, "1 functions, 1 findings, 1 loops") {
		t.Errorf("%d: %s\n%s", got.code, got.stdout, got.stderr)
	}
}

// buildPython makes the program of an agent in Python, where the examples expect it.
func buildPython(t *testing.T, source, program string) {
	t.Helper()
	python, _ := guests.Python(t)
	if python == "" {
		t.Skip("no Python with the libraries for agents; make python makes one")
	}
	to := filepath.Join(guests.Root(), "bin", "python", program)
	if out, err := exec.Command(python, "../../../../sdk/python/build.py", source, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
