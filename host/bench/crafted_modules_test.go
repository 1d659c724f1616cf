package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/bench/guest/work"
	"skep/host/internal/turn/wasm/binary"
)

func TestCostliestModulesAreAdmitted(t *testing.T) {
	t.Parallel()
	list := costliestModules()
	if len(list) < 20 {
		t.Errorf("only %d suspects are admitted in some size", len(list))
	}
	for _, s := range list {
		if _, err := binary.Admit(s.wasm, binary.DefaultCaps()); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	for _, s := range killShapes() {
		if _, err := binary.Admit(s.wasm, binary.DefaultCaps()); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestRefusedModules(t *testing.T) {
	t.Parallel()
	for _, s := range refusedModules() {
		if _, err := binary.Admit(s.wasm, binary.DefaultCaps()); err == nil {
			t.Errorf("%s is admitted", s.name)
		}
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil || len(doc) != documentSize {
		t.Fatalf("%d bytes, %v", len(doc), err)
	}
	out, err := work.JSON(doc)
	if err != nil || len(out) != documentSize {
		t.Fatalf("worked on: %d bytes, %v", len(out), err)
	}
	var before, after work.Envelope
	if json.Unmarshal(doc, &before) != nil || json.Unmarshal(out, &after) != nil {
		t.Fatal("not JSON")
	}
	if before.State.Sender != after.State.To || before.State.Body != after.State.Body {
		t.Errorf("answered %+v", after)
	}
	if _, err := work.JSON([]byte("{")); err == nil {
		t.Error("half a document passes")
	}
}

// The C guests that lie in the tree were built from the sources in the tree.
func TestCGuestsAreOfTheseSources(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("guest", "c")
	built, err := os.ReadFile(filepath.Join(dir, "BUILT"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, name := range []string{"agent", "extism"} {
		var source []byte
		for _, file := range []string{"work.h", name + ".c"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			source = append(source, text...)
		}
		wasm, err := os.ReadFile(filepath.Join(dir, name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%s %x %x\n", name, sha256.Sum256(wasm), sha256.Sum256(source))
	}
	if string(built) != want.String() {
		t.Errorf("run guest/c/build.sh: BUILT has\n%swant\n%s", built, want.String())
	}
}
