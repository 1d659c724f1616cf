package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/config"
	"skep/host/internal/sandbox"
)

const twoPrograms = `schema = 1
[swarm]
name = "hive"
entrypoint = "a"
[agents.a]
source = "exec:programs.go"
trusted = true
readable = ["testdata"]
comm_targets = ["b"]
enable_entrypoint = true
can_complete_tasks = true
[agents.b]
source = "exec:programs.go"
trusted = true
readable = ["programs.go"]
comm_targets = ["a"]
`

func parsePrograms(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("swarm.toml", []byte(text), ".", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Agents on one program have one way to run it.
func TestProgramFaults(t *testing.T) {
	t.Parallel()
	differ := strings.Replace(twoPrograms, `["testdata"]`, `["host.go"]`, 1)
	want := `swarm.toml:15:12: agent "a" runs the same program; readable must be the same for both`
	if got := programFaults(parsePrograms(t, differ)); len(got) != 1 || !strings.HasPrefix(got.Error(), want) {
		t.Errorf("%v, want %q", got, want)
	}
	action := strings.Replace(twoPrograms, `["testdata"]`, `["programs.go"]`, 1) + "[actions.c]\nsource = \"exec:programs.go\"\ntrusted = true\n"
	if got := programFaults(parsePrograms(t, action)); len(got) != 1 || !strings.HasPrefix(got.Error(), `swarm.toml:17:10: agent "a" runs the same program`) {
		t.Errorf("an action: %v", got)
	}
	same := strings.Replace(twoPrograms, `["testdata"]`, `["programs.go"]`, 1)
	if got := programFaults(parsePrograms(t, same)); len(got) > 0 {
		t.Errorf("the same: %v", got)
	}
}

// A look at a program compares its digest and starts nothing.
func TestCheckProgram(t *testing.T) {
	t.Parallel()
	a := parsePrograms(t, strings.Replace(twoPrograms, `["testdata"]`, `["programs.go"]`, 1)).Agents[0]
	if _, err := CheckProgram(a); err == nil || !strings.Contains(err.Error(), "program exec:programs.go refused (admit): it is neither a program for Linux nor a script") {
		t.Errorf("no program: %v", err)
	}
	a.Source.Path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(a.Source.Path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	digest, err := CheckProgram(a)
	if err != nil {
		t.Fatal(err)
	}
	a.SHA256 = digest
	if _, err := CheckProgram(a); err != nil {
		t.Error(err)
	}
	a.SHA256 = strings.Repeat("0", 64)
	var refused *sandbox.LoadError
	if _, err := CheckProgram(a); !errors.As(err, &refused) || refused.Key != "sha256" {
		t.Errorf("another digest: %v", err)
	}
}
