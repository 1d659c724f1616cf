package sqlite

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"skep/host/internal/swarm"
)

// A table describes a table with rows of tenants. The walk through a tenant, which
// exports it and seals it anew, and the deletion of tasks and tenants are driven by
// these descriptions. Rows form a tree: a tenant has instances, an instance has
// tasks, a task has events, and so on.
type table struct {
	name string
	// from replaces name where a walk must join or name an index.
	from string
	// where selects the rows of one parent by its number. A table without it has
	// child keys, see [pack].
	where string
	// only further restricts the rows that are deleted.
	only string
	// grandparent makes the number of the row above the parent the first argument of
	// where.
	grandparent bool
	// key is the primary key. order sorts the rows of one parent; without it there
	// is at most one.
	key, order []string
	// number is the column that child rows name, if there are any.
	number string
	// facts are further columns that describe reads.
	facts  []string
	bodies []column
	// size is the SQL of what a row adds to its tenant's footprint.
	size     string
	children []*table
	// describe sets in n what is special about a row; n begins as its parent.
	describe func(n *node, r tableRow)
	// dropped follows the deletion of a row with a key.
	dropped func(ctx context.Context, d *deletion, key []any) error
}

// column is a column with bodies.
type column struct {
	name string
	// place is the part of a body's place that stands for the column; empty where
	// describe sets it. It never changes.
	place string
	// kind names the column's lines in an export; without it there are none.
	kind string
	// optional bodies may be NULL. A NULL elsewhere is a line without a body.
	optional bool
	// uncounted bodies are no part of a footprint.
	uncounted bool
}

// node is a row on the way from a tenant down.
type node struct {
	key    swarm.TaskKey // with empty parts for what is above a task
	at     spot
	facts  facts
	number any // what child rows name: an integer, or the tenant; nil for none
	above  any // the number of its parent
}

// facts are what an export has besides bodies.
type facts struct {
	agent, scope, name string
	gateway, realm     string
	turn               int64
	stash              bool
	post               *swarm.Submission
}

// body is the column of tables with one body in a column of that name.
func body(place, kind string) []column { return []column{{name: "body", place: place, kind: kind}} }

// childTable is a table with child keys and one body.
func childTable(name, kind string, facts []string, describe func(*node, tableRow)) *table {
	return &table{
		name: name, key: []string{"id"}, order: []string{"id"}, facts: facts,
		bodies: body(name, kind), size: "length(body)", describe: describe,
	}
}

func atSeq(n *node, r tableRow) { n.at.seq = seqOf(r.int("id")) }

var (
	queueTable = childTable(inQueue, "row", []string{"stash"}, func(n *node, r tableRow) {
		atSeq(n, r)
		n.facts.stash = r.int("stash") != 0
	})
	eventTable  = childTable(inEvents, "event", nil, atSeq)
	outboxTable = childTable(inOutbox, "letter", []string{"dead"}, func(n *node, r tableRow) {
		atSeq(n, r)
		n.facts.stash = r.int("dead") != 0
	})
	historyTable = childTable(inHistory, "history", nil, atSeq)
	journalTable = childTable(inJournal, "turn_entries", nil, func(n *node, r tableRow) {
		n.facts.turn = n.at.seq // the turn's
		n.at = chunkSpot(n.facts.turn, seqOf(r.int("id")))
	})
)

var agentTable = &table{
	name: "agents", where: "tid = ?", key: []string{"aid"}, order: []string{"agent"}, number: "aid",
	bodies: []column{{name: "state", place: inStates, kind: "state", optional: true}},
	size:   "coalesce(length(state), 0)", children: []*table{historyTable},
	describe: func(n *node, r tableRow) {
		n.facts.agent = r.text("agent")
		n.at.name = n.facts.agent
	},
}

// turnTable's children are under jid, which is NULL for a turn that was never
// journaled.
var turnTable = &table{
	name: "turns", key: []string{"id"}, order: []string{"id"}, number: "jid",
	bodies: []column{
		{name: "header", place: inHeaders, kind: "turn"},
		{name: "input", place: inInputs, kind: "turn_input"},
		{name: "finish", place: inEnds, kind: "turn_end", optional: true},
	},
	size:     "length(header) + length(input) + coalesce(length(finish), 0)",
	children: []*table{journalTable}, describe: atSeq,
}

// oldTurnTable are the turns that ended before a time.
var oldTurnTable = func() *table {
	old := *turnTable
	old.only = "at < ?"
	return &old
}()

