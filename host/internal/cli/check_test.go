package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/conform"
)

func TestReportText(t *testing.T) {
	t.Parallel()
	got := reportText(conform.Report{File: "a.wasm", Kind: conform.KindConformance, Passed: 1, Failed: 1, Checks: []conform.Verdict{
		{Name: "start", Result: conform.Pass, Detail: "fine"},
		{Name: "errors", Result: conform.Fail, Detail: "look\x1b", Problems: []string{"one\ntwo", "three"}},
		{Name: "image", Result: conform.Note, Detail: "d", Problems: []string{"n"}},
		{Name: "vectors", Result: conform.NotApplicable, Detail: "no"},
	}}, style{})
	want := `pass  start               fine
FAIL  errors              look\x1b
                          - one
                            two
                          - three
note  image               d
                          - n
n/a   vectors             no
a.wasm: 1 check passed, 1 failed (a conformance guest)
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// A step is named once it has taken long, and not after it has ended.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShell(nil)
		p := &progress{app: newApp(s.Env), patience: slowStep}
		p.begin("load")
		time.Sleep(slowStep / 2)
		p.begin("turns")
		time.Sleep(slowStep + time.Second)
		p.begin("errors")
		p.stop()
		time.Sleep(2 * slowStep)
		synctest.Wait()
		if got := s.stderr.String(); strings.TrimSpace(got) != "turns takes a while …" {
			t.Errorf("%q", got)
		}
	})
}

// idle is an agent whose turn answers "not implemented", made by hand.
func idle() []byte {
	wasm := "\x00asm\x01\x00\x00\x00" +
		"\x01\x09\x02\x60\x00\x00\x60\x01\x7f\x01\x7f" + // types: () -> (), (i32) -> i32
		"\x03\x03\x02\x00\x01" + "\x05\x03\x01\x00\x01"
	exports := "\x03" + "\x0bskep_abi_v1\x00\x00" + "\x09skep_turn\x00\x01" + "\x06memory\x02\x00"
	wasm += "\x07" + string(rune(len(exports))) + exports
	wasm += "\x0a\x09\x02\x02\x00\x0b\x04\x00\x41\x02\x0b"
	custom := "\x0fskep.descriptor" + `{"abi":1,"name":"idle","version":"1"}`
	return []byte(wasm + "\x00" + string(rune(len(custom))) + custom)
}

// A module that fails a check is reported, and decides the exit code.
func TestCheckFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "idle.wasm")
	if err := os.WriteFile(file, idle(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newShell(nil, "agent", "check", file)
	if code := Main(t.Context(), s.Env); code != exitNonconforming {
		t.Errorf("exit code %d, stderr %s", code, &s.stderr)
	}
	for _, want := range []string{"FAIL  turns ", "- a user's request: skep_turn returns 2 (not implemented)", "1 failed\n"} {
		if !strings.Contains(s.stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, &s.stdout)
		}
	}
	s = newShell(nil, "agent", "check", file, "-o", "json")
	var report conform.Report
	if code := Main(t.Context(), s.Env); code != exitNonconforming {
		t.Errorf("exit code %d, stderr %s", code, &s.stderr)
	}
	if err := json.Unmarshal(s.stdout.Bytes(), &report); err != nil || report.Failed != 1 || report.File != file {
		t.Errorf("%v: %s", err, &s.stdout)
	}
}
