package definition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/turn"
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
	differ := strings.Replace(twoPrograms, `["testdata"]`, `["library.go"]`, 1)
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
	if _, err := CheckProgram("agent", a); err == nil || !strings.Contains(err.Error(), "program exec:programs.go refused (admit): it is neither a program for Linux nor a script") {
		t.Errorf("no program: %v", err)
	}
	a.Source.Path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(a.Source.Path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	digest, err := CheckProgram("agent", a)
	if err != nil {
		t.Fatal(err)
	}
	a.SHA256 = digest
	if _, err := CheckProgram("agent", a); err != nil {
		t.Error(err)
	}
	a.SHA256 = strings.Repeat("0", 64)
	var refused *turn.LoadError
	_, err = CheckProgram("agent", a)
	if want := "write the new one into [agents." + a.Name + "] sha256"; !errors.As(err, &refused) || refused.Key != "sha256" || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("another digest: %v", err)
	}
}

// A script whose interpreter could not run is refused without a start, and the message
// names the directories to add, of links as well.
func TestCheckInterpreter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	install, env := filepath.Join(dir, "python"), filepath.Join(dir, "venv")
	for _, bin := range []string{filepath.Join(install, "bin"), filepath.Join(env, "bin")} {
		if err := os.MkdirAll(bin, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	real, link := filepath.Join(install, "bin", "python3"), filepath.Join(env, "bin", "python")
	if err := errors.Join(os.WriteFile(real, []byte("\x7fELF"), 0o700), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	a := parsePrograms(t, strings.Replace(twoPrograms, `["testdata"]`, `["programs.go"]`, 1)).Agents[0]
	a.Source.Path = filepath.Join(dir, "program")
	for name, c := range map[string]struct {
		first    string
		readable []string
		want     string
	}{
		"system":         {"#!/bin/sh", nil, ""},
		"by its PATH":    {"#!/usr/bin/env python3", nil, ""},
		"not there":      {"#!/nowhere/python3", nil, "its interpreter /nowhere/python3 is not there; its first line names it"},
		"elsewhere":      {"#!" + real + " -I", nil, fmt.Sprintf("it may not run its interpreter %s; add %q to readable; the key to change is [agents.%s] readable", real, install, a.Name)},
		"readable":       {"#!" + real, []string{install}, ""},
		"a link":         {"#!" + link, nil, fmt.Sprintf("it may not run its interpreter %s; add %q and %q to readable; the key", link, env, install)},
		"half of a link": {"#!" + link, []string{env}, fmt.Sprintf("add %q to readable; the key", install)},
		"a whole link":   {"#!" + link, []string{env, install}, ""},
	} {
		if err := os.WriteFile(a.Source.Path, []byte(c.first+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		a.Readable = c.readable
		_, err := CheckProgram("agent", a)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
