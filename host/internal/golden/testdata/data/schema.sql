CREATE TABLE agents (
		aid   INTEGER PRIMARY KEY,
		tid   INTEGER NOT NULL,
		agent BLOB NOT NULL,
		state BLOB,
		UNIQUE (tid, agent)
	) STRICT;
CREATE TABLE blob_uses (
		tid INTEGER NOT NULL,
		bid INTEGER NOT NULL,
		PRIMARY KEY (tid, bid)
	) STRICT, WITHOUT ROWID;
CREATE TABLE blobs (
		bid    INTEGER PRIMARY KEY,
		tenant BLOB NOT NULL,
		name   BLOB NOT NULL,
		body   BLOB NOT NULL,
		UNIQUE (tenant, name)
	) STRICT;
CREATE TABLE chores (
		kind   TEXT NOT NULL,
		tenant BLOB NOT NULL,
		PRIMARY KEY (kind, tenant)
	) STRICT, WITHOUT ROWID;
CREATE TABLE definitions (
		tenant  BLOB NOT NULL,
		swarm   BLOB NOT NULL,
		digest  BLOB NOT NULL,
		created INTEGER NOT NULL,
		body    BLOB NOT NULL,
		PRIMARY KEY (tenant, swarm, digest)
	) STRICT, WITHOUT ROWID;
CREATE TABLE events (
		id   INTEGER PRIMARY KEY, -- tid, seq
		body BLOB NOT NULL
	) STRICT;
CREATE TABLE gateway_realms (
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
CREATE TABLE history (
		id   INTEGER PRIMARY KEY, -- aid, seq
		body BLOB NOT NULL
	) STRICT;
CREATE TABLE instances (
		iid      INTEGER PRIMARY KEY,
		tenant   BLOB NOT NULL,
		swarm    BLOB NOT NULL,
		instance BLOB NOT NULL,
		UNIQUE (tenant, swarm, instance)
	) STRICT;
CREATE TABLE journal (
		id   INTEGER PRIMARY KEY, -- jid, number of the last entry in it
		body BLOB NOT NULL
	) STRICT;
CREATE TABLE keys (
		tenant BLOB NOT NULL,
		id     INTEGER NOT NULL,
		PRIMARY KEY (tenant, id)
	) STRICT, WITHOUT ROWID;
CREATE TABLE kv (
		sid   INTEGER NOT NULL,
		name  BLOB NOT NULL,
		size  INTEGER NOT NULL,
		value BLOB NOT NULL,
		PRIMARY KEY (sid, name)
	) STRICT, WITHOUT ROWID;
CREATE TABLE loaded (
		tenant  BLOB NOT NULL,
		swarm   BLOB NOT NULL,
		at      INTEGER NOT NULL,
		made_by BLOB NOT NULL,
		body    BLOB NOT NULL,
		PRIMARY KEY (tenant, swarm)
	) STRICT, WITHOUT ROWID;
CREATE TABLE meta (
		name  TEXT PRIMARY KEY,
		value ANY NOT NULL
	) STRICT, WITHOUT ROWID;
CREATE TABLE namers (
		tenant BLOB PRIMARY KEY,
		body   BLOB NOT NULL
	) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
		id     INTEGER PRIMARY KEY, -- tid, n
		letter BLOB NOT NULL,
		peer   BLOB NOT NULL,
		dead   INTEGER NOT NULL,
		body   BLOB NOT NULL
	) STRICT;
CREATE TABLE quarantine (
		tenant BLOB NOT NULL,
		swarm  BLOB NOT NULL,
		agent  BLOB NOT NULL,
		module BLOB NOT NULL,
		since  INTEGER NOT NULL,
		why    BLOB NOT NULL,
		PRIMARY KEY (tenant, swarm, agent)
	) STRICT, WITHOUT ROWID;
