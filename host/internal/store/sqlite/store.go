package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

var _ swarm.Store = (*Store)(nil)

// Options of [Open]. The zero value is usable.
type Options struct {
	// Logger gets what was found at open, and damaged records that a list leaves out;
	// nothing is logged without one.
	Logger *slog.Logger
	// Now dates migrations and measures how long a sync takes; nil means
	// [time.Now].
	Now func() time.Time
	// Weight is a tenant's share of the writer relative to others, positive;
	// nil means that all are equal.
	Weight func(tenant string) float64
	// Storage is a tenant's quota of stored bytes, 0 for none; nil means that none has
	// one. It holds for the records of gateways; what tasks write is checked before.
	Storage func(tenant string) int64
	// OnGroup, if set, is told after each transaction how many changes it made durable and how
	// long it took. It returns at once.
	OnGroup func(changes int, took time.Duration)
	// Keyring, if set, makes the store seal what it keeps with keys from the file
	// "keyring" in the data directory, which is made with the first of them. A
	// database that has been sealed does not open without.
	Keyring *keyring.Options
	// Level is the feature level of the hosts that share the store, which all of them read;
	// nil where one host has it alone.
	Level func() int
	// Begun reports whether the host has read which keys the others have destroyed; nil where no other host does.
	Begun func() bool
}

// Store is a data directory in use. Its methods are safe for concurrent use.
type Store struct {
	path    string
	lock    *lock // nil on a server
	codec   *codec
	writer  *writer
	readers *readers
	keyring *serverKeyring // nil in a directory
	modules *ServerModules // nil in a directory
	secrets *ServerSecrets // nil in a directory
	close   func() error
	chores  chores
	log     *slog.Logger

	// storage may be nil.
	storage func(tenant string) int64
	// begun may be nil.
	begun func() bool

	// gate is held shared by every write from sealing to its end. Who holds it
	// alone knows that no body is on its way.
	gate sync.RWMutex
	// erasing holds the tenants that nothing is written for.
	erasing map[string]bool
	// onErase may be nil.
	onErase func(tenant string)
}

// Open takes the data directory dir into use, making it if it is missing, and
// starts its writer. Another open store on the same directory, in this process
// or any other, makes it fail. The caller closes the store.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s, err := open(ctx, dir, opts)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, addAdvice(err))
	}
	return s, nil
}

func open(ctx context.Context, dir string, opts Options) (_ *Store, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := PrepareDir(dir); err != nil {
		return nil, err
	}
	s := &Store{path: filepath.Join(dir, fileName), erasing: map[string]bool{}, storage: opts.Storage, log: opts.Logger}
	if s.lock, err = takeLock(filepath.Join(dir, lockName)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	unclean := hasLog(s.path)
	if err := createFile(dir, fileName, nil); err != nil {
		return nil, err
	}
	todo, err := s.openParts(ctx, dir, opts)
	if err != nil {
		return nil, err
	}
	if err := s.report(ctx, opts.Logger, unclean); err != nil {
		return nil, err
	}
	s.close = sync.OnceValue(s.release)
	// From here on nothing but Close stops the writer.
	s.writer.start(context.WithoutCancel(ctx))
	s.resume(context.WithoutCancel(ctx), opts.Logger, todo)
	return s, nil
}

// openParts opens the files and returns what an earlier host left to do.
func (s *Store) openParts(ctx context.Context, dir string, opts Options) (todo []chore, err error) {
	if s.codec, err = openCodec(dir, opts.Keyring); err != nil {
		return nil, err
	}
	s.codec.level = opts.Level
	if s.writer, err = openWriter(ctx, s.path, opts); err != nil {
		return nil, err
	}
	if s.readers, err = openReaders(ctx, s.path); err != nil {
		return nil, err
	}
	return s.checkKeys(ctx)
}

func openCodec(dir string, opts *keyring.Options) (*codec, error) {
	if opts == nil {
		return &codec{}, nil
	}
	ring, err := keyring.Open(filepath.Join(dir, keyringName), *opts)
	if err != nil {
		return nil, err
	}
	return &codec{ring: ring}, nil
}

// opener reads what was written to a task, or with an empty task to an
// instance.
func (s *Store) opener(key swarm.TaskKey) opener { return opener{s.codec, placeOf(key)} }

// beginWrite begins a write to a task. The caller calls leave when it is done. A host that has not begun writes
// nothing for a tenant: its key may be destroyed.
func (s *Store) beginWrite(key swarm.TaskKey) (c closer, leave func(), err error) {
	if s.begun != nil && key.Tenant != "" && !s.begun() {
		return closer{}, nil, fmt.Errorf("%w: this host has no part of the tasks yet: ask one that has", swarm.ErrUnavailable)
	}
	return s.beginEarly(key)
}

// beginEarly is [Store.beginWrite] for what the host needs to begin.
func (s *Store) beginEarly(key swarm.TaskKey) (c closer, leave func(), err error) {
	s.gate.RLock()
	defer func() {
		if err != nil {
			s.gate.RUnlock()
		}
	}()
	if s.erasing[key.Tenant] {
		return closer{}, nil, fmt.Errorf("%w: %q", swarm.ErrErasing, key.Tenant)
	}
	c.opener = s.opener(key)
	if s.codec.ring != nil {
		if c.sealer, err = s.codec.ring.Sealer(key.Tenant); err != nil {
			return closer{}, nil, err
		}
	}
	return c, s.gate.RUnlock, nil
}

// Close writes what was accepted before it, waits for that, and gives the
// directory free. A write that comes later answers [ErrClosed], a read fails.
func (s *Store) Close() error { return s.close() }

// release undoes as much of Open as was done.
func (s *Store) release() error {
	var errs []error
	if s.writer != nil {
		s.StopWaiting() // chores end with their writes
	} else if s.keyring != nil {
		s.keyring.interrupt()
	}
	s.chores.stop()
	if s.readers != nil {
		errs = append(errs, s.readers.close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	if s.keyring != nil {
		errs = append(errs, s.keyring.close())
	}
	if s.modules != nil && s.modules.db != nil {
		errs = append(errs, s.modules.db.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return addAdvice(errors.Join(errs...))
}

// Secret implements [swarm.Store].
func (s *Store) Secret(context.Context) ([]byte, error) {
	return bytes.Clone(s.writer.secret), nil
}

// Stats returns how many steps were made durable since Open, and how many
// groups, each one synced transaction, carried them. A duplicate counts as
// neither: it writes nothing.
func (s *Store) Stats() (commits, groups int64) {
	return s.writer.steps.Load(), s.writer.groups.Load()
}
