package subprocess_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"skep/host/internal/conform"
	"skep/host/internal/guests"
	"skep/host/internal/sandbox"
	"skep/host/internal/subprocess"
	"skep/spec/conformance"
)

// onlyModules are vectors about what a process does not have: pointers into a
// memory of its own, and an import that ends the turn. A process panics.
var onlyModules = []string{"pointers outside the memory", "abort"}

// TestLevelsAgree plays the vectors of conformance guests at both levels: one
// source, as a module and as a program, to the byte.
func TestLevelsAgree(t *testing.T) {
	program, err := os.ReadFile(guests.Program(t, "testguests/conform"))
	if err != nil {
		t.Fatal(err)
	}
	engine, err := sandbox.New(t.Context(), sandbox.Options{CacheDir: guests.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close(t.Context())
	module, err := engine.Load(t.Context(), sandbox.Source{Name: "conform", Wasm: guests.Bytes(t, "testguests/conform")})
	if err != nil {
		t.Fatal(err)
	}
	process, err := open(t, subprocess.Source{Name: "conform", Program: program})
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := conformance.Turns()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			inside, beside := conform.Run(t.Context(), module, v), conform.Run(t.Context(), process, v)
			if slices.Contains(onlyModules, v.Name) {
				if slices.Equal(inside.Output, beside.Output) && inside.Message == beside.Message {
					t.Error("the levels agree; take the vector off the list")
				}
				return
			}
			if problems := conform.Judge(v.Want, beside); len(problems) > 0 {
				t.Errorf("%q", problems)
			}
			if inside.Exit != beside.Exit || inside.Message != beside.Message || !bytes.Equal(inside.Output, beside.Output) || !slices.Equal(inside.Ops, beside.Ops) {
				t.Errorf("as a module %+v\nas a process %+v", inside, beside)
			}
		})
	}
	if inside, beside := module.Descriptor(), process.Descriptor(); inside.Name != beside.Name || len(inside.Actions) != len(beside.Actions) {
		t.Errorf("described as %+v and %+v", inside, beside)
	}
}
