package binary_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/turn/wasm/binary"
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
		m, err := binary.Admit(tt.wasm, binary.DefaultCaps())
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if l := m.Language(); l.Name != tt.want || l.Version != tt.version || (l.Mark == "") != (l.Name == "") {
			t.Errorf("%s: %+v, want %q %q", tt.name, l, tt.want, tt.version)
		}
	}
}

// The guests of this repository, stripped as they are.
func TestLanguageOfGuests(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"Go": guests.Bytes(t, "plugins/script")}
	for language, name := range map[string]string{"Rust": "rust", "AssemblyScript": "assemblyscript", "C or C++ (clang), stripped": "c"} {
		wasm, err := os.ReadFile("../../../../../spec/conformance/guests/" + name + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		files[language] = wasm
	}
	for want, wasm := range files {
		m, err := binary.Admit(wasm, binary.DefaultCaps())
		if err != nil {
			t.Fatal(err)
		}
		if l := m.Language(); l.Name != want || want == "Go" && !strings.HasPrefix(l.Version, "go1.") {
			t.Errorf("%+v, want %q", l, want)
		}
	}
}

// What clang's linker leaves, and what only looks like it.
func TestLanguageByLayout(t *testing.T) {
	t.Parallel()
	const usual = 1024 + 64<<10
	global := func(mutable byte, value uint64) []byte {
		return cat([]byte{0x7f, mutable, 0x41}, sleb(int64(value)), []byte{0x0b})
	}
	table := []byte{1, 0x70, 1, 1, 1}
	data := func(offset uint64) []byte { return cat([]byte{1, 0, 0x41}, sleb(int64(offset)), []byte{0x0b, 1, 'x'}) }
	tests := []struct {
		name          string
		table, global []byte
		data          []byte
		custom        []byte
		want          string
	}{
		{"data below the stack", table, cat([]byte{1}, global(1, 68416)), data(1024), nil, "C or C++ (clang), stripped"},
		{"with its names", table, cat([]byte{1}, global(1, 68416)), data(1024), customSection("name"), "C or C++ (clang)"},
		{"with its symbols", table, cat([]byte{3}, global(1, 68416), global(0, 2748), global(0, 68416)), data(1024), nil, "C or C++ (clang), stripped"},
		{"no data", table, cat([]byte{1}, global(1, usual)), nil, nil, "C or C++ (clang), stripped"},
		{"no data, another stack", table, cat([]byte{1}, global(1, 1<<16)), nil, nil, ""},
		{"the stack first", table, cat([]byte{1}, global(1, 1<<16)), data(1 << 16), nil, ""},
		{"data above the stack", table, cat([]byte{1}, global(1, 1024)), data(1024), nil, ""},
		{"beyond the memory", table, cat([]byte{1}, global(1, 1<<20)), data(1024), nil, ""},
		{"a crooked stack", table, cat([]byte{1}, global(1, 68417)), data(1024), nil, ""},
		{"nothing that changes", table, cat([]byte{1}, global(0, 68416)), data(1024), nil, ""},
		{"two that change", table, cat([]byte{2}, global(1, 68416), global(1, 0)), data(1024), nil, ""},
		{"the symbol first", table, cat([]byte{2}, global(0, 68416), global(1, 68416)), data(1024), nil, ""},
		{"another type", table, cat([]byte{2}, global(1, 68416), []byte{0x7e, 0, 0x42, 0, 0x0b}), data(1024), nil, ""},
		{"a table that grows", []byte{1, 0x70, 0, 1}, cat([]byte{1}, global(1, 68416)), data(1024), nil, ""},
		{"no table", []byte{0}, cat([]byte{1}, global(1, 68416)), data(1024), nil, ""},
	}
	section := func(id byte, body []byte) []byte { return cat([]byte{id}, uleb(uint64(len(body))), body) }
	for _, tt := range tests {
		wasm := cat([]byte("\x00asm\x01\x00\x00\x00"), section(4, tt.table), section(5, []byte{1, 0, 2}), section(6, tt.global))
		if tt.data != nil {
			wasm = cat(wasm, section(11, tt.data))
		}
		m, err := binary.Admit(cat(wasm, tt.custom), binary.DefaultCaps())
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if l := m.Language(); l.Name != tt.want {
			t.Errorf("%s: %+v, want %q", tt.name, l, tt.want)
		}
	}
}

// A module is admitted with caps of exactly its usage, and refused with one less
// of any.
func TestUsage(t *testing.T) {
	t.Parallel()
	wasm, err := os.ReadFile("../../../../../spec/conformance/guests/rust.wasm")
	if err != nil {
		t.Fatal(err)
	}
	m, err := binary.Admit(wasm, binary.InspectionCaps())
	if err != nil {
		t.Fatal(err)
	}
	usage := m.Usage()
	if _, err := binary.Admit(wasm, usage); err != nil {
		t.Errorf("with its own usage: %v", err)
	}
	for i, field := range fields(&usage) {
		if *field == 0 {
			t.Errorf("%s is not counted", usage.Named()[i].Key)
		}
		*field--
		var cap *binary.CapError
		if _, err := binary.Admit(wasm, usage); !errors.As(err, &cap) || cap.Cap != usage.Named()[i].Key {
			t.Errorf("one less of %s: %v", usage.Named()[i].Key, err)
		}
		*field++
	}
}

// fields are the caps in the order of Named.
func fields(c *binary.Caps) []*int64 {
	return []*int64{
		&c.Size, &c.Functions, &c.Body, &c.Locals, &c.Nesting, &c.BrTable, &c.Types, &c.Imports, &c.Exports,
		&c.Globals, &c.DataSegments, &c.ElementSegments, &c.Tables, &c.TableElements,
		&c.CompileWork,
	}
}

func TestOverhead(t *testing.T) {
	t.Parallel()
	wasm := guests.Bytes(t, "plugins/script")
	m, err := binary.Admit(wasm, binary.DefaultCaps())
	if err != nil {
		t.Fatal(err)
	}
	detached := mustDetach(t, wasm)
	if detached.Code <= m.CodeSize() || detached.Code > 3*m.CodeSize() || detached.Charges < len(m.Functions)/2 {
		t.Errorf("%d bytes of code became %d, with %d charges in %d functions", m.CodeSize(), detached.Code, detached.Charges, len(m.Functions))
	}
}
