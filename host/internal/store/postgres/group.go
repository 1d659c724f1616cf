package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Errors of groups. After ErrFenced and ErrLost no group succeeds.
var (
	// ErrFenced means that another process has taken the database over.
	ErrFenced = errors.New("another host has taken the database over")
	// ErrLost means that the server does not have what it has acknowledged.
	ErrLost = errors.New("the server has lost acknowledged writes")
	// ErrRepeat means that a group is not there, and may be written again.
	ErrRepeat = errors.New("the group was not written")
	// ErrInUse means that another process writes to the database.
	ErrInUse = errors.New("the database is in use")
)

// hostTables are what groups need.
const hostTables = `CREATE TABLE IF NOT EXISTS hosts (
	hid   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	seq   BIGINT NOT NULL,
	dead  BOOLEAN NOT NULL,
	pid   INTEGER NOT NULL,
	since TIMESTAMPTZ NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS slots (
	slot INTEGER PRIMARY KEY,
	hid  BIGINT
);
CREATE TABLE IF NOT EXISTS changes (
	name TEXT PRIMARY KEY,
	n    BIGINT NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS day_grants (
	tenant    BYTEA NOT NULL,
	hid       BIGINT NOT NULL,
	day       BIGINT NOT NULL,
	tokens    BIGINT NOT NULL,
	micro_usd BIGINT NOT NULL,
	PRIMARY KEY (tenant, hid)
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS shared_chores (
	tenant BYTEA PRIMARY KEY,
	n      BIGINT GENERATED ALWAYS AS IDENTITY,
	kind   TEXT NOT NULL,
	phase  BIGINT NOT NULL,
	driver BIGINT NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS chore_acks (
	n     BIGINT NOT NULL,
	hid   BIGINT NOT NULL,
	phase BIGINT NOT NULL,
	found BOOLEAN NOT NULL,
	fault TEXT NOT NULL,
	PRIMARY KEY (n, hid)
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS timeline (
	one    BOOLEAN PRIMARY KEY CHECK (one),
	number BIGINT NOT NULL
);`

// Session settings of a connection that writes groups: a process that is stopped in the midst
// of one must not hold its locks, and an acknowledged group must be on the disk.
var writerSettings = map[string]string{
	"idle_in_transaction_session_timeout": "3000",
	"synchronous_commit":                  "on",
}

// host is the process as the writer of groups.
type host struct {
	config *pgconn.Config
	hid    int64
	// shared: other hosts write as well.
	shared bool
	// seq is the number of the newest group that is known to be there.
	seq   int64
	fence *stmt
	// timeline is the highest history of the server that was seen. A server that is promoted
	// raises it.
	timeline int64
	// end is set once no group can succeed.
	end error

	stop    context.Context
	stopped context.CancelFunc
	log     *slog.Logger
}

