package keyring

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustWrite(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustParse(t *testing.T, raw []byte) content {
	t.Helper()
	c, err := parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// secrets returns the keys of a tenant as they lie in the file.
func secrets(t *testing.T, path, tenant string) (found []string) {
	t.Helper()
	for _, k := range mustParse(t, mustRead(t, path)).keys {
		if k.Tenant == tenant && k.Key != nil {
			found = append(found, base64.StdEncoding.EncodeToString(k.Key))
		}
	}
	return found
}

// wantNowhere looks for texts in all files of a directory.
func wantNowhere(t *testing.T, dir string, texts []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		content := mustRead(t, filepath.Join(dir, e.Name()))
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				t.Errorf("%s holds %s", e.Name(), text)
			}
		}
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	r := mustOpen(t, path, nil)
	mustSeal(t, r, "acme", "text")
	mustSeal(t, r, "other", "text")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	good := string(mustRead(t, path))
	lines := strings.SplitAfter(good, "\n")
	head, acme, other := lines[0], lines[1], lines[2]
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"shared":       {good, 0o640, "chmod 600"},
		"empty":        {"", 0o600, "damaged"},
		"no line":      {"skep", 0o600, "damaged"},
		"no header":    {acme + other, 0o600, "no header"},
		"cut early":    {head + acme[:len(acme)/2], 0o600, "of 1 keys it holds 0"},
		"hole":         {head + strings.Repeat("\x00", len(acme)) + "\n" + other, 0o600, "checksum"},
		"spoilt":       {head + strings.Replace(acme, "acme", "acmf", 1) + other, 0o600, "checksum"},
		"newer":        {line(t, header{Version: 3}), 0o600, "version is 3"},
		"newer object": {`{"version":2}`, 0o600, "version is 2"},
		"cut object":   {`{"version":1,"keys":[`, 0o600, "damaged"},
		"short key":    {`{"version":1,"keys":[{"id":1,"tenant":"a","key":"AAAA"}]}`, 0o600, "has 3 bytes"},
		"no number":    {head + line(t, batch{[]fileKey{{Tenant: "a", Key: make([]byte, 32)}}}), 0o600, "twice"},
		"twice":        {good + other, 0o600, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ringPath(t)
			if err := os.WriteFile(path, []byte(c.content), c.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("Open() = %v, want it to say %q", err, c.want)
			}
			if got := string(mustRead(t, path)); got != c.content {
				t.Errorf("the file is now %q", got)
			}
		})
	}
}

