package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skep/host/internal/spelling"
)

// SourceKind is where code comes from: the scheme of a source.
type SourceKind string

// The kinds of source.
const (
	SourceFile    SourceKind = "file"    // a module beside the file
	SourceBundled SourceKind = "bundled" // a module that comes with skep
	SourceExec    SourceKind = "exec"    // a program, run as a subprocess
	SourceOCI     SourceKind = "oci"     // a module in a registry
	SourceHuman   SourceKind = "human"   // an action that a person answers
	SourceBuiltin SourceKind = "builtin" // an action that the host does itself
	SourceMCP     SourceKind = "mcp"     // an action that a tool of an MCP server does
	SourceGateway SourceKind = "gateway" // an action that is done at a partner of a gateway
)

// Coded reports whether there is a module or a program behind a source.
func (k SourceKind) Coded() bool {
	return k != SourceHuman && k != SourceBuiltin && k != SourceMCP && k != SourceGateway
}

// Source names an agent's or action's code.
type Source struct {
	Kind SourceKind
	Ref  string // what follows the scheme, as written
	Path string // where it lies on disk; empty for oci:, human and a module of the program
	// Bundle has a bundled module that is part of the program, else it is nil.
	Bundle Bundle
}

// Bundle has modules that are part of the program.
type Bundle interface {
	Names() []string
	Read(name string) ([]byte, error)
}

// where is the place of a bundled module.
func (s Source) where() string {
	if s.Bundle != nil {
		return "in the program"
	}
	return "from " + filepath.Join(filepath.Base(filepath.Dir(s.Path)), filepath.Base(s.Path)) + " beside the program"
}

var sourceKinds = []string{"file", "bundled", "exec", "oci"}

// source reads the source of an agent or action. The file has to be there: its
// content is the loader's business.
func (d *decoder) source(t *table, sha256 string, trusted bool) Source {
	if d.remote != nil {
		return d.remoteSource(t, sha256)
	}
	v, ok := t.value("source")
	if !ok {
		if !t.has("source") {
			t.missing("source", `; it names the code, as in "file:agents/calc.wasm" or "bundled:script"`)
		}
		return Source{}
	}
	kind, ref, ok := strings.Cut(v.text, ":")
	s := Source{Kind: SourceKind(kind), Ref: ref}
	switch {
	case ok && s.Kind == SourceFile:
		s.Path = d.path(ref)
		d.sourceFile(v, s)
	case ok && s.Kind == SourceBundled:
		d.bundled(v, &s)
	case ok && s.Kind == SourceExec:
		s.Path = d.path(ref)
		d.sourceExec(v, s, trusted)
	case ok && s.Kind == SourceOCI:
		d.sourceOCI(v, s, sha256)
	default:
		d.unknownSource(v)
		return Source{}
	}
	return s
}

func (d *decoder) unknownSource(v value) {
	kinds, names := sourceKinds, ""
	if strings.HasPrefix(v.path, "actions.") {
		kinds, names = append([]string{string(SourceBuiltin), string(SourceGateway), string(SourceMCP)}, kinds...), actionSchemes
	}
	f := d.atValue(v.location, fmt.Sprintf("%s must begin with %s, which %s does not", v.path, d.schemes(names), v.shown))
	kind, ref, ok := strings.Cut(v.text, ":")
	if near := spelling.Nearest(kind, kinds); ok && near != "" {
		f.suggest(v.suggest(near + ":" + ref))
	} else if !ok && strings.HasSuffix(v.text, ".wasm") {
		f.suggest(v.suggest("file:" + v.text))
	}
}

// schemes lists what a source may begin with; more are for actions alone.
func (d *decoder) schemes(more string) string {
	if _, missing := d.unimplemented["oci"]; missing {
		return "file:, bundled:, " + more + "or exec:"
	}
	return "file:, bundled:, " + more + "exec: or oci://"
}

// paramless are the bundled modules that look at no params.
var paramless = []string{"analyst", "calculator", "http", "interswarm", scriptAgent}

// checkParams warns of params that a bundled module does not look at.
func (d *decoder) checkParams(t *table, s Source) {
	if s.Kind == SourceBundled && slices.Contains(paramless, s.Ref) && t.has("params") {
		d.warn(t.child("params"), fmt.Sprintf("%s.params has no effect: bundled:%s takes no params", t.path, s.Ref))
	}
}

