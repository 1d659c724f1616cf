package definition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// newSharedModules is the modules of a host with a data directory of its own, on a server.
func newSharedModules(t *testing.T, dsn string) *moduleStore {
	t.Helper()
	store, err := sqlite.OpenServer(t.Context(), sqlite.Server{DSN: dsn, Shared: true}, sqlite.Options{Keyring: &keyring.Options{KEK: bytes.Repeat([]byte{7}, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, store)
	s := newTestModules(t)
	s.rows = store.ServerModules()
	return s
}

// mustKeepRows keeps files and rows of modules.
func mustKeepRows(t *testing.T, s *moduleStore, texts ...string) {
	t.Helper()
	mustKeep(t, s, texts...)
	var digests []string
	for _, text := range texts {
		digests = append(digests, digestOf([]byte(text)))
	}
	if err := s.keepRows(t.Context(), digests); err != nil {
		t.Fatal(err)
	}
}

// rowsOf lists which of some modules have rows.
func rowsOf(t *testing.T, s *moduleStore, texts ...string) (have []string) {
	t.Helper()
	list, err := s.rows.ListModules(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if slices.ContainsFunc(list, func(row sqlite.ServerModule) bool { return row.Digest == digestOf([]byte(text)) }) {
			have = append(have, text)
		}
	}
	return have
}

// changeRows runs a statement that returns a row for each that it changes.
func changeRows(t *testing.T, dsn, text string) {
	t.Helper()
	if n := pgtest.Number(t, dsn, "WITH changed AS ("+text+" RETURNING 1) SELECT count(*) FROM changed")(); n == 0 {
		t.Errorf("%s changes nothing", text)
	}
}

const ageRows = "UPDATE modules SET at = at - 7200000"

// TestModuleRow: a module whose file this host lacks, or has damaged, comes from its row, and has a sound file from then
// on.
func TestModuleRow(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := newSharedModules(t, dsn), newSharedModules(t, dsn)
	mustKeepRows(t, one, "a module")
	digest := digestOf([]byte("a module"))
	read := func(when string) {
		t.Helper()
		if data, err := other.read(t.Context(), digest); string(data) != "a module" || err != nil {
			t.Errorf("%s: %q, %v", when, data, err)
		}
		if data, err := other.dir.Read(digest, other.caps); string(data) != "a module" || err != nil {
			t.Errorf("%s: the file: %q, %v", when, data, err)
		}
	}
	read("without a file")
	if err := errors.Join(os.Remove(other.dir.path(digest)), os.WriteFile(other.dir.path(digest), []byte("damaged!"), 0o400)); err != nil {
		t.Fatal(err)
	}
	read("with a damaged file")
	if err := errors.Join(os.Remove(other.dir.path(digest)), os.Symlink(other.dir.path(digest), other.dir.path(digest))); err != nil {
		t.Fatal(err)
	}
	read("with a file that cannot be read")
	if _, err := other.read(t.Context(), digestOf([]byte("none"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a module that no host has kept: %v", err)
	}
	backup := ModuleDir(t.TempDir())
	if damaged, err := CopyRows(t.Context(), one.rows, backup); len(damaged) > 0 || err != nil {
		t.Error(damaged, err)
	}
	if data, err := backup.Read(digest, other.caps); string(data) != "a module" || err != nil {
		t.Errorf("the copy: %q, %v", data, err)
	}
}

// TestModuleRowRefused: a row that is larger than the caps of this host, or damaged, is gone for good. It makes no file.
// A host that has the file makes a damaged one anew.
func TestModuleRowRefused(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := newSharedModules(t, dsn), newSharedModules(t, dsn)
	mustKeepRows(t, one, "a module")
	digest := digestOf([]byte("a module"))
	refused := func(when string, is func(error) bool) {
		t.Helper()
		if _, err := other.read(t.Context(), digest); !is(err) || !isGone(err) {
			t.Errorf("%s: %v", when, err)
		}
		if other.dir.Has(digest) {
			t.Errorf("%s: it has a file", when)
		}
	}
	whole := other.caps.Size
	other.caps.Size = int64(len("a module") - 1)
	refused("too large", func(err error) bool {
		var e *turn.LoadError
		return errors.As(err, &e) && e.Step == turn.StepAdmit
	})
	other.caps.Size = whole
	isDamaged := func(err error) bool { return errors.Is(err, errDamaged) && strings.Contains(err.Error(), digest) }
	changeRows(t, dsn, `UPDATE modules SET body = '\x01616e6f74686572'`)
	refused("another module", isDamaged)
	mustKeepRows(t, one, "a module")
	if data, err := other.read(t.Context(), digest); string(data) != "a module" || err != nil {
		t.Errorf("made anew: %q, %v", data, err)
	}
	changeRows(t, dsn, `UPDATE modules SET body = '\x7f'`)
	if err := os.Remove(other.dir.path(digest)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.read(t.Context(), digest); !errors.Is(err, sqlite.ErrLaterModule) || isGone(err) {
		t.Errorf("of a later version: %v", err)
	}
	if damaged, err := CopyRows(t.Context(), one.rows, ModuleDir(t.TempDir())); !errors.Is(damaged[digest], sqlite.ErrLaterModule) || err != nil {
		t.Errorf("copied: %v, %v", damaged, err)
	}
}

// TestModuleUnread: a module whose file cannot be read now, and whose row is missing or damaged, is not gone: the file may
// be readable later.
func TestModuleUnread(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := newSharedModules(t, dsn), newSharedModules(t, dsn)
	digest := digestOf([]byte("a module"))
	path := other.dir.path(digest)
	if err := os.Symlink(path, path); err != nil {
		t.Fatal(err)
	}
	wantUnread := func(when string) {
		t.Helper()
		var e *turn.LoadError
		if _, err := other.read(t.Context(), digest); !errors.As(err, &e) || e.Step != turn.StepRead || isGone(err) {
			t.Errorf("%s: %v", when, err)
		}
	}
	wantUnread("without a row")
	mustKeepRows(t, one, "a module")
	changeRows(t, dsn, `UPDATE modules SET body = '\x01616e6f74686572'`)
	wantUnread("with a damaged row")
}

// fetchedRows counts reads of rows, and fails them while the server is away.
type fetchedRows struct {
	ModuleRows
	reads atomic.Int64
	away  bool
}

func (r *fetchedRows) ReadModule(ctx context.Context, digest string, maxSize int64) ([]byte, error) {
	r.reads.Add(1)
	if r.away {
		return nil, fmt.Errorf("read module %s: %w", digest, swarm.ErrUnavailable)
	}
	return r.ModuleRows.ReadModule(ctx, digest, maxSize)
}

func (r *fetchedRows) TouchModules(ctx context.Context, digests []string) (map[string]bool, error) {
	if r.away {
		return nil, swarm.ErrUnavailable
	}
	return r.ModuleRows.TouchModules(ctx, digests)
}

// slowRows have a module that does not arrive in time.
type slowRows struct {
	ModuleRows
	slow string
}

func (r *slowRows) AddModule(ctx context.Context, digest string, data []byte) error {
	if digest == r.slow {
		return fmt.Errorf("keep module %s: %w", digest, swarm.ErrUnavailable)
	}
	return r.ModuleRows.AddModule(ctx, digest, data)
}

// TestRowsBesideSlow: a large module that does not arrive in time holds up the row of no smaller one.
func TestRowsBesideSlow(t *testing.T) {
	t.Parallel()
	s := newSharedModules(t, pgtest.Schema(t))
	large := strings.Repeat("large ", 10)
	texts := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	mustKeep(t, s, append(texts, large)...)
	s.rows = &slowRows{s.rows, digestOf([]byte(large))}
	s.keepFiles(t.Context())
	if got := rowsOf(t, s, texts...); len(got) != len(texts) {
		t.Errorf("rows of %v", got)
	}
}

// TestModuleRowAway: a module is not given up while its row cannot be read.
func TestModuleRowAway(t *testing.T) {
	t.Parallel()
	s := newTestModules(t)
	s.rows = &fetchedRows{away: true}
	if _, err := s.read(t.Context(), digestOf([]byte("a module"))); !errors.Is(err, swarm.ErrUnavailable) || isGone(err) {
		t.Errorf("read without a server: %v", err)
	}
}

// TestModuleFetchedOnce: turns that wake together fetch a missing module once.
func TestModuleFetchedOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := newSharedModules(t, dsn), newSharedModules(t, dsn)
	mustKeepRows(t, one, "a module")
	rows := &fetchedRows{ModuleRows: other.rows}
	other.rows = rows
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := other.read(t.Context(), digestOf([]byte("a module"))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := rows.reads.Load(); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
}

// TestModuleWithoutFile: a module that comes from its row runs also where no file can be made of it.
func TestModuleWithoutFile(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := newSharedModules(t, dsn), newSharedModules(t, dsn)
	mustKeepRows(t, one, "a module")
	if err := os.Remove(string(other.dir)); err != nil {
		t.Fatal(err)
	}
	if data, err := other.read(t.Context(), digestOf([]byte("a module"))); string(data) != "a module" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// TestLoadKeepsRows: before a host takes up tasks the modules of its configuration have rows, and those of which an
// earlier version has left files. While the server is away a reload changes nothing, and may be repeated.
func TestLoadKeepsRows(t *testing.T) {
	t.Parallel()
	rows := &fetchedRows{ModuleRows: newSharedModules(t, pgtest.Schema(t)).rows}
	h, write := newTestLibrary(t, func(cfg *config.Config, o *LoaderOptions, _ func() (*config.Config, error)) *config.Config {
		dir := DataModules(o.DataDir)
		if err := errors.Join(os.Mkdir(string(dir), 0o700), os.WriteFile(dir.path(digestOf([]byte("old"))), []byte("old"), 0o400)); err != nil {
			t.Fatal(err)
		}
		o.Rows = rows
		return cfg
	})
	s := h.opt.Loader.modules
	if got := rowsOf(t, s, "old", string(guests.Bytes(t, "plugins/script"))); len(got) != 2 {
		t.Errorf("%d of 2 modules have rows", len(got))
	}
	rows.away = true
	write(strings.Replace(sweptSwarm, `description = "`, `description = "new `, 1))
	before := h.InForce(swarm.DefaultTenant).Digest
	var refusal *swarm.Refusal
	if _, err := h.Reload(t.Context()); !errors.Is(err, swarm.ErrUnavailable) || errors.As(err, &refusal) || h.InForce(swarm.DefaultTenant).Digest != before {
		t.Errorf("reloaded without a server: %v", err)
	}
}

// TestLoadMendsFile: a module whose file is damaged at its length has a sound file and a row after it was loaded.
func TestLoadMendsFile(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	rows := newSharedModules(t, dsn).rows
	h, _ := newTestLibrary(t, func(cfg *config.Config, o *LoaderOptions, _ func() (*config.Config, error)) *config.Config {
		o.Rows = rows
		return cfg
	})
	s, script := h.opt.Loader.modules, guests.Bytes(t, "plugins/script")
	path := s.dir.path(digestOf(script))
	if err := errors.Join(os.Remove(path), os.WriteFile(path, make([]byte, len(script)), 0o400)); err != nil {
		t.Fatal(err)
	}
	changeRows(t, dsn, "DELETE FROM modules")
	if _, err := h.opt.Loader.Load(t.Context(), h.Config()); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, s, string(script)); len(got) != 1 {
		t.Error("it has no row")
	}
	if _, err := s.dir.Read(digestOf(script), s.caps); err != nil {
		t.Error(err)
	}
}

// newTestRetention is the retention of a host that prunes nothing and drops rows.
func newTestRetention(s *moduleStore, named func(context.Context) (map[string]bool, error)) *Retention {
	return &Retention{
		modules: s, named: named, mayDrop: func() bool { return true }, log: slog.New(slog.DiscardHandler),
		prune: func(context.Context, time.Time, time.Time) (swarm.Pruned, error) { return swarm.Pruned{}, nil },
	}
}

// TestRowsOfFiles: each file, also one of a version without rows, and each module in use has a row after a round, though
// nothing can be pruned and what names modules cannot be read.
func TestRowsOfFiles(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	s := newSharedModules(t, dsn)
	mustKeep(t, s, "used", "file")
	s.used = map[string]bool{digestOf([]byte("used")): true}
	r := newTestRetention(s, func(context.Context) (map[string]bool, error) { return nil, errors.New("damaged") })
	r.prune = func(context.Context, time.Time, time.Time) (swarm.Pruned, error) {
		return swarm.Pruned{}, errors.New("slow")
	}
	r.work(t.Context(), time.Now())
	if got := rowsOf(t, s, "used", "file"); len(got) != 2 {
		t.Errorf("rows of %v", got)
	}
	changeRows(t, dsn, ageRows)
	r.work(t.Context(), time.Now())
	if n := pgtest.Number(t, dsn, "SELECT count(*) FROM modules WHERE at > (extract(epoch FROM now()) - 3600) * 1000")(); n != 2 {
		t.Errorf("%d rows are young", n)
	}
}

// TestRowsDropped: an old row that no host has in use and nothing names goes, unless hosts of another version run or what
// names modules cannot be read. One that is named is young again, so that other hosts need not read the names.
func TestRowsDropped(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	s, other := newSharedModules(t, dsn), newSharedModules(t, dsn)
	mustKeep(t, s, "used")
	mustKeepRows(t, other, "named", "old")
	reads, alike, unread := 0, false, error(nil)
	r := newTestRetention(s, func(context.Context) (map[string]bool, error) {
		reads++
		return map[string]bool{digestOf([]byte("named")): true}, unread
	})
	r.mayDrop = func() bool { return alike }
	now := time.Now()
	work := func(when string, wantReads int, want ...string) {
		t.Helper()
		reads, now = 0, now.Add(rowAge)
		r.work(t.Context(), now)
		if got := rowsOf(t, s, "used", "named", "old"); !slices.Equal(got, want) || reads != wantReads {
			t.Errorf("%s: rows of %v, want %v; what names modules was read %d times, want %d", when, got, want, reads, wantReads)
		}
	}
	r.swept = true
	work("young rows", 0, "used", "named", "old")
	changeRows(t, dsn, ageRows)
	work("another version", 0, "used", "named", "old")
	alike, unread = true, errors.New("damaged")
	work("unread names", 1, "used", "named", "old")
	if r.work(t.Context(), now.Add(rowAge/2)); reads != 1 {
		t.Errorf("names that cannot be read were read %d times in an hour", reads)
	}
	unread = nil
	work("old", 1, "used", "named")
	work("touched", 0, "used", "named")
}
