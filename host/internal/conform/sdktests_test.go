package conform_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"skep/host/internal/guests"
)

// compiler is what the environment calls a program, as for make and sdk/rebuild.sh.
func compiler(variable, otherwise string) string { return cmp.Or(os.Getenv(variable), otherwise) }

// The SDKs that are not Go's pass their own tests, in a copy that leaves nothing in
// the tree.
func TestSDKsPassTheirOwnTests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles SDKs")
	}
	asc := compiler("ASC", filepath.Join(guests.Root(), "sdk", "assemblyscript", "node_modules", ".bin", "asc"))
	tests := map[string]struct {
		needs []string
		steps [][]string
	}{
		"c":    {[]string{"make", compiler("CC", "cc")}, [][]string{{"make", "-s", "test"}}},
		"rust": {[]string{compiler("CARGO", "cargo"), compiler("RUSTC", "rustc")}, [][]string{{compiler("CARGO", "cargo"), "test", "-q", "--offline", "--lib", "--examples"}}},
		"assemblyscript": {[]string{"node", asc}, [][]string{
			{"node", "build.mjs"}, {"node", "--test", "testing"},
		}},
	}
	for language, tt := range tests {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			for _, tool := range tt.needs {
				if _, err := exec.LookPath(tool); err != nil {
					if guests.ToolchainsRequired() {
						t.Fatal(err)
					}
					t.Skipf("%s is not here: the SDK is tested where it is", tool)
				}
			}
			dir := filepath.Join(t.TempDir(), language)
			copySources(t, filepath.Join(guests.Root(), "sdk", language), dir)
			for _, step := range tt.steps {
				cmd := exec.Command(step[0], step[1:]...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "ASC="+asc)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", step, err, out)
				}
			}
		})
	}
}

// copySources copies an SDK without what was built or installed in it.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch e.Name() {
		case "build", "target", "node_modules":
			continue
		}
		if e.IsDir() {
			copySources(t, source, target)
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
