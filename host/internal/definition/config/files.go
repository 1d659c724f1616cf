package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files is what an action of builtin:fs does, and where. It is empty for all other
// actions, and for those that came over the network: their files are the operator's
// to give.
type Files struct {
	Does     string // one of [FileActions]
	Root     string // directory on disk, without symbolic links
	Shared   bool   // all tenants have Root itself; else each has a directory in it
	Write    bool   // files may be changed
	MaxFile  Size
	MaxTotal Size // of all that a tenant has there; with Write
}

// FileActions are the actions of builtin:fs.
func FileActions() []string {
	return []string{"read_file", "read_directory", "write_file", "create_directory", "delete_file"}
}

// Writes reports whether an action changes files.
func (f Files) Writes() bool { return slices.Index(FileActions(), f.Does) >= 2 }

// LoadFiles reads which roots the file at path has, and nothing else: other settings
// may be at fault, or refer to what only the host has. Its errors are as [Load]
// has them.
func LoadFiles(path string, opt Options) (all []Files, err error) {
	d, file, err := open(path, opt)
	if err != nil {
		return nil, err
	}
	for _, a := range d.actions(file) {
		if a.Files.Root != "" {
			all = append(all, a.Files)
		}
	}
	return all, nil
}

// Settings are the keys that an action of builtin:fs has and others have not. Another
// root grants more: what is in it was not looked at.
func (f *Files) Settings() []Setting {
	return []Setting{
		readElsewhere(&f.Root, "root", "path", "The directory that paths of its calls begin at; for `builtin:fs`, as the next four.").by(Fixed).ofOperator(),
		boolean(&f.Shared, "shared", false, "All tenants have `root` itself; else each has a directory in it.").by(Grant).ofOperator(),
		boolean(&f.Write, "write", false, "Files may be changed.").by(Grant).ofOperator(),
		size(&f.MaxFile, "max_file", MiB, 1, 8*MiB, "One file that is read or written.").by(Grant).ofOperator(),
		size(&f.MaxTotal, "max_total", 64*MiB, 1, TiB, "All that a tenant has in `root`; with `write`.").by(Grant).ofOperator(),
	}
}

// InEffect are the settings of a file action that bound what it does.
func (f *Files) InEffect() []Setting {
	if f.Root == "" {
		return nil
	}
	return slices.DeleteFunc(f.Settings(), func(s Setting) bool { return s.Key == "max_total" && !f.Write })
}

const builtinFS = "fs"

// builtin reports whether the host does an action itself.
func (d *decoder) builtin(t *table) bool {
	v, _, _ := t.lookUp("source")
	text, _ := v.(string)
	return strings.HasPrefix(text, string(SourceBuiltin)+":")
}

// builtinAction reads what an action has that the host does.
func (d *decoder) builtinAction(a *Action, t *table) {
	a.Limits = AgentLimits{}
	for _, key := range []string{"sha256", "params", "actions", "limits"} {
		if t.has(key) {
			d.atKey(t.child(key), fmt.Sprintf("%s.%s is for actions with a module; the host does this one itself", t.path, key))
		}
	}
	if a.Allow.any() || a.Allow.HTTPPrivate {
		d.atKey(t.child("allow"), fmt.Sprintf("%s.allow has retry_in_doubt alone for an action that the host does itself", t.path))
	}
	if d.remote != nil {
		if a.Source = d.remoteSource(t, ""); d.remote.literal {
			a.Source = Source{Kind: SourceBuiltin, Ref: strings.TrimPrefix(t.text("source", ""), string(SourceBuiltin)+":")}
		}
		for _, s := range a.Files.Settings() {
			d.notRemote(t, s.Key)
		}
		return
	}
	for _, s := range a.Files.Settings() {
		t.has(s.Key) // they are no unknown keys, whatever else is wrong
	}
	v, ok := t.value("source")
	if !ok {
		return
	}
	a.Source = Source{Kind: SourceBuiltin, Ref: strings.TrimPrefix(v.text, string(SourceBuiltin)+":")}
	pack, does, named := strings.Cut(a.Source.Ref, "/")
	if pack != builtinFS {
		d.atValue(v.location, fmt.Sprintf("builtin: has %q alone, not %q", builtinFS, pack)).suggest(v.suggest(string(SourceBuiltin) + ":" + builtinFS))
		return
	}
	if does == "" && !named {
		does = a.Name
	}
	if !slices.Contains(FileActions(), does) {
		f := d.atValue(v.location, fmt.Sprintf("builtin:fs has no action %q; it has %s. For an action of another name write it behind the source, as in \"builtin:fs/read_file\"", does, listOf(FileActions())))
		f.near(does, FileActions())
		return
	}
	a.Files = d.files(t, does)
	if a.Effect == EffectRead && a.Files.Writes() {
		d.atKey(t.child("effect"), fmt.Sprintf("%s.effect must not be %q: %s changes files", t.path, EffectRead, does))
	}
}

