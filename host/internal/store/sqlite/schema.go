package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// applicationID is "skep" in the file's header: what file(1) shows and what
// keeps us from writing into another program's database.
const applicationID = 0x736b6570

// migrations lead from an empty file to the newest schema, one version each.
// What was released is never edited.
var migrations = []string{
	// Names are blobs: they compare byte by byte whatever they hold. The age
	// index serves Tasks, the partial index RunningTasks, which thereby costs what is
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

	// A task's oldest is when the first of its turns ended that has a record. A
	// task that is to be deleted has its instance's number negated, which takes
	// it out of reach at once; see prune.go. A turn's jid leads to what was
	// journaled of it before it ended. What spaces and tenants count is kept by
	// the writer. Digests become bodies, as they are sealed now.
	`ALTER TABLE tasks ADD COLUMN ended INTEGER;
	ALTER TABLE tasks ADD COLUMN oldest INTEGER;
	UPDATE tasks SET ended = unixepoch() * 1000000000 WHERE state NOT IN ('running', 'paused');
	CREATE INDEX tasks_ended ON tasks (ended) WHERE ended IS NOT NULL;
	CREATE INDEX tasks_recorded ON tasks (oldest) WHERE ended IS NOT NULL AND oldest IS NOT NULL;
	UPDATE submissions SET digest = CAST(x'01' || digest AS BLOB) WHERE digest IS NOT NULL;
	CREATE TABLE turns (
		id     INTEGER PRIMARY KEY, -- tid, n
		at     INTEGER,
		jid    INTEGER,
		header BLOB NOT NULL,
		finish BLOB,
		input  BLOB NOT NULL
	) STRICT;
	CREATE TABLE journal (
		id   INTEGER PRIMARY KEY, -- jid, number of the last entry in it
		body BLOB NOT NULL
	) STRICT;
	CREATE TABLE spaces (
		sid   INTEGER PRIMARY KEY,
		iid   INTEGER NOT NULL,
		kind  TEXT NOT NULL,
		tid   INTEGER NOT NULL,
		agent BLOB NOT NULL,
		keys  INTEGER NOT NULL,
		bytes INTEGER NOT NULL,
		UNIQUE (iid, kind, tid, agent)
	) STRICT;
	CREATE TABLE kv (
		sid   INTEGER NOT NULL,
		name  BLOB NOT NULL,
		size  INTEGER NOT NULL,
		value BLOB NOT NULL,
		PRIMARY KEY (sid, name)
	) STRICT, WITHOUT ROWID;
	CREATE TABLE keys (
		tenant BLOB NOT NULL,
		id     INTEGER NOT NULL,
		PRIMARY KEY (tenant, id)
	) STRICT, WITHOUT ROWID;
	CREATE TABLE chores (
		kind   TEXT NOT NULL,
		tenant BLOB NOT NULL,
		PRIMARY KEY (kind, tenant)
	) STRICT, WITHOUT ROWID;
	CREATE TABLE tenants (
		tenant BLOB PRIMARY KEY,
		bytes  INTEGER NOT NULL,
		tasks  INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	INSERT INTO tenants SELECT tenant, sum(bytes), sum(tasks) FROM (
		SELECT iid, length(body) AS bytes, 1 AS tasks FROM tasks
		UNION ALL SELECT iid, length(q.body), 0 FROM queue q JOIN tasks t ON t.tid = q.id >> 31
		UNION ALL SELECT iid, length(e.body), 0 FROM events e JOIN tasks t ON t.tid = e.id >> 31
		UNION ALL SELECT iid, coalesce(length(a.state), 0), 0 FROM agents a JOIN tasks t USING (tid)
		UNION ALL SELECT iid, length(h.body), 0 FROM history h JOIN agents a ON a.aid = h.id >> 31 JOIN tasks t USING (tid)
	) JOIN instances USING (iid) GROUP BY tenant;`,

	// A tenant's rows are counted for its newest day.
	`ALTER TABLE tenants ADD COLUMN day INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE tenants ADD COLUMN made INTEGER NOT NULL DEFAULT 0;`,

	// The submissions of a task that wait for an answer were listed in its record,
	// and are found by an index now: a record that is written anew with every step
	// must not grow with them. Records that still list them are read without.
	`CREATE INDEX submissions_open ON submissions (iid, task, cursor) WHERE answer = 0;
	CREATE INDEX queue_stash ON queue (id) WHERE stash <> 0;`,

	`CREATE TABLE tokens (
		id        BLOB PRIMARY KEY,
		tenant    BLOB NOT NULL,
		role      BLOB NOT NULL,
		principal BLOB NOT NULL,
		peer      BLOB NOT NULL,
		label     BLOB NOT NULL,
		made_by   BLOB NOT NULL,
		sha256    BLOB NOT NULL UNIQUE,
		created   INTEGER NOT NULL,
		expires   INTEGER NOT NULL,
		used      INTEGER NOT NULL,
		revoked   INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	CREATE INDEX tokens_of ON tokens (tenant);`,

	// A task's definition is the digest of what it was begun with. What the file
	// of a host says is kept under no tenant.
	`ALTER TABLE tasks ADD COLUMN definition BLOB;
	CREATE INDEX tasks_defined ON tasks (definition) WHERE definition IS NOT NULL AND ended IS NULL;
	CREATE TABLE definitions (
		tenant  BLOB NOT NULL,
		swarm   BLOB NOT NULL,
		digest  BLOB NOT NULL,
		created INTEGER NOT NULL,
		body    BLOB NOT NULL,
		PRIMARY KEY (tenant, swarm, digest)
	) STRICT, WITHOUT ROWID;
	CREATE TABLE loaded (
		tenant  BLOB NOT NULL,
		swarm   BLOB NOT NULL,
		at      INTEGER NOT NULL,
		made_by BLOB NOT NULL,
		body    BLOB NOT NULL,
		PRIMARY KEY (tenant, swarm)
	) STRICT, WITHOUT ROWID;`,

	// Letters that are dead stay with their task, out of the way of the others.
	`CREATE TABLE outbox (
		id     INTEGER PRIMARY KEY, -- tid, n
		letter BLOB NOT NULL,
		peer   BLOB NOT NULL,
		dead   INTEGER NOT NULL,
		body   BLOB NOT NULL
	) STRICT;
	CREATE INDEX outbox_waiting ON outbox (id, peer) WHERE dead = 0;
	CREATE INDEX outbox_dead ON outbox (id) WHERE dead <> 0;
	CREATE INDEX outbox_named ON outbox (letter) WHERE dead <> 0;`,

	// What a tenant's calls of models cost counts to its newest day as well.
	`ALTER TABLE tenants ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE tenants ADD COLUMN micro_usd INTEGER NOT NULL DEFAULT 0;`,

	// A blob is of its tenant and goes with the last task that uses it. Its name
	// is made of its address with the tenant's naming key.
	`CREATE TABLE namers (
		tenant BLOB PRIMARY KEY,
		body   BLOB NOT NULL
	) STRICT, WITHOUT ROWID;
	CREATE TABLE blobs (
		bid    INTEGER PRIMARY KEY,
		tenant BLOB NOT NULL,
		name   BLOB NOT NULL,
		body   BLOB NOT NULL,
		UNIQUE (tenant, name)
	) STRICT;
	CREATE INDEX blobs_of ON blobs (tenant, bid);
	CREATE TABLE blob_uses (
		tid INTEGER NOT NULL,
		bid INTEGER NOT NULL,
		PRIMARY KEY (tid, bid)
	) STRICT, WITHOUT ROWID;
	CREATE INDEX blob_users ON blob_uses (bid);`,

	// Submissions of gateways are listed by their age. Those with keep wait for an
	// answer that closes them, and stay for that time after it.
	`ALTER TABLE submissions ADD COLUMN agent BLOB NOT NULL DEFAULT x'';
	ALTER TABLE submissions ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE submissions ADD COLUMN keep INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE submissions ADD COLUMN note BLOB;
	CREATE INDEX submissions_listed ON submissions (iid, door, accepted, key) WHERE accepted > 0;`,

	`CREATE TABLE gateway_realms (
		rid     INTEGER PRIMARY KEY,
		tenant  BLOB NOT NULL,
		gateway BLOB NOT NULL,
		realm   BLOB NOT NULL,
		records INTEGER NOT NULL,
		UNIQUE (tenant, gateway, realm)
	) STRICT;
	CREATE TABLE gateway_state (
		rid     INTEGER NOT NULL,
		kind    BLOB NOT NULL,
		name    BLOB NOT NULL,
		version INTEGER NOT NULL,
		expires INTEGER,
		value   BLOB NOT NULL,
		PRIMARY KEY (rid, kind, name)
	) STRICT, WITHOUT ROWID;
	CREATE INDEX gateway_state_expires ON gateway_state (expires) WHERE expires IS NOT NULL;`,

	`CREATE INDEX tasks_paused ON tasks (iid) WHERE state = 'paused';`,

	// Tasks are listed over all instances. Most tasks are completed and cost no money: the
	// indexes of states and costs leave those out. The entrypoint and the cost of an older
	// task are in its sealed record only, until it is written again.
	`ALTER TABLE tasks ADD COLUMN tenant BLOB;
	ALTER TABLE tasks ADD COLUMN entrypoint BLOB;
	ALTER TABLE tasks ADD COLUMN micro_usd INTEGER NOT NULL DEFAULT 0;
	UPDATE tasks SET tenant = (SELECT tenant FROM instances i WHERE i.iid = tasks.iid);
	CREATE INDEX tasks_all ON tasks (created);
	CREATE INDEX tasks_of_tenant ON tasks (tenant, created);
	CREATE INDEX tasks_in_state ON tasks (state, created) WHERE state <> 'completed';
	CREATE INDEX tasks_given_to ON tasks (entrypoint, created);
	CREATE INDEX tasks_by_cost ON tasks (micro_usd) WHERE micro_usd > 0;`,

	`CREATE TABLE quarantine (
		tenant BLOB NOT NULL,
		swarm  BLOB NOT NULL,
		agent  BLOB NOT NULL,
		module BLOB NOT NULL,
		since  INTEGER NOT NULL,
		why    BLOB NOT NULL,
		PRIMARY KEY (tenant, swarm, agent)
	) STRICT, WITHOUT ROWID;`,

	// Bodies may be packed with phrases: older versions must not open the file.
	"SELECT 1;",

	`CREATE TABLE usage (
		tenant    BLOB NOT NULL,
		minute    INTEGER NOT NULL, -- since 1970
		agent     BLOB NOT NULL,
		model     BLOB NOT NULL,
		cause     BLOB NOT NULL,
		turns     INTEGER NOT NULL,
		failures  INTEGER NOT NULL,
		fuel      INTEGER NOT NULL,
		cpu       INTEGER NOT NULL, -- nanoseconds
		tokens    INTEGER NOT NULL,
		output    INTEGER NOT NULL,
		micro_usd INTEGER NOT NULL,
		PRIMARY KEY (tenant, minute, agent, model, cause)
	) STRICT, WITHOUT ROWID;`,
}

// migrate brings the schema to the version that steps lead to.
func migrate(ctx context.Context, c *sql.Conn, steps []string, now time.Time) error {
	version, err := schemaVersion(ctx, c)
	if err != nil {
		return err
	}
	if err := tooNew(version, len(steps)); err != nil {
		return err
	}
	for ; version < len(steps); version++ {
		if err := migrateTo(ctx, c, version+1, steps[version], now); err != nil {
			return fmt.Errorf("migrate to schema version %d: %w", version+1, err)
		}
	}
	return nil
}

func tooNew(version, known int) error {
	if version <= known {
		return nil
	}
	return fmt.Errorf("its schema is version %d and this skep knows up to %d: use the newer skep that wrote it, or restore a backup made before the upgrade", version, known)
}

// versionsTable has the migrations that a file has had.
const versionsTable = "CREATE TABLE versions (version INTEGER PRIMARY KEY, migrated INTEGER NOT NULL) STRICT"

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
		strings.Replace(versionsTable, "TABLE", "TABLE IF NOT EXISTS", 1),
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
