package bundle

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

//go:embed modules
var modules embed.FS

// Suffix ends the names of the embedded files.
const Suffix = ".wasm.gz"

// maxModule bounds what one module decompresses to, in bytes.
const maxModule = 64 << 20

// Modules are compressed modules. The zero value has none.
type Modules struct{ files fs.FS }

// Embedded returns the modules of this program. A program that was built without them
// has none.
func Embedded() Modules {
	files, err := fs.Sub(modules, "modules")
	if err != nil {
		return Modules{}
	}
	return Modules{files}
}

// Names returns the modules' names, sorted.
func (m Modules) Names() (names []string) {
	if m.files == nil {
		return nil
	}
	entries, err := fs.ReadDir(m.files, ".")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), Suffix); ok {
			names = append(names, name)
		}
	}
	return names
}

// Read returns a module. One that is not there is [fs.ErrNotExist].
func (m Modules) Read(name string) ([]byte, error) {
	if m.files == nil {
		return nil, fs.ErrNotExist
	}
	packed, err := fs.ReadFile(m.files, name+Suffix)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("the module %s in the program: %w", name, err)
	}
	wasm, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err == nil && len(wasm) > maxModule {
		err = errors.New("it is too large")
	}
	if err != nil {
		return nil, fmt.Errorf("the module %s in the program: %w", name, err)
	}
	return wasm, nil
}
