package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"skep/host/internal/store/postgres"
	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
)

// sharedStmts are what a server needs that other hosts write to as well. They are nil elsewhere.
type sharedStmts struct {
	// reserveJIDs reserves numbers of journals that no other host has, and returns the last.
	reserveJIDs *sql.Stmt
	// lockBlob keeps other hosts from using a blob until the group ends.
	lockBlob *sql.Stmt
	// checkSlot fails unless a slot is the host's.
	checkSlot *sql.Stmt
	// raise raises a version with the group, and wakes the other hosts once the group is there.
	raise     *sql.Stmt
	granting  grantStmts
	admitting admissionStmts
	hid       int64
	// used are the slots that the group in hand writes to.
	used map[slot.Slot]bool
}

// raiseVersion raises a version, and wakes the other hosts once that is there.
const raiseVersion = `WITH v AS (INSERT INTO changes AS v VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET n = v.n + 1 RETURNING n)
	SELECT pg_notify('skep', current_schema()) FROM v`

// share prepares the statements of a host that shares a server.
func (t *tables) share(ctx context.Context, stmts preparer, hid int64) error {
	s := &sharedStmts{hid: hid, used: map[slot.Slot]bool{}, granting: grantStmts{asked: map[string]bool{}}, admitting: admissionStmts{admitted: map[string][]*encodedMutation{}}}
	t.shared = s
	// A server whose rows were copied may have journals without a number reserved.
	const highest = "INSERT INTO meta AS m VALUES ('journals', ?) ON CONFLICT (name) DO UPDATE SET value = greatest(m.value, excluded.value)"
	reserved, err := stmts.PrepareContext(ctx, highest)
	if err != nil {
		return err
	}
	if _, err := reserved.ExecContext(ctx, t.lastJID); err != nil {
		return err
	}
	for _, texts := range []map[**sql.Stmt]string{s.granting.texts(), s.admitting.texts()} {
		if err := prepare(ctx, stmts, texts); err != nil {
			return err
		}
	}
	return prepare(ctx, stmts, map[**sql.Stmt]string{
		&s.reserveJIDs: "INSERT INTO meta AS m VALUES ('journals', ?) ON CONFLICT (name) DO UPDATE SET value = m.value + excluded.value RETURNING value",
		&s.lockBlob:    "SELECT bid FROM blobs WHERE bid = ? FOR UPDATE",
		&s.checkSlot:   postgres.CheckSlot,
		&s.raise:       raiseVersion,
		// What other hosts change at the same time is locked where it is read.
		&t.findSpace:              findSpace + " FOR UPDATE",
		&t.blobbing.find:          findBlob + " FOR SHARE",
		&t.gatewayState.findRealm: findRealm + " FOR UPDATE",
	})
}

// taskChange is a change of a task.
type taskChange interface{ taskKey() swarm.TaskKey }

func (e *encodedMutation) taskKey() swarm.TaskKey { return e.key }

func (j *journalWrite) taskKey() swarm.TaskKey { return j.key }

// slotOf returns the slot of a task.
func slotOf(k swarm.TaskKey) slot.Slot { return slot.Of(k.Tenant, k.Swarm, k.Instance, k.Task) }

// use notes that the group writes to a task.
func (s *sharedStmts) use(c change) {
	if one, ok := c.(taskChange); ok && s != nil {
		s.used[slotOf(one.taskKey())] = true
	}
}

// raiseVersion makes the other hosts read again what has a name, once the group is there.
func (s *sharedStmts) raiseVersion(ctx context.Context, name string) error {
	if s == nil {
		return nil
	}
	_, err := s.raise.ExecContext(ctx, name)
	return err
}

// check makes the group fail unless all slots that it writes to are the host's. A slot is taken
// from a host that is fenced before, or that has laid its work down: this finds what a host has
// not laid down.
func (s *sharedStmts) check(ctx context.Context) error {
	if s == nil {
		return nil
	}
	defer clear(s.used)
	for _, one := range slices.Sorted(maps.Keys(s.used)) {
		if _, err := s.checkSlot.ExecContext(ctx, int64(one), s.hid); err != nil {
			return err
		}
	}
	return nil
}

// forgetMemory forgets what the writer remembers of tasks, which other hosts may have changed.
type forgetMemory struct{}

func (forgetMemory) bytes() int { return 0 }

