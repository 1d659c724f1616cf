package wasmbin_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/wasmbin"
)

// customSection makes a custom section.
func customSection(name string, body ...byte) []byte {
	content := cat(text(name), body)
	return cat([]byte{0}, uleb(uint64(len(content))), content)
}

func text(s string) []byte { return cat(uleb(uint64(len(s))), []byte(s)) }

// producers makes a producers section of one field.
func producers(field string, entries ...string) []byte {
	body := cat([]byte{1}, text(field), uleb(uint64(len(entries)/2)))
	for _, e := range entries {
		body = cat(body, text(e))
	}
	return customSection("producers", body...)
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	importing := func(module, field string) []byte {
		b := &builder{}
		b.importFn(module, field, b.typ(nil, nil))
		return b.bytes()
	}
	empty := (&builder{}).bytes()
	tests := []struct {
		name          string
		wasm          []byte
		want, version string
	}{
		{"no mark", empty, "", ""},
		{"a language", cat(empty, producers("language", "Swift", "6.1")), "Swift", "6.1"},
		{"a compiler", cat(empty, producers("processed-by", "rustc", "1.63.0")), "Rust", "rustc 1.63.0"},
		{"clang", cat(empty, producers("processed-by", "Debian clang", "14", "clang", "14")), "C or C++", "clang 14"},
		{"an unknown compiler", cat(empty, producers("processed-by", "brewer", "1")), "", ""},
		{"cut short", cat(empty, customSection("producers", 5, 1)), "", ""},
		{"Go's section", cat(empty, customSection("go:buildid")), "Go", ""},
		{"AssemblyScript's import", importing("env", "abort"), "AssemblyScript", ""},
		{"Go for a browser", importing("gojs", "runtime.wasmExit"), "Go", ""},
		{"Rust for a browser", importing("wbg", "x"), "Rust", ""},
		{"Emscripten", importing("env", "emscripten_resize_heap"), "C or C++", ""},
	}
	for _, tt := range tests {
		m, err := wasmbin.Admit(tt.wasm, wasmbin.DefaultCaps())
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if l := m.Language(); l.Name != tt.want || l.Version != tt.version || (l.Mark == "") != (l.Name == "") {
			t.Errorf("%s: %+v, want %q %q", tt.name, l, tt.want, tt.version)
		}
	}
}

// The guests of this repository, stripped as they are, but for C's.
func TestLanguageOfGuests(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"Go": guests.Bytes(t, "plugins/script")}
	for language, name := range map[string]string{"Rust": "rust", "AssemblyScript": "assemblyscript", "": "c"} {
		wasm, err := os.ReadFile("../../../spec/conformance/guests/" + name + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		files[language] = wasm
	}
	for want, wasm := range files {
		m, err := wasmbin.Admit(wasm, wasmbin.DefaultCaps())
		if err != nil {
			t.Fatal(err)
		}
		if l := m.Language(); l.Name != want || want == "Go" && !strings.HasPrefix(l.Version, "go1.") {
			t.Errorf("%+v, want %q", l, want)
		}
	}
}

// A module is admitted with caps of exactly its usage, and refused with one less
// of any.
func TestUsage(t *testing.T) {
	t.Parallel()
	wasm, err := os.ReadFile("../../../spec/conformance/guests/rust.wasm")
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasmbin.Admit(wasm, wasmbin.GenerousCaps())
	if err != nil {
		t.Fatal(err)
	}
	usage := m.Usage()
	if _, err := wasmbin.Admit(wasm, usage); err != nil {
		t.Errorf("with its own usage: %v", err)
	}
	for i, field := range fields(&usage) {
		if *field == 0 {
			t.Errorf("%s is not counted", usage.Named()[i].Key)
		}
		*field--
		var cap *wasmbin.CapError
		if _, err := wasmbin.Admit(wasm, usage); !errors.As(err, &cap) || cap.Cap != usage.Named()[i].Key {
			t.Errorf("one less of %s: %v", usage.Named()[i].Key, err)
		}
		*field++
	}
}

// fields are the caps in the order of Named.
func fields(c *wasmbin.Caps) []*int64 {
	return []*int64{
		&c.Size, &c.Functions, &c.Body, &c.Locals, &c.Nesting, &c.BrTable, &c.Types, &c.Imports, &c.Exports,
		&c.Globals, &c.DataSegments, &c.ElementSegments, &c.Tables, &c.TableElements,
	}
}

func TestOverhead(t *testing.T) {
	t.Parallel()
	wasm := guests.Bytes(t, "plugins/script")
	m, err := wasmbin.Admit(wasm, wasmbin.DefaultCaps())
	if err != nil {
		t.Fatal(err)
	}
	bare := mustBare(t, wasm)
	if bare.Code <= m.CodeSize() || bare.Code > 3*m.CodeSize() || bare.Charges < len(m.Functions)/2 {
		t.Errorf("%d bytes of code became %d, with %d charges in %d functions", m.CodeSize(), bare.Code, bare.Charges, len(m.Functions))
	}
}
