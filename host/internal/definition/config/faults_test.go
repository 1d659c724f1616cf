package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected faults in testdata/faults")

// testEnv is the environment of all test files.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"SHORT":   "tooshort",
		"EMPTY":   "",
		"OPS_KEY": "0123456789abcdef-ops",
		"ORIGIN":  "https://secret.example/path",
		"LISTEN":  "127.0.0.1:9999",
		"TURN":    "90s",
		"MANY":    "12",
		"FLAG":    "true",
		"LINES":   "a\r\nb: c",
		"NAME":    "secret name",
		"JUNK":    "junk-from-env",
	}[name]
	return v, ok
}

var testOptions = Options{Env: testEnv, BundleDir: "testdata/valid/plugins"}

// A file in testdata/faults ends with the faults it has, one "#= " line each.
// With the line "#! all built" it is read as if no capability was missing (G-013).
func TestFaults(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/faults/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	total := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body, want := splitWant(string(text))
		total += len(want)
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := faultLines(t, file, body)
			if *update {
				writeWant(t, file, body, got)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("faults mismatch (-want +got):\n%s", diff)
			}
		})
	}
	if total < 60 {
		t.Errorf("only %d faults are tested", total)
	}
}

func splitWant(text string) (body string, want []string) {
	body, rest, found := strings.Cut(text, "#= ")
	if !found {
		return body, nil
	}
	return body, strings.Split(strings.TrimSuffix(rest, "\n"), "\n#= ")
}

func faultLines(t *testing.T, file, body string) []string {
	missing := refusedCapabilities()
	if strings.Contains(body, "#! all built\n") {
		missing = nil
	}
	_, err := parse("swarm.toml", []byte(body), filepath.Dir(file), testOptions, missing)
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("error = %v, want Faults", err)
	}
	var lines []string
	for _, f := range faults {
		lines = append(lines, strings.TrimPrefix(f.String(), "swarm.toml:"))
	}
	return lines
}

func writeWant(t *testing.T, file, body string, got []string) {
	text := body + "#= " + strings.Join(got, "\n#= ") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
