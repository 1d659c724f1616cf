//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestACPImportedPipe: an import that is a pipe is refused, and not waited for.
func TestACPImportedPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "fleet.acp")
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe.acp"), 0o600), os.WriteFile(file, []byte(`import "pipe.acp"`), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := newShell(nil, "acp", "check", file)
	if code := Main(t.Context(), s.Env); code == exitOK || !strings.Contains(s.stdout.String()+s.stderr.String(), "fleet.acp:1:8: the file cannot be read: pipe.acp is not a regular file") {
		t.Errorf("exit code %d, %s%s", code, &s.stderr, &s.stdout)
	}
}

// TestACPCompileOntoAPipe: a pipe with the name of a file that is written, or of the lock, is
// refused, and not waited for.
func TestACPCompileOntoAPipe(t *testing.T) {
	t.Parallel()
	for lang, name := range map[string]string{"python": "messages.py", "proto": "fleet.acp.lock"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "fleet.acp")
		if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, name), 0o600), os.WriteFile(file, []byte("type Message = { id: String }"), 0o600)); err != nil {
			t.Fatal(err)
		}
		s := newShell(nil, "acp", "compile", file, "--lang", lang, "-o", dir)
		if code := Main(t.Context(), s.Env); code == exitOK || !strings.Contains(s.stderr.String(), "a regular file: it is a pipe") {
			t.Errorf("%s: exit code %d, %s%s", name, code, &s.stderr, &s.stdout)
		}
	}
}

// TestACPLinkedLock: a lock that is a link stays one, and the file behind it has the numbers.
func TestACPLinkedLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, shared := filepath.Join(dir, "fleet.acp"), filepath.Join(dir, "shared.lock")
	if err := errors.Join(os.Symlink("shared.lock", file+".lock"), os.WriteFile(shared, nil, 0o600), os.WriteFile(file, []byte("type Message = { id: String }"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := newShell(nil, "acp", "compile", file, "--lang", "proto", "-o", dir)
	if code := Main(t.Context(), s.Env); code != exitOK {
		t.Fatalf("exit code %d, %s", code, &s.stderr)
	}
	if text, err := os.ReadFile(shared); err != nil || !strings.Contains(string(text), "Message.id 1 string") {
		t.Errorf("the file behind the link has %q, %v", text, err)
	}
	if info, err := os.Lstat(file + ".lock"); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}

// TestACPFmtLinked: a file that is formatted keeps its mode, and a link to it stays one.
func TestACPFmtLinked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "fleet.acp"), filepath.Join(dir, "link.acp")
	if err := errors.Join(os.Symlink("fleet.acp", link), os.WriteFile(file, []byte("type A=Int"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := newShell(nil, "acp", "fmt", link)
	if code := Main(t.Context(), s.Env); code != exitOK {
		t.Fatalf("exit code %d, %s", code, &s.stderr)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "type A = Int\n" {
		t.Errorf("the file behind the link has %q, %v", text, err)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has another mode: %v, %v", info, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}
