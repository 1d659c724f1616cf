package definition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/atomicfile"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
)

// ModuleRows are the copies of modules on a server, for hosts whose data directory lacks a module. Any host changes
// them at any time. What cannot be reached is [swarm.ErrUnavailable].
type ModuleRows interface {
	// TouchModules makes rows young, and returns the digests of those that are there.
	TouchModules(ctx context.Context, digests []string) (there map[string]bool, err error)
	// AddModule makes a row, which is durable on return and young.
	AddModule(ctx context.Context, digest string, data []byte) error
	// ReadModule is [fs.ErrNotExist] for a module without a row, and a [*pathcheck.SizeError] for a larger one.
	ReadModule(ctx context.Context, digest string, maxSize int64) ([]byte, error)
	// ListModules lists the rows; those that were not touched for an age are old.
	ListModules(ctx context.Context, age time.Duration) ([]sqlite.ServerModule, error)
	// DropModule drops a row unless it was touched after it was listed, and reports whether it has.
	DropModule(ctx context.Context, row sqlite.ServerModule) (bool, error)
}

// Times of the rows.
const (
	// rowAge is the age at which a row that nothing names is dropped. A host that starts has that long to store the
	// definition that names its modules.
	rowAge = time.Hour
	// keepFor bounds how long a round, or a start, gives rows to files; dropFor how long a round reads what names
	// modules, which are all records of turns.
	keepFor = time.Minute
	dropFor = 5 * time.Minute
)

// ReadCopy reads a module from its file in a directory, or from its row if the file is not sound or cannot be read. rows
// may be nil. A module without a sound copy is [fs.ErrNotExist] or damaged.
func ReadCopy(ctx context.Context, dir ModuleDir, rows ModuleRows, digest string, caps binary.Caps) ([]byte, error) {
	data, err := dir.Read(digest, caps)
	if rows == nil || err == nil {
		return data, err
	}
	return readInstead(ctx, rows, digest, caps.Size, err)
}

// readInstead reads the row of a module whose file cannot be read, unless the host refuses the file.
func readInstead(ctx context.Context, rows ModuleRows, digest string, maxSize int64, fileErr error) ([]byte, error) {
	var weak *pathcheck.Error
	var refused *turn.LoadError
	if errors.As(fileErr, &weak) || errors.As(fileErr, &refused) && refused.Step != turn.StepRead {
		return nil, fileErr
	}
	data, err := readRow(ctx, rows, digest, maxSize)
	if errors.Is(err, fs.ErrNotExist) || isGone(err) && !isGone(fileErr) {
		return nil, fileErr
	}
	return data, err
}

func readRow(ctx context.Context, rows ModuleRows, digest string, maxSize int64) ([]byte, error) {
	data, err := rows.ReadModule(ctx, digest, maxSize)
	var large *pathcheck.SizeError
	switch {
	case errors.As(err, &large):
		return nil, wasm.AsLoadError(digest, err)
	case sqlite.IsDamaged(err):
		return nil, fmt.Errorf("the row of module %s in the table modules %w; a host that has its file makes it anew: %w", digest, errDamaged, err)
	}
	return data, err
}

// read reads a module. One that comes from its row has its file from then on. Modules come one at a time: turns that
// wake together want the same one, and each takes several times its size in memory.
func (s *moduleStore) read(ctx context.Context, digest string) ([]byte, error) {
	data, err := s.dir.Read(digest, s.caps)
	if s.rows == nil || err == nil {
		return data, err
	}
	if err := s.fetching.Lock(ctx); err != nil {
		return nil, err
	}
	defer s.fetching.Unlock()
	if data, err = s.dir.Read(digest, s.caps); err == nil { // another turn has fetched it
		return data, nil
	}
	if data, err = readInstead(ctx, s.rows, digest, s.caps.Size, err); err != nil {
		return nil, err
	}
	if err := atomicfile.CreateBytes(s.dir.path(digest), 0o400, data); err != nil {
		s.log.Error("cannot keep a copy of a module that came from the server; it is read there again", "module", digest, "err", err)
	}
	return data, nil
}

// keepRows makes sure that modules have young rows, but for those without a sound file here.
func (s *moduleStore) keepRows(ctx context.Context, digests []string) error {
	if s.rows == nil || len(digests) == 0 {
		return nil
	}
	there, err := s.rows.TouchModules(ctx, digests)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(digests), func(digest string) bool { return there[digest] })
	slices.SortStableFunc(missing, func(a, b string) int { return cmp.Compare(s.dir.size(a), s.dir.size(b)) }) // a slow one holds up none
	var faults []error
	for _, digest := range missing {
		if err := s.addRow(ctx, digest); err != nil {
			faults = append(faults, err)
			if ctx.Err() != nil || errors.Is(err, swarm.ErrUnavailable) {
				break
			}
		}
	}
	return errors.Join(faults...)
}

// KeepRows makes sure that the modules in a directory have young rows, but for damaged ones.
func KeepRows(ctx context.Context, dir ModuleDir, rows ModuleRows) error {
	digests, err := dir.digests()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s := &moduleStore{dir: dir, rows: rows, log: slog.New(slog.DiscardHandler), caps: binary.Caps{Size: sqlite.MaxServerModule}, damaged: map[string]bool{}}
	return s.keepRows(ctx, digests)
}