var valueTable = &table{
	name: "kv", where: "sid = ?", key: []string{"sid", "name"}, order: []string{"name"},
	bodies: []column{{name: "value", kind: "value"}}, size: "length(name) + length(value)",
	describe: func(n *node, r tableRow) {
		n.at.name = r.text("name")
		n.facts.name = n.at.name
	},
}

// spaceTable has the scopes of a task, or of an instance of one kind.
func spaceTable(where string, underTask bool) *table {
	return &table{
		name: "spaces", where: where, grandparent: underTask, key: []string{"sid"}, order: []string{"agent"}, number: "sid",
		facts: []string{"kind"}, children: []*table{valueTable},
		describe: func(n *node, r tableRow) {
			scope := swarm.KVScope{Kind: swarm.KVKind(r.text("kind")), Agent: r.text("agent")}
			_, n.at.table = kvPlace(n.key, scope)
			n.facts.agent, n.facts.scope = scope.Agent, string(scope.Kind)
		},
	}
}

var (
	instanceSpaces = spaceTable("iid = ? AND kind = 'instance' AND tid = 0", false)
	agentSpaces    = spaceTable("iid = ? AND kind = 'agent' AND tid = 0", false)
	taskSpaces     = spaceTable("iid = ? AND kind = 'task' AND tid = ?", true)
)

// blobUseTable names the blobs of a task; it has no bodies.
var blobUseTable = &table{
	name: "blob_uses", from: "blob_uses CROSS JOIN blobs USING (bid)", where: "tid = ?", key: []string{"tid", "bid"}, order: []string{"bid"},
	facts: []string{"name"}, bodies: []column{{place: inBlobUses, kind: "blob_use"}},
	describe: func(n *node, r tableRow) { n.facts.name = hex.EncodeToString(r.bytes("name")) },
	dropped:  func(ctx context.Context, d *deletion, key []any) error { return d.dropBlob(ctx, key[1]) },
}

var taskTable = &table{
	name: "tasks", where: "iid = ?", key: []string{"tid"}, order: []string{"task"}, number: "tid",
	bodies: body(inTasks, "task"), size: "length(body)",
	children: []*table{queueTable, eventTable, outboxTable, agentTable, turnTable, blobUseTable, taskSpaces},
	describe: func(n *node, r tableRow) { n.key.Task = r.text("task") },
}

var submissionTable = &table{
	name: "submissions", where: "iid = ?", key: []string{"iid", "door", "key"}, order: []string{"door", "key"},
	facts: []string{"task", "row", "cursor", "expires", "answer", "agent", "accepted", "keep"},
	bodies: []column{
		{name: "digest", place: inSubmissions, kind: "submission", uncounted: true},
		{name: "note", place: inNotes, kind: "submission_note", optional: true, uncounted: true},
	},
	describe: func(n *node, r tableRow) {
		p := &swarm.Submission{
			Instance: n.key.InstanceKey, Door: r.text("door"), Key: r.text("key"), Task: r.text("task"), Row: r.int("row"),
			Cursor: r.int("cursor"), Expires: unstamp(r.int("expires")), Answer: r.int("answer"),
			Agent: r.text("agent"), Keep: time.Duration(r.int("keep")),
		}
		if at := r.int("accepted"); at > 0 {
			p.Accepted = unstamp(at)
		}
		n.at, n.facts.post = submissionSpot(p.Door, p.Key), p
	},
}

var instanceTable = &table{
	name: "instances", where: "tenant = ?", key: []string{"iid"}, order: []string{"swarm", "instance"}, number: "iid",
	children: []*table{submissionTable, instanceSpaces, agentSpaces, taskTable},
	describe: func(n *node, r tableRow) {
		n.key.Swarm, n.key.Instance = r.text("swarm"), r.text("instance")
	},
}

var definitionTable = &table{
	name: "definitions", where: "tenant = ?", key: []string{"tenant", "swarm", "digest"}, order: []string{"swarm", "digest"},
	bodies: body(inDefinitions, "definition"),
	describe: func(n *node, r tableRow) {
		n.key.Swarm, n.at.name = r.text("swarm"), r.text("digest")
		n.facts.name = n.at.name
	},
}

var loadedTable = &table{
	name: "loaded", where: "tenant = ?", key: []string{"tenant", "swarm"}, order: []string{"swarm"},
	bodies:   body(inLoaded, "loaded_definition"),
	describe: func(n *node, r tableRow) { n.key.Swarm = r.text("swarm") },
}

// namerTable has no lines in an export: it adds nothing to its blobs.
var namerTable = &table{
	name: "namers", where: "tenant = ?", key: []string{"tenant"}, bodies: body(inNamers, ""),
	describe: func(*node, tableRow) {},
}