// OpenWriter makes the connection that writes groups, as a new host, and fences the hosts
// before it. While another has one, it fails with [ErrInUse]. Both do not hold where the
// connector is shared.
func OpenWriter(ctx context.Context, c *Connector) (*Conn, error) {
	config := c.Durable().config
	config.RuntimeParams["application_name"] = "skep"
	conn, err := (&Connector{config: config, numbers: c.numbers}).connect(ctx)
	if err != nil {
		return nil, err
	}
	h := &host{config: config, log: c.Logger, shared: c.Shared, stop: c.stop, stopped: c.stopped}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	err = checkServer(ctx, conn.pg, c.Replicated)
	if err == nil {
		err = conn.takeOver(ctx, h)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	conn.host = h
	return conn, nil
}

// takeOver makes the host's row. A host that shares nothing fences all others. The lock is only a
// courtesy to an operator who starts a second host: what holds is the fence.
func (c *Conn) takeOver(ctx context.Context, h *host) (err error) {
	if err := c.makeTables(ctx); err != nil {
		return err
	}
	if err := c.lock(ctx, h.shared); err != nil {
		return err
	}
	if h.timeline, err = c.checkTimeline(ctx, 0); err != nil {
		return err
	}
	row, err := c.ask(ctx, "INSERT INTO hosts (seq, dead, pid) VALUES (0, false, pg_backend_pid()) RETURNING hid")
	if err != nil {
		return err
	}
	h.hid = row[0]
	h.fence = &stmt{c: c, text: fenceGroup, session: -1}
	if h.shared {
		return nil
	}
	if _, err := c.ask(ctx, "UPDATE hosts SET dead = true WHERE NOT dead AND hid <> "+strconv.FormatInt(h.hid, 10)); err != nil {
		return err
	}
	// What hosts that are dead were granted, and what they did together: the table chores has what is left to do.
	for _, table := range []string{"day_grants", "shared_chores", "chore_acks"} {
		if _, err := c.ask(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	return nil
}

// makeTables makes the tables of hosts. Hosts that start together make them one after the other:
// IF NOT EXISTS alone lets the second fail.
func (c *Conn) makeTables(ctx context.Context) error {
	const lock = "SELECT pg_advisory_xact_lock(hashtext('skep'), hashtext(current_schema()));"
	_, err := c.pg.Exec(ctx, lock+hostTables).ReadAll()
	return err
}

// lockTries and lockPause are how often a lock is tried: the server needs a moment to end the
// session of a host that was killed.
const (
	lockTries = 100
	lockPause = 50 * time.Millisecond
)

// Locks of the session. Their key is of the schema's own table.
const (
	lockAlone  = "SELECT pg_try_advisory_lock('hosts'::regclass::oid::bigint)::int::bigint"
	lockShared = "SELECT pg_try_advisory_lock_shared('hosts'::regclass::oid::bigint)::int::bigint"
)

// lock takes the writer's lock for the session: alone, or with other hosts that share it.
func (c *Conn) lock(ctx context.Context, shared bool) error {
	text, why := lockAlone, "stop it first, name another database or schema, or, to share this one, add [cluster] to the swarm.toml of both"
	if shared {
		text, why = lockShared, "it has no [cluster] in its swarm.toml: stop it and add the table, or name another database or schema"
	}
	for range lockTries {
		free, err := c.ask(ctx, text)
		if err != nil || free[0] != 0 {
			return err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("%w by another host: %s", ErrInUse, why)
}

// HID returns the number of the host, which no other ever has.
func (c *Conn) HID() int64 { return c.host.hid }

// StopWaiting makes groups fail that wait for a server, now and later: for one that is away at once, for an
// answer after [stopLimit]. It may be called while the connection is in use.
func (c *Conn) StopWaiting() { c.host.stopped() }

// BeginGroup begins a group.
func (c *Conn) BeginGroup(ctx context.Context) error {
	h := c.host
	if h.end != nil {
		return h.end
	}
	if c.pg.IsClosed() {
		if err := c.findOutcome(ctx, nil); err != nil && !errors.Is(err, ErrRepeat) {
			return err
		}
	}
	if err := h.fence.prepare(ctx); err != nil {
		return c.blame(err)
	}
	number := func(n int64) []byte { b, _ := encodeNumber(oidInt8, n); return b }
	c.open = true
	c.pending = append(c.pending[:0], &call{text: "BEGIN"}, &call{sd: h.fence.sd, args: [][]byte{number(h.hid), number(h.seq + 1)}})
	return nil
}

// CommitGroup commits a group. When its outcome is not known, it finds out: nil means
// that the group is there, [ErrRepeat] that it is not.
func (c *Conn) CommitGroup(ctx context.Context) error {
	err := c.end(ctx, "COMMIT")
	if err == nil {
		c.host.seq++
		return nil
	}
	c.leaveReadOnly(err)
	if c.pg.IsClosed() || isFence(err) {
		return c.findOutcome(ctx, err)
	}
	return err
}

// leaveReadOnly ends the connection to a server that is not written to any more: the DSN may
// lead to another one, or to the same when it is written to again.
func (c *Conn) leaveReadOnly(err error) {
	if IsReadOnly(err) {
		_ = c.pg.Close(context.Background())
	}
}

// RollbackGroup undoes a group that has failed with cause, and returns what the cause means.
func (c *Conn) RollbackGroup(ctx context.Context, cause error) error {
	c.leaveReadOnly(cause)
	if !c.pg.IsClosed() {
		err := c.end(ctx, "ROLLBACK")
		switch {
		case err != nil, isFence(cause):
		case isConflict(cause):
			return fmt.Errorf("%w: %w", ErrRepeat, cause)
		default:
			return cause
		}
	}
	if c.pg.IsClosed() || isFence(cause) {
		return c.findOutcome(ctx, cause)
	}
	return cause
}

// blame returns ErrRepeat for the error of a connection that is gone.
func (c *Conn) blame(err error) error {
	if c.pg.IsClosed() {
		return fmt.Errorf("%w: %w", ErrRepeat, err)
	}
	return err
}

// divisionByZero is the SQLSTATE of a group that was fenced.
const divisionByZero = "22012"

func isFence(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == divisionByZero
}

// isConflict reports whether a group was undone in favour of another host's: it may be written
// again (https://www.postgresql.org/docs/15/mvcc-serialization-failure-handling.html).
func isConflict(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pgErr.Code == "40P01" || pgErr.Code == "40001")
}

// IsArgumentOfPower reports whether a square root or a power has no value.
func IsArgumentOfPower(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "2201F"
}
