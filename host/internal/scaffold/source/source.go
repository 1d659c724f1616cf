// Package source owns which files of the SDKs go into a new project, and where.
// It reads them from the tree of this repository, so only the generator and its
// test use it. It must not know what else a project is made of.
package source

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// rule takes the files of a directory of an SDK into a directory of the project.
type rule struct {
	from, to string
	end      string // of the names to take; Go's tests are left out
	deep     bool   // directories below, too, but for the examples
}

var rules = map[string][]rule{
	"go":   {{from: "go", to: "internal/skep", end: ".go", deep: true}},
	"rust": {{from: "rust/src", to: "skep/src", end: ".rs"}},
	"c":    {{from: "c", to: "skep", end: ".h"}},
	"assemblyscript": {
		{from: "assemblyscript/assembly", to: "skep", end: ".ts"},
		{from: "assemblyscript/testing", to: "skep/testing", end: "host.mjs"},
		{from: "assemblyscript/testing", to: "skep/testing", end: "world.mjs"},
	},
}

// Languages lists the SDKs, in order.
func Languages() []string { return []string{"assemblyscript", "c", "go", "rust"} }

// Archive returns an SDK's files as one txtar archive.
func Archive(root, language string) ([]byte, error) {
	var a txtar.Archive
	for _, r := range rules[language] {
		files, err := r.files(filepath.Join(root, "sdk"))
		if err != nil {
			return nil, fmt.Errorf("sources of the %s SDK: %w", language, err)
		}
		a.Files = append(a.Files, files...)
	}
	if len(a.Files) == 0 {
		return nil, fmt.Errorf("sources of the %s SDK: none", language)
	}
	return txtar.Format(&a), nil
}

func (r rule) files(sdk string) (list []txtar.File, err error) {
	base := filepath.Join(sdk, filepath.FromSlash(r.from))
	err = filepath.WalkDir(base, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != base && (!r.deep || d.Name() == "examples"):
			return filepath.SkipDir
		case d.IsDir() || !r.takes(d.Name()):
			return nil
		}
		rel, err := filepath.Rel(base, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		list = append(list, txtar.File{Name: path.Join(r.to, filepath.ToSlash(rel)), Data: text})
		return err
	})
	return list, err
}

func (r rule) takes(name string) bool {
	return strings.HasSuffix(name, r.end) && !strings.HasSuffix(name, "_test.go")
}
