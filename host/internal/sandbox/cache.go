package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/tetratelabs/wazero"

	"skep/host/internal/guard"
	"skep/host/internal/wasmbin"
)

const wazeroPath = "github.com/tetratelabs/wazero"

// wazeroVersion is the version in go.mod. A test compares the two; a binary
// that knows what it was built with says so itself, a test binary does not.
const wazeroVersion = "v1.12.0"

// cacheVersion names everything that decides whether compiled code still fits.
func cacheVersion() string {
	version := wazeroVersion
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == wazeroPath {
				version = dep.Version
			}
		}
	}
	return fmt.Sprintf("wazero-%s-meter-%s-%s", version, wasmbin.Version, runtime.GOARCH)
}

// openCache opens the cache below dir for this version.
func openCache(dir string) (wazero.CompilationCache, error) {
	sub := filepath.Join(dir, cacheVersion())
	if err := os.MkdirAll(sub, 0o700); err != nil {
		return nil, err
	}
	// Whoever can write to them chooses the code that runs.
	for _, d := range []string{dir, sub} {
		if err := guard.Dir(d); err != nil {
			return nil, err
		}
	}
	return wazero.NewCompilationCacheWithDir(sub)
}
