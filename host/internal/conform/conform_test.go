package conform_test

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/conform"
	"skep/host/internal/guests"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
	"skep/spec/conformance"
)

// prebuilt are the guests whose compilers a user need not have.
var prebuilt = []string{"assemblyscript", "c", "rust"}

// modules are the conformance guests: ours in Go is built here, the others lie
// in the tree, or where sdk/rebuild.sh has made them afresh.
func modules(t *testing.T) map[string][]byte {
	t.Helper()
	dir := filepath.Join(guests.Root(), "spec", "conformance", "guests")
	fresh := os.Getenv("SKEP_CONFORM_GUESTS")
	all := map[string][]byte{"go": guests.Bytes(t, "testguests/conform")}
	for _, name := range prebuilt {
		wasmBytes, err := os.ReadFile(filepath.Join(cmp.Or(fresh, dir), name+".wasm"))
		if fresh != "" && errors.Is(err, fs.ErrNotExist) {
			continue // its compiler was missing
		}
		if err != nil {
			t.Fatal(err)
		}
		all[name] = wasmBytes
	}
	return all
}

func engine(t *testing.T) *wasm.Engine {
	t.Helper()
	e, err := wasm.New(t.Context(), wasm.Options{CacheDir: guests.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// tried is the report on a module.
func tried(t *testing.T, module []byte, o wasm.Options) conform.Report {
	t.Helper()
	r, err := conform.Check(t.Context(), wasm.Source{Name: t.Name(), Wasm: module}, conform.Options{Engine: o})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Checks) != len(conform.List()) {
		t.Errorf("%d checks of %d", len(r.Checks), len(conform.List()))
	}
	return r
}

// passes wants a report without a failure.
func passes(t *testing.T, r conform.Report) {
	t.Helper()
	for _, c := range r.Checks {
		if c.Result == conform.Fail {
			t.Errorf("%s: %s: %s", c.Name, c.Detail, strings.Join(c.Problems, "\n"))
		} else {
			t.Logf("%s: %s: %s %q", c.Result, c.Name, c.Detail, c.Problems)
		}
	}
	if r.Failed != 0 || r.Passed < 10 {
		t.Errorf("%d passed, %d failed", r.Passed, r.Failed)
	}
}

// Four guests in four languages answer byte-equal: each passes every vector, and
// everything else.
func TestGuestsConform(t *testing.T) {
	t.Parallel()
	for name, module := range modules(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tried(t, module, wasm.Options{CacheDir: guests.CacheDir(t)})
			passes(t, r)
			if r.Kind != conform.KindConformance {
				t.Errorf("taken for an %s", r.Kind)
			}
			for _, c := range r.Checks {
				if c.Name == "vectors" && c.Result != conform.Pass {
					t.Errorf("the vectors: %s", c.Result)
				}
			}
		})
	}
}

// Every agent of this repository passes.
func TestOurAgentsPass(t *testing.T) {
	t.Parallel()
	all, err := guests.All(guests.Root())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, g := range all {
		if g.Program || strings.HasPrefix(g.Name, "testguests/") {
			continue // no module, or made to misbehave
		}
		seen++
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			r := tried(t, guests.Bytes(t, g.Name), wasm.Options{CacheDir: guests.CacheDir(t)})
			passes(t, r)
			if r.Kind != conform.KindAgent {
				t.Errorf("taken for a %s guest", r.Kind)
			}
		})
	}
	if seen < 5 {
		t.Errorf("only %d agents", seen)
	}
}

// A module that is refused is no failed check.
func TestRefusedModule(t *testing.T) {
	t.Parallel()
	var refusal *turn.LoadError
	_, err := conform.Check(t.Context(), wasm.Source{Name: "x", Wasm: []byte("x")}, conform.Options{})
	if !errors.As(err, &refusal) || refusal.Step != turn.StepAdmit {
		t.Errorf("%v", err)
	}
	caps := binary.DefaultCaps()
	caps.Functions = 1
	_, err = conform.Check(t.Context(), wasm.Source{Name: "x", Wasm: guest().agent(ok)}, conform.Options{Engine: wasm.Options{Caps: caps}})
	if !errors.As(err, &refusal) || refusal.Key != "limits.module.functions" {
		t.Errorf("%v", err)
	}
}

