package golden_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faultLines are the lines of a command that name a place in a file.
func faultLines(output string) (lines []string) {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "DIR/") {
			lines = append(lines, line)
		}
	}
	return lines
}

// What makes validate refuse a file makes run and serve refuse it, in the same lines and
// with the same exit code.
func TestRunAndServeRefuseAsValidate(t *testing.T) {
	t.Parallel()
	s := newShell(t, "faulty")
	s.write("not.wasm", "no module")
	const agent = "comm_targets = [\"other\"]\nenable_entrypoint = true\ncan_complete_tasks = true\n[agents.other]\ncomm_targets = [\"boss\"]\n"
	const head = "schema = 1\n[swarm]\nname = \"hive\"\nentrypoint = \"boss\"\n[agents.boss]\n"
	s.write("module.toml", head+"source = \"file:not.wasm\"\n"+agent+"source = \"file:not.wasm\"\n")
	s.write("program.toml", head+"source = \"exec:not.wasm\"\ntrusted = true\n"+agent+"source = \"exec:not.wasm\"\ntrusted = true\nreadable = [\"conform.wasm\"]\n")
	for file, want := range map[string]int{"swarm.toml": 3, "refused.toml": 3, "module.toml": 5, "program.toml": 3} {
		code, _, stderr := s.run("validate", "-c", s.file(file))
		faults := faultLines(stderr)
		if code != want || len(faults) < 2 {
			t.Errorf("validate %s: exit code %d, want %d\n%s", file, code, want, stderr)
		}
		code, _, stderr = s.run("run", "-c", s.file(file), "hello")
		if diff := cmp.Diff(asSet(faults), asSet(faultLines(stderr))); code != want || diff != "" {
			t.Errorf("run %s: exit code %d, want %d\n%s", file, code, want, diff)
		}
		code, _, stderr = s.run("serve", "-c", s.file(file))
		faults = withoutWarnings(faults) // they are in the log
		if diff := cmp.Diff(faults, faultLines(stderr)); code != want || diff != "" {
			t.Errorf("serve %s: exit code %d, want %d\n%s", file, code, want, diff)
		}
	}
}

func asSet(lines []string) map[string]bool {
	set := map[string]bool{}
	for _, line := range lines {
		set[line] = true
	}
	return set
}

func withoutWarnings(lines []string) (faults []string) {
	for _, line := range lines {
		if !strings.Contains(line, ": warning: ") {
			faults = append(faults, line)
		}
	}
	return faults
}
