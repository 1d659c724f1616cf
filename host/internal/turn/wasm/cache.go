package wasm

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/cpu"

	"skep/host/internal/pathcheck"
	"skep/host/internal/turn/wasm/binary"
)

const wazeroPath = "github.com/tetratelabs/wazero"

// wazeroVersion is the version in go.mod. A test compares the two; a binary
// with build information names the version itself, a test binary does not.
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
	return fmt.Sprintf("wazero-%s-meter-%s-%s-%s", version, binary.Version, runtime.GOARCH, processor())
}

// processor is a hash of all features of this processor. The features that wazero
// checks are among them; its next version may check more.
func processor() string {
	h := fnv.New32a()
	fmt.Fprint(h, cpu.X86, cpu.ARM64) // a hash takes everything
	return fmt.Sprintf("%08x", h.Sum32())
}

// cache keeps compiled modules in a directory. A module has an entry there,
// written by wazero, and a mark, written by this package with the digest of the
// entry. An entry without a mark is not used. Beside them lies what was compiled, so that
// a start does not admit and meter it again.
type cache struct {
	dir     string // of this version
	entries string // the directory in it where wazero looks
	program string // the content of what runs; empty if it is not known
	log     *slog.Logger
	wazero.CompilationCache
	// temporary is removed with the cache; empty for one that stays.
	temporary string
}

// openCache opens the cache below root for this version, and makes it.
func openCache(root string, log *slog.Logger) (*cache, error) {
	c := &cache{dir: filepath.Join(root, cacheVersion()), program: programID(), log: log}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	// A user who can write to them chooses the code that runs.
	for _, d := range []string{root, c.dir} {
		if err := pathcheck.Dir(d); err != nil {
			return nil, err
		}
	}
	name, err := wazeroDirName(c.dir)
	if err != nil { // a cache that is only read
		name, err = wazeroDirName("")
	}
	if err != nil {
		return nil, err
	}
	c.entries = filepath.Join(c.dir, name)
	if err := pathcheck.Dir(c.entries); err != nil {
		return nil, err
	}
	if err := c.removeOldStages(); err != nil {
		return nil, err
	}
	c.CompilationCache, err = wazero.NewCompilationCacheWithDir(c.dir)
	return c, err
}

// temporaryCache opens a cache that Close removes.
func temporaryCache(log *slog.Logger) (*cache, error) {
	dir, err := os.MkdirTemp("", "skep-cache-")
	if err != nil {
		return nil, fmt.Errorf("there is no directory to compile modules in, and none for temporary files: %w; set TMPDIR to one that can be written to", err)
	}
	c, err := openCache(dir, log)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.temporary = dir
	return c, nil
}

// wazeroDirName returns the name of wazero's directory in a cache. wazero has no
// function for it, so a cache is made in a temporary directory below in, or below
// the system's directory for temporary files.
func wazeroDirName(in string) (name string, err error) {
	trial, err := os.MkdirTemp(in, stagePrefix)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(trial)) }()
	if _, err := wazero.NewCompilationCacheWithDir(trial); err != nil {
		return "", err
	}
	made, err := os.ReadDir(trial)
	if err == nil && len(made) != 1 {
		err = fmt.Errorf("wazero makes %d directories for a cache, not one", len(made))
	}
	if err != nil {
		return "", err
	}
	return made[0].Name(), nil
}

// stagePrefix begins the names of the directories into which modules are compiled.
// A stage older than stageMaxAge was left behind by a process that was killed.
const (
	stagePrefix = "skep-stage-"
	stageMaxAge = time.Hour
)

// removeOldStages removes stages of processes that were killed.
func (c *cache) removeOldStages() error {
	left, err := os.ReadDir(c.dir)
	for _, d := range left {
		info, gone := d.Info()
		if gone == nil && strings.HasPrefix(d.Name(), stagePrefix) && time.Since(info.ModTime()) > stageMaxAge {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.dir, d.Name())))
		}
	}
	return err
}

// Close frees the code, and removes a temporary cache.
func (c *cache) Close(ctx context.Context) error {
	err := c.CompilationCache.Close(ctx)
	if c.temporary != "" {
		err = errors.Join(err, os.RemoveAll(c.temporary))
	}
	return err
}
