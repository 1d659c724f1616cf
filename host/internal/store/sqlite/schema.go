package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// applicationID is "skep" in the file's header: what file(1) shows and what
// keeps us from writing into somebody else's database.
const applicationID = 0x736b6570

// migrations lead from an empty file to the newest schema, one version each.
// What was released is never edited.
var migrations = []string{
	// Names are blobs: they compare byte by byte whatever they hold. The age
	// index serves Tasks, the partial index Claim, which thereby costs what is
	// running and not what was ever run.
	`CREATE TABLE meta (
		name  TEXT PRIMARY KEY,
		value ANY NOT NULL
	) STRICT, WITHOUT ROWID;
	CREATE TABLE instances (
		iid      INTEGER PRIMARY KEY,
		tenant   BLOB NOT NULL,
		swarm    BLOB NOT NULL,
		instance BLOB NOT NULL,
		UNIQUE (tenant, swarm, instance)
	) STRICT;
	CREATE TABLE tasks (
		tid     INTEGER PRIMARY KEY,
		iid     INTEGER NOT NULL,
		task    BLOB NOT NULL,
		state   TEXT NOT NULL,
		created INTEGER NOT NULL,
		body    BLOB NOT NULL,
		UNIQUE (iid, task)
	) STRICT;
	CREATE INDEX tasks_by_age ON tasks (iid, created);
	CREATE INDEX tasks_running ON tasks (tid) WHERE state = 'running';
	CREATE TABLE queue (
		id    INTEGER PRIMARY KEY, -- tid, row
		stash INTEGER NOT NULL,
		body  BLOB NOT NULL
	) STRICT;
	CREATE TABLE events (
		id   INTEGER PRIMARY KEY, -- tid, seq
		body BLOB NOT NULL
	) STRICT;
	CREATE TABLE agents (
		aid   INTEGER PRIMARY KEY,
		tid   INTEGER NOT NULL,
		agent BLOB NOT NULL,
		state BLOB,
		UNIQUE (tid, agent)
	) STRICT;
	CREATE TABLE history (
		id   INTEGER PRIMARY KEY, -- aid, seq
		body BLOB NOT NULL
	) STRICT;
	CREATE TABLE submissions (
		iid     INTEGER NOT NULL,
		door    BLOB NOT NULL,
		key     BLOB NOT NULL,
		digest  BLOB,
		task    BLOB NOT NULL,
		row     INTEGER NOT NULL,
		cursor  INTEGER NOT NULL,
		expires INTEGER NOT NULL,
		answer  INTEGER NOT NULL,
		PRIMARY KEY (iid, door, key)
	) STRICT, WITHOUT ROWID;
	CREATE INDEX submissions_done ON submissions (expires) WHERE answer > 0;`,
}

// identify refuses a file that is not ours before anything is written to it.
func identify(ctx context.Context, c *sql.Conn) error {
	var id, objects int64
	if err := c.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if err := c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&objects); err != nil {
		return err
	}
	if id == applicationID || id == 0 && objects == 0 {
		return nil
	}
	return fmt.Errorf("%w: it belongs to another program (application id %#x): choose another data directory", errForeign, id)
}

// migrate brings the schema to the version that steps lead to.
func migrate(ctx context.Context, c *sql.Conn, steps []string, now time.Time) error {
	version, err := schemaVersion(ctx, c)
	if err != nil {
		return err
	}
	if version > len(steps) {
		return fmt.Errorf("its schema is version %d and this skep knows up to %d: use the newer skep that wrote it, or restore a backup made before the upgrade", version, len(steps))
	}
	for ; version < len(steps); version++ {
		if err := migrateTo(ctx, c, version+1, steps[version], now); err != nil {
			return fmt.Errorf("migrate to schema version %d: %w", version+1, err)
		}
	}
	return nil
}

// schemaVersion returns 0 for an empty file.
func schemaVersion(ctx context.Context, c *sql.Conn) (version int, err error) {
	var tables int
	err = c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'versions'").Scan(&tables)
	if err != nil || tables == 0 {
		return 0, err
	}
	err = c.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM versions").Scan(&version)
	return version, err
}

// migrateTo takes one step, whole or not at all. The header's application id
// is part of the transaction, so no crash leaves a file that is half ours.
func migrateTo(ctx context.Context, c *sql.Conn, version int, step string, now time.Time) error {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit this does nothing
	for _, q := range []string{
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		"CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY, migrated INTEGER NOT NULL) STRICT",
		step,
	} {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO versions VALUES (?, ?)", version, stamp(now)); err != nil {
		return err
	}
	return tx.Commit()
}