// One check can be chosen, and the end of the context is no verdict.
func TestOptions(t *testing.T) {
	t.Parallel()
	src := wasm.Source{Name: "x", Wasm: guest().agent(ok)}
	var steps []string
	o := conform.Options{Only: "turns", Progress: func(name string) { steps = append(steps, name) }}
	r, err := conform.Check(t.Context(), src, o)
	if err != nil || len(r.Checks) != 1 || r.Checks[0].Name != "turns" || r.Passed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if !slices.Equal(steps, []string{"load", "turns"}) {
		t.Errorf("progress %q", steps)
	}
	if _, err := conform.Check(t.Context(), src, conform.Options{Only: "luck"}); !errors.Is(err, conform.ErrNoCheck) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	_, err = conform.Check(ctx, src, conform.Options{Progress: func(name string) {
		if name == "turns" {
			cancel(why)
		}
	}})
	if !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// A fault of the host would be found: two runs that differ in anything.
func TestRepeats(t *testing.T) {
	t.Parallel()
	one := conform.Outcome{Output: []byte("{}"), Ops: []conformance.Op{{Number: 3}}, Fuel: 7}
	if found := conform.Repeats(one, one); found != nil {
		t.Errorf("%q", found)
	}
	for name, change := range map[string]func(o *conform.Outcome){
		"did not repeat":  func(o *conform.Outcome) { o.Output = nil },
		"then \"trap\"":   func(o *conform.Outcome) { o.Exit = "trap" },
		"x {}":            func(o *conform.Outcome) { o.Message = "x" },
		"then nothing":    func(o *conform.Outcome) { o.Ops = nil },
		"then 4 ":         func(o *conform.Outcome) { o.Ops = []conformance.Op{{Number: 4}} },
		"7 units of fuel": func(o *conform.Outcome) { o.Fuel = 8 },
	} {
		other := one
		change(&other)
		if found := strings.Join(conform.Repeats(one, other), "\n"); !strings.Contains(found, name) {
			t.Errorf("%s: %q", name, found)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	ops := []conformance.Op{{Number: 3}}
	tests := []struct {
		name string
		want conformance.Want
		got  conform.Outcome
		text string // empty: no problem
	}{
		{"equal", conformance.Want{Output: []byte("{}"), Ops: ops}, conform.Outcome{Output: []byte("{}"), Ops: ops}, ""},
		{"ops are open", conformance.Want{}, conform.Outcome{Ops: ops}, ""},
		{"another end", conformance.Want{Exit: "abort"}, conform.Outcome{Exit: "trap", Message: "x"}, `ended as "trap" (x), not as "abort"`},
		{"another message", conformance.Want{Exit: "abort", Message: "a"}, conform.Outcome{Exit: "abort", Message: "b"}, "message"},
		{"another output", conformance.Want{Output: []byte("a")}, conform.Outcome{Output: []byte("b")}, "output\n got b\nwant a"},
		{"another long output", conformance.Want{SHA256: "00"}, conform.Outcome{}, "sha256"},
		{"an op too many", conformance.Want{Ops: []conformance.Op{}}, conform.Outcome{Ops: ops}, "op 1 of the turn\n got 3 \nwant nothing"},
		{"an op too few", conformance.Want{Ops: ops}, conform.Outcome{}, "op 1 of the turn"},
	}
	for _, tt := range tests {
		problems := strings.Join(conform.Compare(tt.want, tt.got), "\n")
		if !strings.Contains(problems, tt.text) || (tt.text == "") != (problems == "") {
			t.Errorf("%s: %q, want %q", tt.name, problems, tt.text)
		}
	}
}
