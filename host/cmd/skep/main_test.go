package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// TestMain puts the program under test into PATH.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "skep-scripts-")
	if err == nil {
		err = hosttest.BuildProgram(dir)
	}
	if err == nil {
		err = os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func TestScripts(t *testing.T) {
	guests.Bytes(t, "plugins/script") // builds it when it is stale
	fickle := guests.Program(t, "testguests/fickle")
	cache := guests.CacheDir(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           builds,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FICKLE", fickle)
			return setup(t, env, cache)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "waitfor": waitFor, "eventually": eventually, "setenvfile": setenvFile, "describe": describe, "certify": certify,
			"asjson": asJSON,
		},
	})
}

// setup gives a script two free ports, the modules and the compile cache that all
// tests share, and a directory for temporary files that it can look into.
func setup(t *testing.T, env *testscript.Env, cache string) error {
	t.Helper()
	home := filepath.Join(env.WorkDir, ".home")
	if err := errors.Join(os.MkdirAll(filepath.Join(home, "tmp"), 0o700), os.Symlink(cache, filepath.Join(home, "skep"))); err != nil {
		return err
	}
	env.Setenv("PLUGINS", filepath.Join(guests.Root(), "bin", "plugins"))
	env.Setenv("HOSTILE", filepath.Join(guests.Root(), "host", "internal", "turn", "wasm", "testdata", "hostile"))
	env.Setenv("GUESTS", filepath.Join(guests.Root(), "spec", "conformance", "guests"))
	env.Setenv("XDG_CACHE_HOME", home)
	env.Setenv("TMPDIR", filepath.Join(home, "tmp"))
	if err := passTools(env); err != nil {
		return err
	}
	for _, name := range []string{"LISTEN", "ADMIN"} {
		env.Setenv(name, hosttest.FreeAddress(t, "127.0.0.1"))
	}
	return nil
}

// code N PROGRAM ARGS… runs a program that must exit with N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// patience bounds how long a script waits for anything.
const patience = 2 * time.Minute

// waitFor ADDRESS waits until something listens there.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfor ADDRESS")
	}
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", args[0], time.Second)
		if err == nil {
			ts.Check(conn.Close())
			return
		}
		last = err
	}
	ts.Fatalf("nothing listens on %s after %v: %v", args[0], patience, last)
}

// eventually TEXT PROGRAM ARGS… runs a program until its output has a text.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually TEXT PROGRAM ARGS…")
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := ts.Exec(args[1], args[2:]...); err == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
	}
	ts.Fatalf("no %q after %v\nstdout: %s\nstderr: %s", args[0], patience, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
}

// setenvfile NAME FILE sets a variable to what a file holds.
func setenvFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: setenvfile NAME FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// describe MODULE TEXT NEW makes a copy of a module whose descriptor is a text.
func describe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: describe MODULE TEXT NEW")
	}
	wasm, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	section := "\x0fskep.descriptor" + strings.TrimSpace(ts.ReadFile(args[1]))
	wasm = append(binary.AppendUvarint(append(wasm, 0), uint64(len(section))), section...)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), wasm, 0o600))
}
