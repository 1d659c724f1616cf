// Package source owns which files of an SDK go into a new project, and where. It
// must not know what else a project is made of.
package source

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// rule copies the files of a directory of an SDK into a directory of the project.
type rule struct {
	from, to  string
	suffix    string // of the names to copy; Go's tests are left out
	recursive bool   // copies subdirectories too, without the examples
}

var rules = map[string][]rule{
	"go":   {{from: "go", to: "internal/skep", suffix: ".go", recursive: true}},
	"rust": {{from: "rust/src", to: "skep/src", suffix: ".rs"}},
	"c":    {{from: "c", to: "skep", suffix: ".h"}},
	"assemblyscript": {
		{from: "assemblyscript/assembly", to: "skep", suffix: ".ts"},
		{from: "assemblyscript/testing", to: "skep/testing", suffix: "host.mjs"},
		{from: "assemblyscript/testing", to: "skep/testing", suffix: "world.mjs"},
	},
}

// Files returns an SDK's files for a project, from the content of the directory
// sdk.
func Files(sdk fs.FS, language string) ([]txtar.File, error) {
	var files []txtar.File
	for _, r := range rules[language] {
		some, err := r.files(sdk)
		if err != nil {
			return nil, fmt.Errorf("sources of the %s SDK: %w", language, err)
		}
		files = append(files, some...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("sources of the %s SDK: none", language)
	}
	return files, nil
}

func (r rule) files(sdk fs.FS) (list []txtar.File, err error) {
	err = fs.WalkDir(sdk, r.from, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != r.from && (!r.recursive || d.Name() == "examples"):
			return fs.SkipDir
		case d.IsDir() || !r.matches(d.Name()):
			return nil
		}
		text, err := fs.ReadFile(sdk, name)
		list = append(list, txtar.File{Name: path.Join(r.to, strings.TrimPrefix(name, r.from)), Data: text})
		return err
	})
	return list, err
}

func (r rule) matches(name string) bool {
	return strings.HasSuffix(name, r.suffix) && !strings.HasSuffix(name, "_test.go")
}
