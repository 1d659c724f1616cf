//go:build unix

package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
)

// What is no module is not read, nor waited for, and said in words.
func TestUnreadableModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, dir, "big", "")
	if err := errors.Join(os.Truncate(at("big"), 100<<30), syscall.Mkfifo(at("pipe"), 0o600),
		os.Symlink("loop", at("loop")), os.Symlink("nowhere", at("dangling"))); err != nil {
		t.Fatal(err)
	}
	for file, tt := range map[string]struct {
		code      int
		step, key string
		want      string
	}{
		at("big"):      {exitRefused, "admit", "limits.module.size", "size is 107374182400, at most 16777216"},
		at("pipe"):     {exitRefused, "read", "", "pipe is not a regular file: it is a pipe"},
		dir:            {exitRefused, "read", "", "is not a regular file: it is a directory"},
		os.DevNull:     {exitRefused, "read", "", "is not a regular file: it is a device"},
		at("loop"):     {exitRefused, "read", "", "leads through more than 40 symbolic links"},
		at("dangling"): {exitNotFound, "read", "", "there is no module "},
		"bundled:none": {exitNotFound, "read", "", "there is no module bundled:none"},
	} {
		for _, command := range []string{"inspect", "check"} {
			s := newShell(nil, "agent", command, file)
			if code := Main(t.Context(), s.Env); code != tt.code || !strings.Contains(s.stderr.String(), tt.want) || s.stdout.Len() > 0 {
				t.Errorf("%s %s: exit code %d, %s%s", command, file, code, &s.stderr, &s.stdout)
			}
			s = newShell(nil, "agent", command, file, "-o", "json")
			code := Main(t.Context(), s.Env)
			var told struct {
				File    string       `json:"file"`
				Refused *refusedView `json:"refused"`
			}
			if err := json.Unmarshal(s.stdout.Bytes(), &told); err != nil || code != tt.code {
				t.Errorf("%s %s: exit code %d, %v in %s", command, file, code, err, &s.stdout)
				continue
			}
			r := told.Refused
			if told.File != file || r == nil || string(r.Step) != tt.step || r.Key != tt.key || !strings.Contains(r.Reason, tt.want) {
				t.Errorf("%s %s: %+v", command, file, r)
			}
		}
	}
}

// Validate reads no more than the caps of the file admit.
func TestValidateReadsWithinTheCap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "swarm.toml", `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:big.wasm"
enable_entrypoint = true
can_complete_tasks = true
[limits.module]
size = "1MiB"
`)
	write(t, dir, "big.wasm", "")
	if err := os.Truncate(filepath.Join(dir, "big.wasm"), 100<<30); err != nil {
		t.Fatal(err)
	}
	s := newShell(nil, "validate", "-c", filepath.Join(dir, "swarm.toml"))
	code := Main(t.Context(), s.Env)
	for _, want := range []string{"swarm.toml:6:10: the module file:big.wasm refused (admit)", "size is 107374182400, at most 1048576", "[limits.module] size"} {
		if code != exitRefused || !strings.Contains(s.stderr.String(), want) {
			t.Errorf("exit code %d, no %q in %s", code, want, &s.stderr)
		}
	}
}

// A module refused by its content is reported in JSON as well.
func TestCheckRefusedJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "text.wasm", "this is no module")
	s := newShell(nil, "agent", "check", filepath.Join(dir, "text.wasm"), "-o", "json")
	code := Main(t.Context(), s.Env)
	var told checkReport
	if err := json.Unmarshal(s.stdout.Bytes(), &told); err != nil || code != exitRefused {
		t.Fatalf("exit code %d, %v in %s", code, err, &s.stdout)
	}
	if told.Refused == nil || told.Refused.Step != turn.StepAdmit || told.Checks == nil {
		t.Errorf("%+v", told)
	}
}

// A fault of the cache refuses no module: exit code 1, and what to do.
func TestCacheFaultRefusesNothing(t *testing.T) {
	t.Parallel()
	err := &wasm.CompileError{Name: "a", Dir: "/cache", Err: syscall.ENOSPC}
	f := explain(err)
	if f.code != exitFailed || !strings.Contains(f.Error(), "no space left on device; the compile cache is /cache") {
		t.Errorf("exit code %d: %v", f.code, f)
	}
	if refusedBy(err) != nil {
		t.Error("the module is told to be refused")
	}
}
