// Package scaffold owns what a new project is made of: for each language an agent
// with its test, the files that build and run it, and the sources of the SDK, so
// that it needs nothing but the language's own tools. It must not know how a
// module is built or run.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"skep/host/internal/scaffold/source"
	"skep/sdk"
)

//go:generate go run ./generate ../../../sdk sdk_go.txtar

// goSDK is an archive of the Go SDK, see package sdk.
//
//go:embed sdk_go.txtar
var goSDK []byte

// templates hold what a project has besides the SDK, by language.
//
//go:embed templates/*.txtar
var templates embed.FS

// Languages lists what an agent can be written in.
func Languages() []string { return []string{"go", "rust", "c", "assemblyscript"} }

// Agent is a project to be made.
type Agent struct {
	Name     string
	Language string
	// Dir is where it goes. It is made when it is missing; when there is
	// something in it, nothing is written.
	Dir string
	// Program is the path of the skep that `make run` of the project calls.
	Program string
}

// Errors of [Agent.Write].
var (
	ErrName     = errors.New("a name is a small letter, then up to 62 small letters, digits, - and _")
	ErrLanguage = errors.New("the languages are " + strings.Join(Languages(), ", "))
	ErrExists   = errors.New("there is something in it")
)

var agentName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// Write makes the project and returns its files, as paths in it.
func (a Agent) Write() ([]string, error) {
	files, err := a.files()
	if err != nil {
		return nil, err
	}
	if err := a.makeDir(); err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
		path := filepath.Join(a.Dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := writeNew(path, f.Data); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// makeDir makes the project's directory, and refuses one that is in use.
func (a Agent) makeDir() error {
	entries, err := os.ReadDir(a.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(a.Dir, 0o755)
	}
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s: %w: %s", a.Dir, ErrExists, entries[0].Name())
	}
	return err
}

// writeNew writes a file that must not be there.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// files puts the project together.
func (a Agent) files() ([]txtar.File, error) {
	switch {
	case !agentName.MatchString(a.Name):
		return nil, fmt.Errorf("%q: %w", a.Name, ErrName)
	case !slices.Contains(Languages(), a.Language):
		return nil, fmt.Errorf("%q: %w", a.Language, ErrLanguage)
	}
	template, err := templates.ReadFile("templates/" + a.Language + ".txtar")
	if err != nil {
		return nil, err
	}
	sources, err := sdkFiles(a.Language)
	if err != nil {
		return nil, err
	}
	files := append(txtar.Parse(template).Files, sources...)
	// The module is not called NAME alone: that may be a package of Go's own.
	fill := strings.NewReplacer("@NAME@", a.Name, "@SKEP@", makeValue(a.Program), "skep/sdk/go", a.Name+"-agent/internal/skep")
	for i := range files {
		files[i].Data = []byte(fill.Replace(string(files[i].Data)))
	}
	return files, nil
}

// sdkFiles returns the files of a language's SDK.
func sdkFiles(language string) ([]txtar.File, error) {
	if language == "go" {
		return txtar.Parse(goSDK).Files, nil
	}
	return source.Files(sdk.Sources(), language)
}

// makeValue writes a path as the value of a variable of make that recipes have
// in single quotes.
func makeValue(path string) string {
	return strings.NewReplacer("$", "$$", "#", `\#`, "'", `'\''`).Replace(path)
}
