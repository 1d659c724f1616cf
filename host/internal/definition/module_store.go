package definition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/atomicfile"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
)

// moduleStore holds the host's own copy of every module it loads, by digest, so that a
// turn can be run again on the module it was recorded with. It is safe for concurrent use.
type moduleStore struct {
	dir    ModuleDir
	engine *wasm.Engine
	caps   binary.Caps
	// rows are nil for a store in a file.
	rows ModuleRows
	log  *slog.Logger
	// fetching is held while a module comes from its row.
	fetching ctxMutex
	// programs are what agents run on instead of modules. There are no copies of them.
	programs *programs

	mu sync.Mutex
	// used are the digests that this host has loaded: turns may name them at any time.
	used map[string]bool
	// sources read modules again from what this host has loaded them from.
	sources map[string]func() ([]byte, error)
	// damaged are modules without a row whose file is damaged, as far as they were logged.
	damaged map[string]bool
	// pinned counts the turns that are run again on a digest: it stays loaded.
	pinned map[string]int
}

var _ capability.Modules = (*moduleStore)(nil)

// newModuleStore makes the directory, or refuses one that others could change. It removes
// the files that a crash has left half-written: the caller holds the data directory's lock.
func newModuleStore(data string, engine *wasm.Engine, caps binary.Caps, p *programs) (*moduleStore, error) {
	dir := DataModules(data)
	if err := os.Mkdir(string(dir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("keep modules: %w", err)
	}
	if err := pathcheck.Dir(string(dir)); err != nil {
		return nil, err
	}
	parts, err := filepath.Glob(filepath.Join(string(dir), "*"+atomicfile.PartSuffix))
	for _, p := range parts {
		err = errors.Join(err, os.Remove(p))
	}
	if err != nil {
		return nil, fmt.Errorf("keep modules: %w", err)
	}
	return &moduleStore{
		dir: dir, engine: engine, caps: caps, log: slog.New(slog.DiscardHandler), fetching: newCtxMutex(), programs: p,
		used: map[string]bool{}, sources: map[string]func() ([]byte, error){}, damaged: map[string]bool{}, pinned: map[string]int{},
	}, nil
}

// Module loads a module by its digest and keeps it loaded until ctx ends.
func (s *moduleStore) Module(ctx context.Context, digest string) (capability.Module, error) {
	s.mu.Lock()
	s.pinned[digest]++
	s.mu.Unlock()
	context.AfterFunc(ctx, func() { s.unpin(digest) })
	m, err := s.load(ctx, digest)
	if ctx.Err() == nil && isGone(err) { // what the turn's end stops looks like a refusal
		err = &capability.ModuleGoneError{Err: err}
	}
	return m, err
}

func (s *moduleStore) unpin(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pinned[digest]--; s.pinned[digest] == 0 {
		delete(s.pinned, digest)
	}
}

// load loads a module by its digest until [moduleStore.closeUnused].
func (s *moduleStore) load(ctx context.Context, digest string) (capability.Module, error) {
	if p := s.programs.find(digest); p != nil {
		return p, nil
	}
	s.mu.Lock()
	s.used[digest] = true
	s.mu.Unlock()
	data, err := s.read(ctx, digest)
	if err != nil {
		return nil, err
	}
	m, err := s.engine.Load(ctx, wasm.Source{Name: digest, Wasm: data, SHA256: digest})
	if err != nil {
		return nil, err // not m: a nil *wasm.Module in the interface would not be nil
	}
	return m, nil
}

// closeUnused frees the modules that are not wanted, except for pinned modules and
// modules on which turns still run.
func (s *moduleStore) closeUnused(ctx context.Context, wanted map[string]bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.programs.closeUnused(func(digest string) bool { return wanted[digest] || s.pinned[digest] > 0 }); err != nil {
		return err
	}
	for digest := range s.used {
		if wanted[digest] || s.pinned[digest] > 0 {
			continue
		}
		done, err := s.engine.Unload(ctx, digest)
		if err != nil {
			return err
		}
		if done {
			delete(s.used, digest)
			delete(s.sources, digest)
		}
	}
	return nil
}

// save makes sure that there is a file of a module.
func (s *moduleStore) save(digest string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[digest] = true
	path := s.dir.path(digest)
	// A copy of the right length is checked when it is read: hashing all modules twice
	// would slow down every start.
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(data)) {
		return nil
	}
	if err := atomicfile.CreateBytes(path, 0o400, data); err != nil {
		return fmt.Errorf("keep a copy of module %s: %w", digest, err)
	}
	return nil
}

// setSource sets what reads a module again.
func (s *moduleStore) setSource(digest string, read func() ([]byte, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources[digest] = read
}

// unused lists the copies of modules that this host has not loaded.
func (s *moduleStore) unused() (digests []string, err error) {
	all, err := s.dir.digests()
	if err != nil {
		return nil, fmt.Errorf("look at the modules: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, digest := range all {
		if !s.used[digest] {
			digests = append(digests, digest)
		}
	}
	return digests, nil
}

// remove removes copies of modules, except for modules that this host has loaded.
func (s *moduleStore) remove(digests []string) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range digests {
		if s.used[d] {
			continue
		}
		if err := os.Remove(s.dir.path(d)); err != nil {
			return n, fmt.Errorf("drop a module that nothing names: %w", err)
		}
		n++
	}
	return n, nil
}
