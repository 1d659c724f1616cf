package bundle

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
)

func pack(t *testing.T, text []byte) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

func TestModules(t *testing.T) {
	t.Parallel()
	m := Modules{fstest.MapFS{
		"README.md": {}, "b.wasm.gz": pack(t, []byte("bb")), "a.wasm.gz": pack(t, []byte("a")),
		"bad.wasm.gz": {Data: []byte("no gzip")}, "bomb.wasm.gz": pack(t, make([]byte, maxModule+1)),
	}}
	if names := m.Names(); !slices.Equal(names, []string{"a", "b", "bad", "bomb"}) {
		t.Errorf("names %q", names)
	}
	if raw, err := m.Read("b"); err != nil || string(raw) != "bb" {
		t.Errorf("b: %q, %v", raw, err)
	}
	for _, name := range []string{"c", "../a", ""} {
		if _, err := m.Read(name); err == nil {
			t.Errorf("%q is read", name)
		}
	}
	for _, name := range []string{"bad", "bomb"} {
		if _, err := m.Read(name); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Modules{}).Read("a"); !errors.Is(err, fs.ErrNotExist) || (Modules{}).Names() != nil {
		t.Error("the zero value has modules")
	}
}
