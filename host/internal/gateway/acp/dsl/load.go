package dsl

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
)

// maxFiles is how many files one run may import.
const maxFiles = 64

// Load reads a file and those it imports, and resolves them. read is given the name of
// the file, or of an imported one relative to the same place; what it returns is read up
// to a little more than [MaxBytes]. The error is [Faults], or read's for the first file.
func Load(name string, read func(name string) (string, error)) (*Schema, error) {
	text, err := read(name)
	if err != nil {
		return nil, err
	}
	l := &loader{read: read, left: newBudget(), state: map[string]cycleState{}}
	l.file(name, text)
	if len(l.faults) > 0 {
		return nil, l.faults.Sorted()
	}
	schema, faults := resolve(name, l.files)
	if len(faults) > 0 {
		return nil, faults.Sorted()
	}
	return schema, nil
}

type loader struct {
	read   func(string) (string, error)
	left   *budget
	state  map[string]cycleState
	files  []parsed
	faults Faults
}

// file parses a file after those it imports.
func (l *loader) file(name, text string) {
	l.state[name] = entered
	tree, faults := parse(name, text, l.left)
	l.faults = append(l.faults, faults...)
	src := newSource(name, text)
	for _, it := range tree.Items {
		if it.Kind() == ImportItem && len(l.faults) < maxFaults {
			l.importFile(src, name, it)
		}
	}
	l.files = append(l.files, parsed{tree, src})
	l.state[name] = done
}

func (l *loader) importFile(src *source, from string, it *Item) {
	fail := func(message string) {
		l.faults = append(l.faults, src.fault(it.Name.Pos, len(it.Name.Text)+2, message))
	}
	if !filepath.IsLocal(it.Name.Text) || path.Ext(it.Name.Text) != ".acp" {
		fail("an import is a .acp file beside this one or below")
		return
	}
	name := path.Join(path.Dir(from), filepath.ToSlash(it.Name.Text))
	switch l.state[name] {
	case entered:
		fail("the file imports itself, maybe over others")
		return
	case done:
		return
	}
	if len(l.state) >= maxFiles {
		fail("more than 64 files are imported")
		return
	}
	text, err := l.read(name)
	if err != nil {
		if of := new(fs.PathError); errors.As(err, &of) {
			err = of.Err // the fault names the file
		}
		fail("the file cannot be read: " + err.Error())
		return
	}
	l.file(name, text)
}
