package binary

import (
	"bytes"
	"strings"
)

// Language is a guess at the language of a module. It proves nothing: every mark can
// be removed or forged.
type Language struct {
	Name    string // "Go", "Rust", …; empty when there is no mark
	Version string // of the language or its compiler, if the mark has it
	Mark    string // the evidence
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

// Language guesses the module's language from the marks of compilers.
func (m *Module) Language() Language {
	for _, guess := range []func() Language{m.producer, m.runtimeMark, m.importMark, m.layoutMark} {
		if l := guess(); l.Name != "" {
			return l
		}
	}
	return Language{}
}

// producer reads the producers section, a convention of most toolchains: fields of
// names with versions, see
// https://github.com/WebAssembly/tool-conventions/blob/main/ProducersSection.md.
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

// Paths of standard libraries in the texts of their panics.
var (
	rustPaths = [][]byte{[]byte("library/core/src/"), []byte("library/alloc/src/"), []byte("library/std/src/")}
	ascPath   = []byte("~\x00l\x00i\x00b\x00/\x00") // UTF-16
)

// runtimeMark looks for marks of language runtimes in sections and data.
func (m *Module) runtimeMark() (l Language) {
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

// importMark recognises the imports of toolchains for other hosts.
func (m *Module) importMark() Language {
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
