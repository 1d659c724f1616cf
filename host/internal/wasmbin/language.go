package wasmbin

import (
	"bytes"
	"strings"
)

// Language is a guess at what a module was written in. Nothing holds its author
// to it: every mark can be removed or forged.
type Language struct {
	Name    string // "Go", "Rust", …; empty when nothing tells
	Version string // of the language or its compiler, if told
	Mark    string // what it was told from
}

// tools are compilers that name themselves in the producers section, and the
// language each stands for.
var tools = []struct{ prefix, language string }{
	{"tinygo", "Go (TinyGo)"},
	{"rustc", "Rust"},
	{"go cmd/compile", "Go"},
	{"zig", "Zig"},
	{"clang", "C or C++"},
}

// Language guesses the module's language from what compilers leave behind.
func (m *Module) Language() Language {
	for _, guess := range []func() Language{m.producer, m.marked, m.imports, m.layout} {
		if l := guess(); l.Name != "" {
			return l
		}
	}
	return Language{}
}

// producer reads the producers section, a convention of most toolchains: fields
// of names with versions.
func (m *Module) producer() (l Language) {
	const mark = "its producers section"
	for _, section := range m.Custom("producers") {
		eachProducer(section, func(field, name, version string) {
			switch {
			case field == "language" && l.Mark != mark+" names the language":
				l = Language{name, version, mark + " names the language"}
			case field == "processed-by" && l.Name == "":
				if language := toolLanguage(name); language != "" {
					l = Language{language, strings.TrimSpace(name + " " + version), mark + " names the compiler"}
				}
			}
		})
	}
	return l
}

// eachProducer visits the entries of a producers section until one is malformed.
func eachProducer(section []byte, visit func(field, name, version string)) {
	r := reader{b: section, end: len(section)}
	for range r.count("fields", 2) {
		field := r.name()
		if r.err != nil {
			return
		}
		for range r.count("values", 2) {
			name, version := r.name(), r.name()
			if r.err != nil {
				return
			}
			visit(field, name, version)
		}
	}
}

func toolLanguage(name string) string {
	for _, t := range tools {
		if strings.HasPrefix(strings.ToLower(name), t.prefix) {
			return t.language
		}
	}
	return ""
}

// goBuildID is the section that Go's linker always writes.
const goBuildID = "go:buildid"

// Paths of standard libraries, as their messages hold them.
var (
	rustPaths = [][]byte{[]byte("library/core/src/"), []byte("library/alloc/src/"), []byte("library/std/src/")}
	ascPath   = []byte("~\x00l\x00i\x00b\x00/\x00") // UTF-16
)

// marked looks for what runtimes leave in their sections and data.
func (m *Module) marked() (l Language) {
	if len(m.Custom(goBuildID)) > 0 {
		return Language{Name: "Go", Mark: "its section " + goBuildID}
	}
	m.eachData(func(s dataSegment) bool {
		if bytes.Contains(s.bytes, ascPath) {
			l = Language{Name: "AssemblyScript", Mark: "paths of its library in the data"}
		}
		for _, path := range rustPaths {
			if bytes.Contains(s.bytes, path) {
				l = Language{Name: "Rust", Mark: "paths of its library in the data"}
			}
		}
		return l.Name == ""
	})
	return l
}

// imports knows the imports of toolchains that expect another host.
func (m *Module) imports() Language {
	for _, im := range m.Imports {
		name := im.Module + "." + im.Name
		language := ""
		switch {
		case name == "env.abort":
			language = "AssemblyScript"
		case im.Module == "gojs" || im.Module == "go":
			language = "Go"
		case im.Module == "wbg" || strings.HasPrefix(im.Module, "__wbindgen"):
			language = "Rust"
		case strings.HasPrefix(im.Name, "emscripten_"):
			language = "C or C++"
		}
		if language != "" {
			return Language{Name: language, Mark: "its import " + name}
		}
	}
	return Language{}
}
