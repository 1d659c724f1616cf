package atomicfile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, want %q", filepath.Base(path), got, err, want)
	}
}

func wantAlone(t *testing.T, path string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(list) != 1 {
		t.Errorf("beside the file is something: %v, %v", list, err)
	}
}

// witness holds a file open, whatever becomes of its name.
func witness(t *testing.T, path string) func() []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return func() []byte {
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, info.Size())
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		return b
	}
}

func TestReplaceWiped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := ReplaceWiped(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	old := witness(t, path)
	if err := ReplaceWiped(path, []byte("two")); err != nil {
		t.Fatal(err)
	}
	if got := old(); !bytes.Equal(got, make([]byte, 3)) {
		t.Errorf("what was there before is %q", got)
	}
	wantContent(t, path, "two")
	wantAlone(t, path)
	if err := ReplaceWiped(filepath.Join(path, "below a file"), nil); err == nil {
		t.Error("a file below a file was written")
	}
}

// Whatever moment a crash chose, the file stays whole and the rest is wiped.
func TestWipeLeft(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, path string) (gone string){
		"nothing": func(*testing.T, string) string { return "" },
		"part": func(t *testing.T, path string) string {
			write(t, path+PartSuffix, "half of it")
			return path + PartSuffix
		},
		"second name": func(t *testing.T, path string) string {
			if err := os.Link(path, path+oldSuffix); err != nil {
				t.Fatal(err)
			}
			return ""
		},
		"replaced": func(t *testing.T, path string) string {
			write(t, path+oldSuffix, "before")
			return path + oldSuffix
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "f")
			write(t, path, "kept")
			var held func() []byte
			if gone := leave(t, path); gone != "" {
				held = witness(t, gone)
			}
			if err := WipeLeft(path); err != nil {
				t.Fatal(err)
			}
			wantContent(t, path, "kept")
			wantAlone(t, path)
			if held != nil && !bytes.Equal(held(), make([]byte, len(held()))) {
				t.Errorf("what was left is %q", held())
			}
		})
	}
}

// What is in the way is left alone, and so is the file.
func TestReplaceWipedBlocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "kept")
	if err := os.MkdirAll(filepath.Join(path+PartSuffix, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceWiped(path, []byte("new")); err == nil {
		t.Error("ReplaceWiped succeeded")
	}
	wantContent(t, path, "kept")
	if err := Wipe(path + PartSuffix); err == nil {
		t.Error("a directory was wiped")
	}
}
