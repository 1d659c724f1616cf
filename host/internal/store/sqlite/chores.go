package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"skep/host/internal/store/keyring"
)

// Kinds of chore.
const (
	// choreErase removes a tenant.
	choreErase = "erase"
	// choreReseal seals all that a tenant keeps with its newest key.
	choreReseal = "reseal"
)

// chore is work on a tenant that takes many groups. It is noted in the file
// before it begins and until it is done, so a kill does not end it.
type chore struct{ kind, tenant string }

// chores runs what an earlier host left undone, beside normal work.
type chores struct {
	// mu lets one chore run at a time.
	mu      sync.Mutex
	cancel  context.CancelFunc // nil when nothing was left
	stopped sync.WaitGroup
}

func (c *chores) stop() {
	if c.cancel != nil {
		c.cancel()
		c.stopped.Wait()
	}
}

// resume takes up chores that were left undone.
func (s *Store) resume(ctx context.Context, lg *slog.Logger, todo []chore) {
	if len(todo) == 0 {
		return
	}
	for _, c := range todo {
		if c.kind == choreErase {
			s.erasing[c.tenant] = true
		}
	}
	ctx, s.chores.cancel = context.WithCancel(ctx)
	s.chores.stopped.Go(func() {
		for pause := minChorePause; ; pause = min(2*pause, maxChorePause) {
			if todo = slices.DeleteFunc(todo, func(c chore) bool { return s.finish(ctx, lg, c) }); len(todo) == 0 {
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
	})
}

// Pauses before what failed is tried again. A tenant waits for its erasure.
const (
	minChorePause = 50 * time.Millisecond
	maxChorePause = time.Minute
)

// finish does a chore of an earlier host and reports whether it is done.
func (s *Store) finish(ctx context.Context, lg *slog.Logger, c chore) bool {
	lg.InfoContext(ctx, "store goes on with what was cut short", "chore", c.kind, "tenant", c.tenant)
	err := s.run(ctx, c)
	if err != nil && ctx.Err() == nil {
		lg.ErrorContext(ctx, "store cannot finish what was cut short, and tries again", "chore", c.kind, "tenant", c.tenant, "err", err)
	}
	return err == nil
}

// run does a chore, unless it is not noted any more: who was first has done it, and its
// tenant may have begun anew.
func (s *Store) run(ctx context.Context, c chore) error {
	s.chores.mu.Lock()
	defer s.chores.mu.Unlock()
	var noted bool
	err := s.readers.queryText("SELECT EXISTS (SELECT 1 FROM chores WHERE kind = ? AND tenant = ?)", c.kind, []byte(c.tenant)).first(ctx, &noted)
	if err != nil || !noted {
		return err
	}
	if c.kind == choreErase {
		return s.erase(ctx, c.tenant)
	}
	return s.reseal(ctx, c.tenant)
}

// choreNote is a change that writes down a chore.
type choreNote struct {
	chore
}

func (n choreNote) bytes() int { return len(n.tenant) }

func (n choreNote) apply(ctx context.Context, t *tables) (steps int, err error) {
	_, err = t.reaping.addChore.ExecContext(ctx, n.kind, []byte(n.tenant))
	return 0, err
}

// namedKey is a key that bodies in the file may be sealed with.
type namedKey struct {
	id     keyring.ID
	tenant string
}

// checkKeys makes sure that what is in the file can be read, and returns what
// there is to do. Nothing writes the file yet.
func (s *Store) checkKeys(ctx context.Context) ([]chore, error) {
	keys, err := s.namedKeys(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.haveKeys(keys); err != nil {
		return nil, err
	}
	if err := s.noteSealing(ctx); err != nil {
		return nil, err
	}
	for _, k := range keys {
		if err := s.noteKey(ctx, k); err != nil {
			return nil, err
		}
	}
	rows, err := s.writer.conn.QueryContext(ctx, "SELECT kind, tenant FROM chores ORDER BY kind, tenant")
	return collect(rows, err, scanChore)
}

func scanChore(rows *sql.Rows) (c chore, err error) {
	var tenant []byte
	err = rows.Scan(&c.kind, &tenant)
	c.tenant = string(tenant)
	return c, err
}

func (s *Store) namedKeys(ctx context.Context) ([]namedKey, error) {
	rows, err := s.writer.conn.QueryContext(ctx, "SELECT id, tenant FROM keys")
	return collect(rows, err, func(rows *sql.Rows) (k namedKey, err error) {
		var tenant []byte
		err = rows.Scan(&k.id, &tenant)
		k.tenant = string(tenant)
		return k, err
	})
}

// haveKeys refuses a file whose keys are not there, and names what is lost
// without them.
func (s *Store) haveKeys(keys []namedKey) error {
	if len(keys) == 0 {
		return nil
	}
	ring := s.codec.ring
	if ring == nil {
		return fmt.Errorf("it is sealed: the data of %s can only be read with a keyring", tenants(keys))
	}
	if !ring.Exists() {
		return fmt.Errorf("keyring %s is missing: without it all messages, histories, states and records of %s are lost. Put the copy of the keyring back that belongs to this database, or begin with an empty data directory", ring.Path(), tenants(keys))
	}
	missing := slices.DeleteFunc(slices.Clone(keys), func(k namedKey) bool { return ring.State(k.id) != keyring.Unknown })
	if len(missing) > 0 {
		return fmt.Errorf("keyring %s does not hold the keys of %s: it is older than this database or belongs to another. Put the keyring back that was last used with this database", ring.Path(), tenants(missing))
	}
	return nil
}

// tenants lists whose keys these are, the first few by name.
func tenants(keys []namedKey) string {
	var names []string
	for _, k := range keys {
		names = append(names, fmt.Sprintf("%q", k.tenant))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if n := len(names) - 10; n > 0 {
		names = append(names[:10], fmt.Sprintf("%d more", n))
	}
	return "tenant " + strings.Join(names, ", ")
}

// noteSealing makes a chore of all that was written before there was a keyring.
func (s *Store) noteSealing(ctx context.Context) error {
	if s.codec.ring == nil {
		_, err := s.writer.conn.ExecContext(ctx, "DELETE FROM meta WHERE name = 'sealed'")
		return err
	}
	tx, err := s.writer.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit this does nothing
	r, err := tx.ExecContext(ctx, "INSERT INTO meta VALUES ('sealed', 1) ON CONFLICT DO NOTHING")
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); n == 0 || err != nil {
		return err
	}
	var kept []string
	for _, t := range tenantTables {
		kept = append(kept, "SELECT tenant FROM "+t.name)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO chores SELECT 'reseal', tenant FROM ("+strings.Join(kept, " UNION ")+
		") AS kept WHERE length(tenant) > 0 ON CONFLICT DO NOTHING") // the operator's definitions have no tenant
	if err != nil {
		return err
	}
	return tx.Commit()
}

// noteKey makes a chore of a key that should not be named any more. One that was
// destroyed is named by a backup from before its tenant was erased.
func (s *Store) noteKey(ctx context.Context, k namedKey) error {
	kind := ""
	switch s.codec.ring.State(k.id) {
	case keyring.Destroyed:
		kind = choreErase
	case keyring.Retired:
		kind = choreReseal
	default:
		return nil
	}
	text := "INSERT INTO chores SELECT ?, tenant FROM keys WHERE id = ?"
	if s.isShared() { // another host may be about to end the same: then the key is named no more
		text += " FOR SHARE"
	}
	_, err := s.writer.conn.ExecContext(ctx, text+" ON CONFLICT DO NOTHING", kind, int64(k.id))
	return err
}

// DropRetired destroys the keys that were retired before a time and that the
// database does not name any more, and returns how many. Backups that name them
// become unreadable.
func (s *Store) DropRetired(ctx context.Context, before time.Time) (n int, err error) {
	if s.codec.ring == nil {
		return 0, nil
	}
	s.chores.mu.Lock()
	defer s.chores.mu.Unlock()
	used, err := s.usedKeys(ctx)
	if err != nil {
		return 0, fmt.Errorf("drop retired keys: %w", addAdvice(err))
	}
	retired := slices.DeleteFunc(s.codec.ring.Retired(before), func(id keyring.ID) bool { return used[id] })
	return s.codec.ring.Drop(retired...)
}

// Keys returns the keyring, nil where nothing is sealed, and the keys that the
// database names.
func (r *Reader) Keys(ctx context.Context) (*keyring.Ring, map[keyring.ID]bool, error) {
	used, err := r.store.usedKeys(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list keys: %w", addAdvice(err))
	}
	return r.store.codec.ring, used, nil
}

// usedKeys are those that the database names.
func (s *Store) usedKeys(ctx context.Context) (map[keyring.ID]bool, error) {
	list, err := readRows(ctx, s.readers.queryText("SELECT id FROM keys"), func(rows *sql.Rows) (id keyring.ID, err error) {
		err = rows.Scan(&id)
		return id, err
	})
	used := make(map[keyring.ID]bool, len(list))
	for _, id := range list {
		used[id] = true
	}
	return used, err
}
