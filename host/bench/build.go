package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"skep/host/internal/guests"
)

// Places of the benchmark's own sources and of what is built from them.
func sourceDir() string { return filepath.Join(guests.Root(), "host", "bench") }
func buildDir() string  { return filepath.Join(guests.Root(), "bin", "bench") }

// build compiles a command of this module into bin/bench: a Wasm reactor, or a
// program of this machine.
func build(pkg, name string, wasm bool) (path string, err error) {
	path = filepath.Join(buildDir(), name)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path}
	env := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if wasm {
		args, env = append(args, "-buildmode=c-shared"), append(env, "GOOS=wasip1", "GOARCH=wasm")
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir, cmd.Env = sourceDir(), env
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return path, nil
}

// ownGuest returns one of the benchmark's guests: agent or extism, in go or c.
func ownGuest(kind, language string) ([]byte, error) {
	if language == "c" {
		return os.ReadFile(filepath.Join(sourceDir(), "guest", "c", kind+".wasm"))
	}
	path, err := build("./guest/"+kind, kind+".wasm", true)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// language is one of those that a guest is there for.
type language struct{ name, conform string }

// languages have a conformance guest each, which does the same in all.
var languages = []language{
	{"std Go", "bin/testguests/conform.wasm"},
	{"Rust", "spec/conformance/guests/rust.wasm"},
	{"C", "spec/conformance/guests/c.wasm"},
	{"AssemblyScript", "spec/conformance/guests/assemblyscript.wasm"},
}

// wasm reads the language's conformance guest.
func (l language) wasm() ([]byte, error) {
	return readGuest(l.conform)
}

// readGuest reads a module that make guests builds.
func readGuest(file string) ([]byte, error) {
	wasm, err := os.ReadFile(filepath.Join(guests.Root(), filepath.FromSlash(file)))
	return wasm, named("run make guests first", err)
}

func cacheDir() string { return filepath.Join(guests.Root(), "bin", "cache") }
