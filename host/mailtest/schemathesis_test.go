package mailtest_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/internal/guests"
	"skep/spec"
)

// judgeTime is how long schemathesis may take. It ends by the number of requests.
const judgeTime = 5 * time.Minute

// TestSchemathesis has a tool of others judge a host by the description: each operation
// is sent what fits its schema and what does not, and accepts the one and refuses the
// other, in the described form. SKEP_OPENAPI_EXAMPLES is how many requests an operation
// gets of random data; SKEP_OPENAPI_SEED makes others of them.
func TestSchemathesis(t *testing.T) {
	t.Parallel()
	program, err := filepath.Abs("../../bin/openapi/bin/schemathesis")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil && guests.ToolchainsRequired() {
		t.Fatal(err)
	} else if err != nil {
		t.Skipf("needs %s: make openapi-tool", program)
	}
	settings, err := filepath.Abs("testdata/schemathesis/schemathesis.toml")
	if err != nil {
		t.Fatal(err)
	}
	agents := strings.Replace(hive, "enable_entrypoint = true", "enable_entrypoint = true\nenable_interswarm = true", 1)
	w := newWorldOf(t, "public = true\nenable_interswarm = true\n", agents,
		"[tenants.acme]\n[[auth.keys]]\nid = \"root\"\nrole = \"operator\"\nkey = \""+root+"\"\n[server]\ndebug = true\nrate_limit = { requests = 0 }\n")
	dir := t.TempDir()
	description := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(description, localDescription(t), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config-file", settings, "run", description, "--url", w.url, "--no-color", "--max-examples", envOr("SKEP_OPENAPI_EXAMPLES", "5")}
	if seed := os.Getenv("SKEP_OPENAPI_SEED"); seed != "" {
		args = append(args, "--seed", seed)
	}
	ctx := t.Context()
	if os.Getenv("SKEP_OPENAPI_EXAMPLES") == "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, judgeTime)
		defer cancel()
	}
	run := exec.CommandContext(ctx, program, args...)
	run.Dir = dir
	run.Env = append(os.Environ(), "SCHEMATHESIS_HOOKS="+filepath.Join(filepath.Dir(settings), "hooks.py"))
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "✅ Coverage") || !strings.Contains(string(out), "✅ Fuzzing") {
		t.Errorf("%v\n%s", err, out)
	}
}

func envOr(name, otherwise string) string {
	if text := os.Getenv(name); text != "" {
		return text
	}
	return otherwise
}

// localDescription is the description whose swarms are on this machine: a swarm that is
// registered is asked what it is.
func localDescription(t *testing.T) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(spec.OpenAPIJSON(), &doc); err != nil {
		t.Fatal(err)
	}
	at := func(from any, path ...string) obj {
		for _, name := range path {
			from = from.(map[string]any)[name]
		}
		return from.(map[string]any)
	}
	at(doc, "components", "schemas", "Registration", "properties")["base_url"] = obj{"enum": []string{"http://127.0.0.1:9", "http://[::1]:9/a"}}
	for _, path := range []string{"/swarms", "/swarms/register"} {
		at(doc, "paths", path, "post", "requestBody", "content", "application/json", "example")["base_url"] = "http://127.0.0.1:9"
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