func (forgetMemory) apply(_ context.Context, t *tables) (steps int, err error) {
	t.forgetCaches()
	return 0, nil
}

// Claim lists the running tasks in slots that have become this host's. What other hosts have
// written to them is read from then on.
func (s *Store) Claim(ctx context.Context, slots []slot.Slot) ([]swarm.RunningTask, error) {
	if err := s.writer.submit(ctx, forgetMemory{}); err != nil {
		return nil, fmt.Errorf("claim slots: %w", err)
	}
	all, err := s.RunningTasks(ctx)
	return slices.DeleteFunc(all, func(one swarm.RunningTask) bool { return !slices.Contains(slots, slotOf(one.TaskKey)) }), err
}

// Undone lists the tenants whose erasure or resealing was left undone.
func (s *Store) Undone(ctx context.Context) (erase, reseal []string, err error) {
	list, err := readRows(ctx, s.readers.queryText("SELECT kind, tenant FROM chores ORDER BY kind, tenant"), scanChore)
	for _, c := range list {
		if c.kind == choreErase {
			erase = append(erase, c.tenant)
		} else {
			reseal = append(reseal, c.tenant)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list what was left undone: %w", addAdvice(err))
	}
	return erase, reseal, nil
}

// isShared reports whether other hosts share the server.
func (s *Store) isShared() bool { return s.writer.tables.shared != nil }

// HID returns the number of the host on a server, which no other ever has.
func (s *Store) HID() int64 { return s.writer.epoch }

// Refresh reads again what other hosts may have changed under this one: the keys, and what the writer
// remembers. What is on its way is written before.
func (s *Store) Refresh(ctx context.Context) error {
	if err := s.writer.submit(ctx, forgetMemory{}); err != nil {
		return fmt.Errorf("forget what other hosts have changed: %w", err)
	}
	if s.codec.ring == nil {
		return nil
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	return s.codec.ring.Reload()
}

// migrateShared brings the schema up to date beside other hosts, of which one at a time does it.
func (w *writer) migrateShared(ctx context.Context) (err error) {
	const unlock = "SELECT pg_advisory_unlock(hashtext('skep tables'), hashtext(current_schema()))"
	if _, err := w.conn.ExecContext(ctx, "SELECT pg_advisory_lock(hashtext('skep tables'), hashtext(current_schema()))"); err != nil {
		return err
	}
	defer func() {
		_, freed := w.conn.ExecContext(ctx, unlock)
		err = errors.Join(err, freed)
	}()
	if err := w.migrateAlone(ctx); err != nil {
		return err
	}
	return addToServer(ctx, w.conn, serverAdditions)
}

// migrateAlone is [migrateServer] that refuses to change tables while other hosts run.
func (w *writer) migrateAlone(ctx context.Context) error {
	err := checkServerVersion(ctx, w.conn)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist): // the others wait for the tables
		return migrateServer(ctx, w.conn, serverMigrations)
	}
	var free bool
	if scan := w.conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock('hosts'::regclass::oid::bigint)").Scan(&free); scan != nil {
		return scan
	}
	if !free {
		return fmt.Errorf("%w; other hosts share the server%s: stop all of them first, and start one of this version", err, w.describeHosts(ctx))
	}
	err = migrateServer(ctx, w.conn, serverMigrations)
	_, freed := w.conn.ExecContext(ctx, "SELECT pg_advisory_unlock('hosts'::regclass::oid::bigint)")
	return errors.Join(err, freed)
}

// describeHosts returns addresses and versions of the hosts that are alive, in brackets, as an addition to a message.
// It is empty for none, and for a server without the tables of hosts.
func (w *writer) describeHosts(ctx context.Context) (text string) {
	const query = `SELECT coalesce(string_agg(b.address || ' of version ' || coalesce(r.version, 'unknown'), ', ' ORDER BY h.hid), '')
		FROM hosts h JOIN beats b USING (hid) LEFT JOIN roster r USING (hid) WHERE NOT h.dead`
	if err := w.conn.QueryRowContext(ctx, query).Scan(&text); err != nil || text == "" {
		return ""
	}
	return " (" + text + ")"
}

// asFence gives the error of a slot that another host has the meaning of a fence: what this host
// knows of its tasks is not true.
func asFence(err error) error {
	if postgres.IsArgumentOfPower(err) {
		return fmt.Errorf("%w: it was about to write to a task of another host", swarm.ErrFenced)
	}
	return err
}
