package process_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"skep/host/internal/conform"
	"skep/host/internal/guests"
	"skep/host/internal/turn/process"
	"skep/host/internal/turn/wasm"
	"skep/spec/conformance"
)

// TestLevelsAgree plays the vectors of conformance guests at both levels: one
// source, as a module and as a program, to the byte.
func TestLevelsAgree(t *testing.T) {
	program, err := os.ReadFile(guests.Program(t, "testguests/conform"))
	if err != nil {
		t.Fatal(err)
	}
	process, err := open(t, process.Source{Name: "conform", Program: program})
	if err != nil {
		t.Fatal(err)
	}
	// A process has no pointers into a memory of its own, and one in Go panics
	// where a module calls an import that ends the turn.
	agree(t, process, "pointers outside the memory", "abort")
}

// TestPythonAgrees plays them with a program in another language.
func TestPythonAgrees(t *testing.T) {
	process, err := pythonConform(t)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, process, "pointers outside the memory")
}

// agree compares a program with the module in Go. The vectors except are about what
// only modules have.
func agree(t *testing.T, process *process.Program, except ...string) {
	t.Helper()
	engine, err := wasm.New(t.Context(), wasm.Options{CacheDir: guests.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close(t.Context())
	module, err := engine.Load(t.Context(), wasm.Source{Name: "conform", Wasm: guests.Bytes(t, "testguests/conform")})
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
			if slices.Contains(except, v.Name) {
				if slices.Equal(inside.Output, beside.Output) && inside.Message == beside.Message {
					t.Error("the levels agree; take the vector off the list")
				}
				return
			}
			if problems := conform.Compare(v.Want, beside); len(problems) > 0 {
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