func line(t *testing.T, v any) string {
	t.Helper()
	b, err := appendLine(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A write that a crash cut short, wherever it did, takes nothing with it.
func TestTorn(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	r := mustOpen(t, path, nil)
	kept := mustSeal(t, r, "acme", "kept")
	whole := mustRead(t, path)
	mustSeal(t, r, "other", "text")
	last := mustRead(t, path)[len(whole):]
	for n := 1; n < len(last); n++ {
		path := ringPath(t)
		torn := append(bytes.Clone(whole), last[:n]...)
		mustWrite(t, path, torn)
		look, err := Open(path, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, look, kept, "kept")
		if got, err := Read(path); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("Read() = %q, %v", got, err)
		}
		if !bytes.Equal(mustRead(t, path), torn) {
			t.Fatal("whoever reads has changed the file")
		}
		r := mustOpen(t, path, nil)
		wantText(t, r, kept, "kept")
		aside, file := r.Aside()
		if aside != n || !bytes.Equal(mustRead(t, file), last[:n]) || !bytes.Equal(mustRead(t, path), whole) {
			t.Fatalf("%d bytes are aside of %d", aside, n)
		}
		mustSeal(t, r, "other", "text")
		again := mustOpen(t, path, nil)
		if aside, _ := again.Aside(); aside != 0 || len(again.keys) != 2 {
			t.Fatalf("after a new key %d bytes are aside and %d keys there", aside, len(again.keys))
		}
		// What destroys a key has no use for bytes of others.
		if err := again.Destroy("other"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("what was set aside is still there: %v", err)
		}
	}
}

// A keyring of the first version is taken over, and its bytes are wiped.
func TestFirstVersion(t *testing.T) {
	t.Parallel()
	for name, k := range map[string][]byte{"plain": nil, "wrapped": kek(1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ringPath(t)
			r := mustOpen(t, path, k)
			old := mustSeal(t, r, "acme", "old")
			if err := r.Rotate("acme"); err != nil {
				t.Fatal(err)
			}
			fresh := mustSeal(t, r, "acme", "fresh")
			mustSeal(t, r, "gone", "gone")
			if err := r.Destroy("gone"); err != nil {
				t.Fatal(err)
			}
			c := mustParse(t, mustRead(t, path))
			first, err := json.MarshalIndent(map[string]any{"version": 1, "check": c.Check, "keys": c.keys}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			mustWrite(t, path, first)
			look, err := Open(path, Options{KEK: k, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			wantText(t, look, old, "old")
			if !bytes.Equal(mustRead(t, path), first) {
				t.Error("whoever reads has changed the file")
			}
			for range 2 {
				r = mustOpen(t, path, k)
				wantText(t, r, old, "old")
				wantText(t, r, fresh, "fresh")
				if got := mustParse(t, mustRead(t, path)); got.Version != fileVersion || len(got.keys) != 3 || got.Count != 3 {
					t.Errorf("the file is now %+v", got.header)
				}
			}
			states := map[State]int{}
			for _, e := range r.Entries() {
				states[e.State]++
			}
			if states[Current] != 1 || states[Retired] != 1 || states[Destroyed] != 1 {
				t.Errorf("states are %v", states)
			}
		})
	}
}

// A key that is not on the disk is not used, and the ring goes on as before.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	r := mustOpen(t, path, nil)
	kept := mustSeal(t, r, "acme", "kept")
	block := filepath.Join(path+".part", "sub")
	if err := os.MkdirAll(block, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Sealer("other"); err == nil {
		t.Error("a key was made that is nowhere")
	}
	if err := r.Rotate("acme"); err == nil {
		t.Error("Rotate succeeded")
	}
	if err := r.Destroy("acme"); err == nil {
		t.Error("Destroy succeeded")
	}
	if err := r.Rewrap(kek(1)); err == nil {
		t.Error("Rewrap succeeded")
	}
	wantText(t, r, kept, "kept")
	wantText(t, r, mustSeal(t, r, "acme", "more"), "more")
	if err := os.RemoveAll(path + ".part"); err != nil {
		t.Fatal(err)
	}
	// The file is made anew of what the ring knows.
	other := mustSeal(t, r, "other", "text")
	wantText(t, mustOpen(t, path, nil), kept, "kept")
	wantText(t, mustOpen(t, path, nil), other, "text")
}

// A file that others have changed is not written into, but replaced.
func TestChangedBehind(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	r := mustOpen(t, path, nil)
	kept := mustSeal(t, r, "acme", "kept")
	mustWrite(t, path, append(mustRead(t, path), "what a failed write may leave"...))
	other := mustSeal(t, r, "other", "other")
	again := mustOpen(t, path, nil)
	wantText(t, again, kept, "kept")
	wantText(t, again, other, "other")
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	kept := mustSeal(t, mustOpen(t, path, nil), "acme", "kept")
	before := mustRead(t, path)
	r, err := Open(path, Options{ReadOnly: true, KEK: kek(1)})
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, r, kept, "kept")
	if _, err := r.Sealer("other"); !errors.Is(err, errReadOnly) {
		t.Errorf("Sealer() = %v", err)
	}
	for name, change := range map[string]func() error{
		"destroy": func() error { return r.Destroy("acme") },
		"rewrap":  func() error { return r.Rewrap(kek(1)) },
		"rotate":  func() error { return r.Rotate("acme") },
	} {
		if err := change(); !errors.Is(err, errReadOnly) {
			t.Errorf("%s = %v", name, err)
		}
	}
	if r.Wrapped() || !bytes.Equal(mustRead(t, path), before) {
		t.Error("whoever reads has changed the file")
	}
	if _, err := Read(filepath.Join(filepath.Dir(path), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of no file = %v", err)
	}
}
