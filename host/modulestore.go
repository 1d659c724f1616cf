package host

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"skep/host/internal/capability"
	"skep/host/internal/guard"
	"skep/host/internal/sandbox"
	"skep/host/internal/wasmbin"
)

// moduleStore holds the host's own copy of every module it loads, by digest, so
// that a turn can be run again on what it was recorded with. It is safe for
// concurrent use.
type moduleStore struct {
	dir    string
	engine *sandbox.Engine
	caps   wasmbin.Caps
	// programs are what agents run on that are no modules; of these there are no
	// copies. It is set before the store is used.
	programs *programs

	mu sync.Mutex
	// used are the digests that this host has loaded: turns that it runs may
	// name them at any time.
	used map[string]bool
	// pinned are those that turns are run on again: they stay loaded.
	pinned map[string]bool
}

var _ capability.Modules = (*moduleStore)(nil)

// modulesDir is where a data directory holds modules.
func modulesDir(data string) string { return filepath.Join(data, "modules") }

// newModuleStore makes the directory, or refuses one that others could change.
// What a host has left half-written is removed: the caller holds the data
// directory's lock.
func newModuleStore(data string, engine *sandbox.Engine, caps wasmbin.Caps, p *programs) (*moduleStore, error) {
	dir := modulesDir(data)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("keep modules: %w", err)
	}
	if err := guard.Dir(dir); err != nil {
		return nil, err
	}
	parts, err := filepath.Glob(filepath.Join(dir, "*"+partSuffix))
	for _, p := range parts {
		err = errors.Join(err, os.Remove(p))
	}
	if err != nil {
		return nil, fmt.Errorf("keep modules: %w", err)
	}
	return &moduleStore{dir: dir, engine: engine, caps: caps, programs: p, used: map[string]bool{}, pinned: map[string]bool{}}, nil
}

// Module loads a module by its digest, for good.
func (s *moduleStore) Module(ctx context.Context, digest string) (capability.Module, error) {
	s.mu.Lock()
	s.pinned[digest] = true
	s.mu.Unlock()
	return s.load(ctx, digest)
}

// load loads a module by its digest until it is closed.
func (s *moduleStore) load(ctx context.Context, digest string) (capability.Module, error) {
	if p := s.programs.find(digest); p != nil {
		return p, nil
	}
	s.mu.Lock()
	s.used[digest] = true
	s.mu.Unlock()
	wasm, err := readModule(s.dir, digest, s.caps)
	if err != nil {
		return nil, err
	}
	m, err := s.engine.Load(ctx, sandbox.Source{Name: digest, Wasm: wasm, SHA256: digest})
	if err != nil {
		return nil, err // not m: its type would make it look like a module
	}
	return m, nil
}

// closeOthers frees the modules that are not among those given, unless turns are
// run on them again, or still run.
func (s *moduleStore) closeOthers(ctx context.Context, wanted map[string]bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.programs.closeOthers(func(digest string) bool { return wanted[digest] || s.pinned[digest] }); err != nil {
		return err
	}
	for digest := range s.used {
		if wanted[digest] || s.pinned[digest] {
			continue
		}
		done, err := s.engine.Unload(ctx, digest)
		if err != nil {
			return err
		}
		if done {
			delete(s.used, digest)
		}
	}
	return nil
}

// keep makes sure that there is a copy of a module.
func (s *moduleStore) keep(digest string, wasm []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[digest] = true
	path := modulePath(s.dir, digest)
	// What has the right length is looked at when it is read: a start must not
	// wait for all modules to be hashed twice.
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(wasm)) {
		return nil
	}
	if err := install(path, wasm, 0o400); err != nil {
		return fmt.Errorf("keep a copy of module %s: %w", digest, err)
	}
	return nil
}

// strange lists the modules that this host has not loaded.
func (s *moduleStore) strange() (digests []string, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("look at the modules: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		digest, ok := strings.CutSuffix(e.Name(), moduleSuffix)
		if ok && isDigest(digest) && !s.used[digest] {
			digests = append(digests, digest)
		}
	}
	return digests, nil
}

// drop removes modules, but none that this host has loaded.
func (s *moduleStore) drop(digests []string) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range digests {
		if s.used[d] {
			continue
		}
		if err := os.Remove(modulePath(s.dir, d)); err != nil {
			return n, fmt.Errorf("drop a module that nothing names: %w", err)
		}
		n++
	}
	return n, nil
}

const (
	moduleSuffix = ".wasm"
	partSuffix   = ".part"
)

func modulePath(dir, digest string) string { return filepath.Join(dir, digest+moduleSuffix) }

func isDigest(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size && strings.ToLower(s) == s
}

// readModule reads a copy and makes sure that it is what its name says. Without
// one it is fs.ErrNotExist.
func readModule(dir, digest string, caps wasmbin.Caps) ([]byte, error) {
	if !isDigest(digest) {
		return nil, fmt.Errorf("%q is not the digest of a module", digest)
	}
	if err := guard.Dir(dir); err != nil {
		return nil, err
	}
	path := modulePath(dir, digest)
	wasm, err := sandbox.ReadModule(digest, path, caps)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(wasm); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%s is damaged: its digest is not its name; remove it, and start a host whose swarm.toml still has the module", path)
	}
	return wasm, nil
}

// install writes a file whole or not at all.
func install(path string, content []byte, mode fs.FileMode) (err error) {
	part := path + "." + rand.Text() + partSuffix
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory last.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