// addRow makes the row of a module, unless there is no sound file of it here, or it is larger than a row.
func (s *moduleStore) addRow(ctx context.Context, digest string) error {
	info, err := os.Lstat(s.dir.path(digest))
	if err == nil && info.Size() > sqlite.MaxServerModule {
		s.log.Warn("a module is too large for the server: its turns go on at hosts that have its file alone", "module", digest, "bytes", info.Size(), "most", sqlite.MaxServerModule)
		return nil
	}
	data, err := s.readAnew(digest)
	if isGone(err) {
		s.logDamaged(digest, err)
		return nil
	}
	if err == nil {
		err = s.rows.AddModule(ctx, digest, data)
	}
	return err
}

// readAnew reads a module from its file or, if that is not sound, from its source, which makes the file anew.
func (s *moduleStore) readAnew(digest string) ([]byte, error) {
	data, err := s.dir.Read(digest, s.caps)
	s.mu.Lock()
	source := s.sources[digest]
	s.mu.Unlock()
	if err == nil || source == nil {
		return data, err
	}
	data, sourceErr := source()
	if sourceErr != nil || digestOf(data) != digest { // it has changed since it was loaded
		return nil, err
	}
	if err := atomicfile.CreateBytes(s.dir.path(digest), 0o400, data); err != nil {
		s.log.Error("cannot make the file of a module anew", "module", digest, "err", err)
	}
	return data, nil
}

// logDamaged logs a module that has neither a sound file nor a row, once.
func (s *moduleStore) logDamaged(digest string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errDamaged) && !s.damaged[digest] {
		s.damaged[digest] = true
		s.log.Warn("a module has no row on the server, as its file is damaged: turns that began with it begin anew", "module", digest, "err", err)
	}
}

// keepFiles makes sure that all modules that this host uses or has files of have young rows: something has named a
// file, and a row too many goes by itself. What cannot be done now is done in a later round.
func (s *moduleStore) keepFiles(ctx context.Context) {
	if s.rows == nil {
		return
	}
	limited, cancel := context.WithTimeoutCause(ctx, keepFor, errRoundTime)
	defer cancel()
	digests, err := s.dir.digests()
	if err == nil {
		s.mu.Lock()
		all := maps.Clone(s.used)
		s.mu.Unlock()
		for _, digest := range digests {
			all[digest] = true
		}
		err = s.keepRows(limited, slices.Sorted(maps.Keys(all)))
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("not all modules have their rows on the server yet: without one a task cannot go on with its module on another machine", "err", err)
	}
}

// dropRows drops the old rows of modules that nothing names, once in rowAge.
func (r *Retention) dropRows(ctx context.Context, now time.Time) {
	if r.modules.rows == nil || now.Before(r.nextDrop) || !r.mayDrop() {
		return
	}
	r.nextDrop = now.Add(rowAge) // also after a failure: the names are all records of turns
	limited, cancel := context.WithTimeoutCause(ctx, dropFor, errRoundTime)
	defer cancel()
	n, err := r.dropOldRows(limited)
	if n > 0 {
		r.log.Info("dropped modules on the server that nothing names any more", "modules", n)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn("cannot drop the modules on the server that nothing names", "err", err)
	}
}

// dropOldRows drops the old rows that nothing names, and touches the others: other hosts need not read what names
// them for a while.
func (r *Retention) dropOldRows(ctx context.Context) (n int, err error) {
	old, err := r.modules.rows.ListModules(ctx, rowAge)
	old = slices.DeleteFunc(old, func(row sqlite.ServerModule) bool { return !row.Old })
	if len(old) == 0 || err != nil {
		return 0, err
	}
	named, err := r.named(ctx)
	if err != nil {
		return 0, err
	}
	var kept []string
	for _, row := range old {
		if named[row.Digest] {
			kept = append(kept, row.Digest)
		} else if r.mayDrop() {
			dropped, err := r.modules.rows.DropModule(ctx, row)
			if err != nil {
				return n, err
			}
			if dropped {
				n++
			}
		}
	}
	if len(kept) > 0 {
		_, err = r.modules.rows.TouchModules(ctx, kept)
	}
	return n, err
}

// CopyRows writes the modules that have rows to a directory, which is made if there are any, and leaves modules that
// are there alone. It skips those that are damaged, or kept by a later version, whose faults it returns by digest.
func CopyRows(ctx context.Context, rows ModuleRows, to ModuleDir) (damaged map[string]error, err error) {
	list, err := rows.ListModules(ctx, 0)
	if err != nil {
		return nil, err
	}
	damaged = map[string]error{}
	for _, row := range list {
		err := copyRow(ctx, rows, to, row.Digest)
		if isGone(err) || errors.Is(err, sqlite.ErrLaterModule) {
			damaged[row.Digest] = err
		} else if err != nil {
			return damaged, err
		}
	}
	return damaged, nil
}

// copyRow copies one module. One that was dropped meanwhile is no error.
func copyRow(ctx context.Context, rows ModuleRows, to ModuleDir, digest string) error {
	if to.Has(digest) {
		return nil
	}
	data, err := readRow(ctx, rows, digest, sqlite.MaxServerModule)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(string(to), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return atomicfile.CreateBytes(to.path(digest), 0o400, data)
}