CREATE TABLE queue (
		id    INTEGER PRIMARY KEY, -- tid, row
		stash INTEGER NOT NULL,
		body  BLOB NOT NULL
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
CREATE TABLE submissions (
		iid     INTEGER NOT NULL,
		door    BLOB NOT NULL,
		key     BLOB NOT NULL,
		digest  BLOB,
		task    BLOB NOT NULL,
		row     INTEGER NOT NULL,
		cursor  INTEGER NOT NULL,
		expires INTEGER NOT NULL,
		answer  INTEGER NOT NULL, agent BLOB NOT NULL DEFAULT x'', accepted INTEGER NOT NULL DEFAULT 0, keep INTEGER NOT NULL DEFAULT 0, note BLOB,
		PRIMARY KEY (iid, door, key)
	) STRICT, WITHOUT ROWID;
CREATE TABLE tasks (
		tid     INTEGER PRIMARY KEY,
		iid     INTEGER NOT NULL,
		task    BLOB NOT NULL,
		state   TEXT NOT NULL,
		created INTEGER NOT NULL,
		body    BLOB NOT NULL, ended INTEGER, oldest INTEGER, definition BLOB, tenant BLOB, entrypoint BLOB, micro_usd INTEGER NOT NULL DEFAULT 0,
		UNIQUE (iid, task)
	) STRICT;
CREATE TABLE tenants (
		tenant BLOB PRIMARY KEY,
		bytes  INTEGER NOT NULL,
		tasks  INTEGER NOT NULL
	, day INTEGER NOT NULL DEFAULT 0, made INTEGER NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0, micro_usd INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
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
CREATE TABLE turns (
		id     INTEGER PRIMARY KEY, -- tid, n
		at     INTEGER,
		jid    INTEGER,
		header BLOB NOT NULL,
		finish BLOB,
		input  BLOB NOT NULL
	) STRICT;
CREATE TABLE usage (
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
	) STRICT, WITHOUT ROWID;
CREATE TABLE versions (version INTEGER PRIMARY KEY, migrated INTEGER NOT NULL) STRICT;
CREATE INDEX blob_users ON blob_uses (bid);
CREATE INDEX blobs_of ON blobs (tenant, bid);
CREATE INDEX gateway_state_expires ON gateway_state (expires) WHERE expires IS NOT NULL;
CREATE INDEX outbox_dead ON outbox (id) WHERE dead <> 0;
CREATE INDEX outbox_named ON outbox (letter) WHERE dead <> 0;
CREATE INDEX outbox_waiting ON outbox (id, peer) WHERE dead = 0;
CREATE INDEX queue_stash ON queue (id) WHERE stash <> 0;
CREATE INDEX submissions_done ON submissions (expires) WHERE answer > 0;
CREATE INDEX submissions_listed ON submissions (iid, door, accepted, key) WHERE accepted > 0;
CREATE INDEX submissions_open ON submissions (iid, task, cursor) WHERE answer = 0;
CREATE INDEX tasks_all ON tasks (created);
CREATE INDEX tasks_by_age ON tasks (iid, created);
CREATE INDEX tasks_by_cost ON tasks (micro_usd) WHERE micro_usd > 0;
CREATE INDEX tasks_defined ON tasks (definition) WHERE definition IS NOT NULL AND ended IS NULL;
CREATE INDEX tasks_ended ON tasks (ended) WHERE ended IS NOT NULL;
CREATE INDEX tasks_given_to ON tasks (entrypoint, created);
CREATE INDEX tasks_in_state ON tasks (state, created) WHERE state <> 'completed';
CREATE INDEX tasks_of_tenant ON tasks (tenant, created);
CREATE INDEX tasks_paused ON tasks (iid) WHERE state = 'paused';
CREATE INDEX tasks_recorded ON tasks (oldest) WHERE ended IS NOT NULL AND oldest IS NOT NULL;
CREATE INDEX tasks_running ON tasks (tid) WHERE state = 'running';
CREATE INDEX tokens_of ON tokens (tenant);
PRAGMA page_size = 4096;
PRAGMA auto_vacuum = 0;
PRAGMA journal_mode = wal;
PRAGMA application_id = 1936418160;
PRAGMA user_version = 0;
