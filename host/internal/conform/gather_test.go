package conform_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/conform"
	"skep/host/internal/guests"
	"skep/host/internal/turn/wasm"
	"skep/spec/conformance"
)

// gathers builds the SDKs' example of several ops at once, in the languages whose
// compiler is here.
func gathers(t *testing.T) map[string]string {
	t.Helper()
	dir, sdk := t.TempDir(), filepath.Join(guests.Root(), "sdk")
	goBuild := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", dir+"/go.wasm", "./examples/gather")
	goBuild.Dir = filepath.Join(sdk, "go")
	goBuild.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	steps := []*exec.Cmd{goBuild}
	built := map[string]string{"go": dir + "/go.wasm"}
	if _, err := exec.LookPath("wasm-ld"); err == nil || guests.ToolchainsRequired() {
		built["c"] = dir + "/c.wasm"
		steps = append(steps,
			exec.Command("clang", "--target=wasm32", "-Oz", "-mbulk-memory", "-ffreestanding", "-I", sdk+"/c", "-c", "-o", dir+"/c.o", sdk+"/c/examples/gather.c"),
			exec.Command("wasm-ld", "--no-entry", "--strip-all", "-z", "stack-size=65536", "-o", dir+"/c.wasm", dir+"/c.o"))
	}
	for _, s := range steps {
		if out, err := s.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", s.Args, err, out)
		}
	}
	return built
}

// What the SDKs make of submit, wait, read and emit meets the sandbox itself.
func TestGatherInTheSandbox(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles guests")
	}
	page := conformance.Answer{Chunks: [][]byte{[]byte(`{"status":200,`), []byte(`"body":"hel`), []byte(`lo"}`)}}
	late := conformance.Answer{Waits: 2, Body: []byte(`{"status":200,"body":""}`)}
	no := conformance.Answer{Error: &conformance.Refusal{Code: "DENIED", Op: "http.fetch", Reason: "grant", Message: "not granted"}}
	shown := conformance.Answer{Body: []byte(`{"status":"busy"}`)}
	v := conformance.Turn{
		Input:   []byte(`{"v":1,"message":{"msg_type":"request","message":{"sender":{},"body":"late page no"}},"history":{"tail":[]}}`),
		Answers: []conformance.Answer{late, page, no, shown, shown, {Body: []byte(`{"text":"SUCCESS"}`)}},
	}
	e := engine(t)
	for language, file := range gathers(t) {
		wasmBytes, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Load(t.Context(), wasm.Source{Name: language, Wasm: wasmBytes})
		if err != nil {
			t.Fatal(err)
		}
		v.CancelAt = 0
		out := conform.Run(t.Context(), m, v)
		if last := lastMail(t, out); out.Exit != "" || last != "late: no answer\npage: 200, 5 bytes\nno: DENIED: not granted" {
			t.Errorf("%s: %s %s%s, answered %q", language, out.Exit, out.Message, out.Output, last)
		}
		v.CancelAt = 4 // in the middle of the first emit
		if out = conform.Run(t.Context(), m, v); out.Exit != "failed" || !strings.Contains(string(out.Output), `"CANCELLED"`) {
			t.Errorf("%s, called off: %s %s%s", language, out.Exit, out.Message, out.Output)
		}
	}
}

// lastMail is what the last op of a turn answered to the user.
func lastMail(t *testing.T, out conform.Outcome) string {
	t.Helper()
	if len(out.Ops) == 0 {
		return ""
	}
	var ask struct {
		Args struct {
			Finish string `json:"finish_message"`
		} `json:"args"`
	}
	if err := json.Unmarshal([]byte(out.Ops[len(out.Ops)-1].Request), &ask); err != nil {
		t.Fatal(err)
	}
	return ask.Args.Finish
}