// blobTable's rows are deleted with their last use.
var blobTable = &table{
	name: "blobs", from: "blobs INDEXED BY blobs_of", where: "tenant = ?", key: []string{"bid"}, order: []string{"bid"},
	facts: []string{"name"}, bodies: body(inBlobs, "blob"),
	describe: func(n *node, r tableRow) {
		n.at.name = r.text("name")
		n.facts.name = hex.EncodeToString([]byte(n.at.name))
	},
}

// tenantTables are the tables below a tenant, in the order of an export.
var tenantTables = []*table{instanceTable, definitionTable, loadedTable, namerTable, blobTable, realmTable}

// nameTables are the tables with a column tenant whose rows go with the name of an
// erased tenant, when nothing is left below its instances.
var nameTables = []string{"tenants", "tokens", "namers", "definitions", "loaded", "quarantine", "usage", "keys", "chores"}

// eachTable visits tables and the tables below them.
func eachTable(list []*table, visit func(*table)) {
	for _, t := range list {
		visit(t)
		eachTable(t.children, visit)
	}
}

// isChild reports whether the rows of a table have child keys.
func (t *table) isChild() bool { return t.where == "" }

// isSliced reports whether rows are deleted many at a time.
func (t *table) isSliced() bool { return len(t.children) == 0 && t.dropped == nil }

// columns are the columns that a walk reads.
func (t *table) columns() []string {
	list := slices.Concat(t.key, t.order, t.facts)
	if t.number != "" {
		list = append(list, t.number)
	}
	for _, c := range t.bodies {
		if c.name != "" {
			list = append(list, c.name)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(c string) bool {
		again := seen[c]
		seen[c] = true
		return again
	})
}

// parentArgs are the arguments that select the rows below a node.
func (t *table) parentArgs(n node) []any {
	switch {
	case t.isChild():
		return []any{pack(n.number.(int64), 0), pack(n.number.(int64), maxSeq)}
	case t.grandparent:
		return []any{n.above, n.number}
	}
	return []any{n.number}
}

// walkText selects a page of the rows of one parent, after a row.
func (t *table) walkText() string {
	from, where := t.from, t.where
	if from == "" {
		from = t.name
	}
	switch {
	case t.isChild():
		where = "id > ? AND id <= ?"
	case t.order != nil:
		where += " AND " + rowValue(t.order) + " > " + rowValue(slices.Repeat([]string{"?"}, len(t.order)))
	}
	text := "SELECT " + strings.Join(t.columns(), ", ") + " FROM " + from + " WHERE " + where
	if t.order != nil {
		text += " ORDER BY " + strings.Join(t.order, ", ")
	}
	return text + " LIMIT CAST(? AS BIGINT)"
}

// swapText replaces a body, unless it has changed since it was read.
func (t *table) swapText(c *column) string {
	return "UPDATE " + t.name + " SET " + c.name + " = ? WHERE " + t.keyIs() + " AND " + c.name + " = ?"
}

func (t *table) keyIs() string { return strings.Join(t.key, " = ? AND ") + " = ?" }

// doomedWhere selects the rows of one parent that are deleted.
func (t *table) doomedWhere() string {
	where := t.where
	if t.isChild() {
		where = "id BETWEEN ? AND ?"
	}
	if t.only != "" {
		where += " AND " + t.only
	}
	return where
}

// returning is the end of a statement that deletes rows and returns their sizes.
func (t *table) returning() string {
	if t.size == "" {
		return " RETURNING 0"
	}
	return " RETURNING " + t.size
}

// sliceText deletes some of the rows of one parent.
func (t *table) sliceText() string {
	return "DELETE FROM " + t.name + " WHERE " + rowValue(t.key) + " IN (SELECT " + strings.Join(t.key, ", ") +
		" FROM " + t.name + " WHERE " + t.doomedWhere() + " LIMIT CAST(? AS BIGINT))" + t.returning()
}

// findText selects the keys, and the number if there is one, of some of the rows
// of one parent.
func (t *table) findText() string {
	columns := t.key
	if t.number != "" {
		columns = append(columns[:len(columns):len(columns)], t.number)
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + t.name + " WHERE " + t.doomedWhere() + " LIMIT CAST(? AS BIGINT)"
}

// dropText deletes a row by its key.
func (t *table) dropText() string {
	return "DELETE FROM " + t.name + " WHERE " + t.keyIs() + t.returning()
}

// rowValue writes a list of columns as one value. One column stays as it is: an
// index on it would not be found.
func rowValue(columns []string) string {
	if len(columns) == 1 {
		return columns[0]
	}
	return "(" + strings.Join(columns, ", ") + ")"
}