func (d *decoder) files(t *table, does string) Files {
	f := Files{Does: does}
	t.read(f.Settings())
	switch {
	case f.Writes() && !f.Write:
		d.atKey(t.location, fmt.Sprintf("%s changes files; add write = true to [%s]", does, t.path))
	case !f.Writes() && f.Write:
		d.atKey(t.child("write"), fmt.Sprintf("%s.write has no effect: %s only reads", t.path, does))
	case !f.Writes():
		if t.has("max_total") {
			d.atKey(t.child("max_total"), fmt.Sprintf("%s.max_total is for actions that change files", t.path))
		}
		f.MaxTotal = 0
	}
	if v, ok := t.value("root"); ok {
		f.Root = d.root(v)
	} else if !t.has("root") {
		t.missing("root", `; it names the directory that the paths of its calls begin at, as in root = "notes"`)
	}
	return f
}

// root finds a directory that has to be there. What the file goes by must not lie
// in it: agents would read or write it.
func (d *decoder) root(v value) string {
	full := Whole(d.path(v.text))
	info, err := os.Stat(full)
	switch {
	case v.text == "":
		d.atValue(v.location, v.path+` needs a directory, as in "notes"`)
	case err != nil:
		d.atValue(v.location, fmt.Sprintf("the directory %s cannot be used: %v", v.shown, reason(err)))
	case !info.IsDir():
		d.atValue(v.location, fmt.Sprintf("%s is not a directory", v.shown))
	case slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(of string) bool { return Within(full, of) }):
		d.atValue(v.location, fmt.Sprintf("%s holds what the kernel shows, no files", v.shown))
	case Within(Whole(d.dir), full):
		d.atValue(v.location, fmt.Sprintf("%s holds this file, which agents must not reach; name a directory beside it", v.shown))
	default:
		return full
	}
	return ""
}

// Whole is a path as a root is written: absolute, and without symbolic links as far
// as it is there.
func Whole(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	for up, rest := path, ""; ; up, rest = filepath.Dir(up), filepath.Join(filepath.Base(up), rest) {
		if full, err := filepath.EvalSymlinks(up); err == nil {
			return filepath.Join(full, rest)
		}
		if up == filepath.Dir(up) {
			return path
		}
	}
}

// Within reports whether a clean path is another one or lies in it.
func Within(path, in string) bool {
	rel, err := filepath.Rel(in, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// checkRoots holds the roots of file actions against each other, against the tenants
// and against the code that the file names.
func (d *decoder) checkRoots(t *table, c *Config) {
	all := t.table("actions")
	var before []Action
	for _, a := range c.Actions {
		if a.Files.Root == "" {
			continue
		}
		at := all.table(a.Name)
		root := at.child("root")
		d.checkTenants(a, at, c.Tenants)
		for _, b := range before {
			switch nested := Within(a.Files.Root, b.Files.Root) || Within(b.Files.Root, a.Files.Root); {
			case !nested, a.Files.Root == b.Files.Root && a.Files.Shared == b.Files.Shared, a.Files.Shared && b.Files.Shared:
			case a.Files.Root == b.Files.Root:
				d.atKey(root, fmt.Sprintf("%s and actions.%s.root are one directory, but only one of them is shared: it would show the directories of tenants", root.path, b.Name))
			default:
				d.atKey(root, fmt.Sprintf("%s and actions.%s.root lie one within the other: one tenant would see what another has", root.path, b.Name))
			}
		}
		before = append(before, a)
		for _, path := range slices.Sorted(maps.Keys(d.named)) {
			if (a.Files.Writes() || d.named[path]) && Within(Whole(path), a.Files.Root) {
				d.atKey(root, fmt.Sprintf("%s holds %s, which this file refers to and agents must not reach; keep it elsewhere", root.path, path))
			}
		}
		for _, path := range codePaths(c) {
			if a.Files.Writes() && Within(Whole(path), a.Files.Root) {
				d.atKey(root, fmt.Sprintf("%s holds the code %s, which agents must not change", root.path, path))
			}
		}
	}
}

// checkTenants holds one root against the tenants.
func (d *decoder) checkTenants(a Action, at *table, tenants []Tenant) {
	if a.Files.Shared {
		if a.Files.Writes() && len(tenants) > 1 {
			d.atKey(at.child("shared"), at.path+".shared: a directory that agents write to is not shared by several tenants; leave shared out, and each has its own in it")
		}
		return
	}
	seen := map[string]string{}
	for _, t := range tenants {
		low := strings.ToLower(t.Name)
		switch {
		case strings.HasPrefix(t.Name, "."):
			d.atKey(at.location, fmt.Sprintf("the tenant %q can have no directory of that name in %s.root; call it otherwise", t.Name, at.path))
		case seen[low] != "":
			d.atKey(at.location, fmt.Sprintf("the tenants %q and %q could have one directory in %s.root; call one of them otherwise", seen[low], t.Name, at.path))
		}
		seen[low] = t.Name
	}
}

// codePaths are the files of code that the file names, and what was approved of tools.
func codePaths(c *Config) (paths []string) {
	for _, a := range c.Agents {
		paths = append(append(paths, a.Source.Path), a.Readable...)
	}
	for _, a := range c.Actions {
		paths = append(append(paths, a.Source.Path), a.Readable...)
	}
	for _, m := range c.MCP {
		paths = append(append(paths, m.Pins), m.Command[:min(1, len(m.Command))]...)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" })
}
