package conform_test

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/conform"
	"skep/host/internal/guests"
	"skep/host/internal/sandbox"
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
		wasm, err := os.ReadFile(filepath.Join(cmp.Or(fresh, dir), name+".wasm"))
		if fresh != "" && errors.Is(err, fs.ErrNotExist) {
			continue // its compiler was missing
		}
		if err != nil {
			t.Fatal(err)
		}
		all[name] = wasm
	}
	return all
}

func engine(t *testing.T) *sandbox.Engine {
	t.Helper()
	e, err := sandbox.New(t.Context(), sandbox.Options{CacheDir: guests.CacheDir(t)})
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

// Four guests in four languages answer byte-equal: each passes every vector.
func TestGuestsConform(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for name, wasm := range modules(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := e.Load(t.Context(), sandbox.Source{Name: name, Wasm: wasm})
			if err != nil {
				t.Fatal(err)
			}
			report, err := conform.Check(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Cases) < 50 {
				t.Errorf("only %d cases", len(report.Cases))
			}
			for _, c := range report.Cases {
				if len(c.Problems) > 0 {
					t.Errorf("%s: %s", c.Name, strings.Join(c.Problems, "\n"))
				}
			}
		})
	}
}

// A module that is no conformance guest fails, and the report says how.
func TestAnotherModuleFails(t *testing.T) {
	t.Parallel()
	m, err := engine(t).Load(t.Context(), sandbox.Source{Name: "script", Wasm: guests.Bytes(t, "plugins/script")})
	if err != nil {
		t.Fatal(err)
	}
	report, err := conform.Check(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if report.Failed < 50 || report.Failed > len(report.Cases) {
		t.Errorf("%d of %d cases failed", report.Failed, len(report.Cases))
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
		problems := strings.Join(conform.Judge(tt.want, tt.got), "\n")
		if !strings.Contains(problems, tt.text) || (tt.text == "") != (problems == "") {
			t.Errorf("%s: %q, want %q", tt.name, problems, tt.text)
		}
	}
}