// checkProcess warns of limits that bound only what runs in the sandbox.
func (d *decoder) checkProcess(t *table, s Source) {
	if s.Kind != SourceExec {
		return
	}
	limits := t.table("limits")
	for _, s := range new(AgentLimits).Settings() {
		if s.Sandbox && limits.has(s.Key) {
			d.warn(limits.child(s.Key), fmt.Sprintf("%s has no effect: a process is bounded by memory, turn, output, host_calls and host_bytes", limits.child(s.Key).path))
		}
	}
}

func (d *decoder) sourceFile(v value, s Source) {
	if s.Ref == "" {
		d.atValue(v.location, `file: needs a path, as in "file:agents/calc.wasm"`)
		return
	}
	if err := isFile(s.Path); err != nil {
		d.atValue(v.location, fmt.Sprintf("the module %s %s", v.shown, err)).suggestFile(err, v.suggest("file:"), s.Ref)
	}
}

func (d *decoder) sourceExec(v value, s Source, trusted bool) {
	if s.Ref == "" {
		d.atValue(v.location, `exec: needs a path, as in "exec:./agent"`)
	} else if err := isFile(s.Path); err != nil {
		d.atValue(v.location, fmt.Sprintf("the program %s %s", v.shown, err)).suggestFile(err, v.suggest("exec:"), s.Ref)
	}
	if !trusted {
		d.atValue(v.location, "exec: runs outside the sandbox and needs trusted = true")
	}
}

// untrusted refuses trust in what needs none.
func (d *decoder) untrusted(t *table, trusted bool, s Source) {
	if d.remote == nil && trusted && s.Kind != SourceExec && s.Kind != "" {
		d.atKey(t.child("trusted"), "trusted is only for exec: sources; everything else runs in the sandbox")
	}
}

// readable reads what a subprocess may read besides the system's libraries.
func (d *decoder) readable(t *table, s Source) (paths []string) {
	if t.has("readable") && d.remote != nil {
		d.notRemote(t, "readable")
	} else if t.has("readable") && s.Kind != SourceExec && s.Kind != "" {
		d.atKey(t.child("readable"), "readable is only for exec: sources; a module reads no files")
	}
	for _, v := range t.list("readable") {
		path := d.path(v.text)
		if d.remote == nil {
			if _, err := os.Stat(path); err != nil {
				d.atValue(v.location, fmt.Sprintf("%s is not there: nothing is at %s", v.shown, path)).suggestFile(&absentFile{path}, "", v.text)
			}
		}
		paths = append(paths, path)
	}
	return paths
}

func (d *decoder) sourceOCI(v value, s Source, sha256 string) {
	d.needs("oci", v.location)
	name, digest, pinned := strings.Cut(strings.TrimPrefix(s.Ref, "//"), "@sha256:")
	switch {
	case !strings.HasPrefix(s.Ref, "//") || name == "":
		d.atValue(v.location, `oci: needs a reference, as in "oci://registry.example/agent@sha256:…"`)
	case pinned && !sha256Hex.MatchString(digest):
		d.atValue(v.location, "the digest after @sha256: must be 64 hexadecimal digits")
	case pinned && sha256 != "" && !strings.EqualFold(digest, sha256):
		d.atValue(v.location, "the digest differs from that in sha256")
	case !pinned && sha256 == "":
		d.atValue(v.location, "an oci: source needs its digest, as @sha256:… or in sha256")
	}
}

// bundled finds a module that comes with skep: beside the program, or in it.
func (d *decoder) bundled(v value, s *Source) {
	name := s.Ref
	if !bundledName.MatchString(name) {
		d.atValue(v.location, v.shown+" does not name a bundled module")
		return
	}
	path := filepath.Join(d.opt.BundleDir, name+".wasm")
	if d.opt.BundleDir != "" && isFile(path) == nil {
		s.Path = path
		return
	}
	if d.opt.Bundled != nil && slices.Contains(d.opt.Bundled.Names(), name) {
		s.Bundle = d.opt.Bundled
		return
	}
	message := "the module " + v.shown + " does not come with skep"
	if near := spelling.Nearest(name, d.bundledNames()); near != "" {
		d.atValue(v.location, message).suggest("bundled:" + near)
	} else {
		d.atValue(v.location, message+"; run make build")
	}
}

func (d *decoder) bundledNames() (names []string) {
	if d.opt.Bundled != nil {
		names = d.opt.Bundled.Names()
	}
	if d.opt.BundleDir == "" {
		return names
	}
	entries, err := os.ReadDir(d.opt.BundleDir)
	if err != nil {
		return names
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".wasm"); ok {
			names = append(names, name)
		}
	}
	return names
}
