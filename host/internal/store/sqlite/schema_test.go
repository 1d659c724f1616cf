package sqlite

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	ctx, c := t.Context(), s.writer.conn
	if v, err := schemaVersion(ctx, c); v != len(migrations) || err != nil {
		t.Fatalf("schema version is %d, %v, want %d", v, err, len(migrations))
	}

	next := append(migrations[:len(migrations):len(migrations)],
		"ALTER TABLE tasks ADD COLUMN note TEXT", "CREATE INDEX tasks_by_note ON tasks (note)")
	if err := migrate(ctx, c, next, testTime); err != nil {
		t.Fatal(err)
	}
	if err := migrate(ctx, c, next, testTime); err != nil {
		t.Fatalf("migrate to the version it has = %v", err)
	}
	bad := append(next, "CREATE TABLE half (a); CREATE TABLE half (a)")
	if err := migrate(ctx, c, bad, testTime); err == nil {
		t.Fatal("a step that fails succeeded")
	}
	if v, err := schemaVersion(ctx, c); v != len(next) || err != nil {
		t.Errorf("schema version after a failed step is %d, %v, want %d", v, err, len(next))
	}
	var halves int
	err := c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'").Scan(&halves)
	if halves != 0 || err != nil {
		t.Errorf("a failed step left %d tables behind, %v", halves, err)
	}
}

func TestOpenRefusesNewerSchema(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := openTest(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	exec(t, openRaw(t, dir), "INSERT INTO versions VALUES (99, 0)")
	wantOpenError(t, dir, "schema is version 99", "newer skep")
}

// Every statement finds what it needs by a key. A scan or a sort would cost
// more the longer the host has been in use. No statement has a bare parameter as its LIMIT,
// which would have it prepared anew for each value.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	texts := s.readers.texts()
	for _, more := range append(s.writer.tables.allTexts(), newWalk(nil, nil).texts(), swapTexts(), s.writer.tables.blank.texts()) {
		maps.Copy(texts, more)
	}
	for stmt, text := range texts {
		if stmt == &s.readers.runningTasks || stmt == &s.readers.outboxes {
			continue // scans the index of what is running, or waits, as it must
		}
		if strings.Contains(text, "LIMIT ?") {
			t.Errorf("%s\nis prepared anew for each LIMIT", text)
		}
		args := make([]any, strings.Count(text, "?"))
		rows, err := s.readers.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(detail, "SCAN") || strings.Contains(detail, "TEMP B-TREE") {
				t.Errorf("%s\nplan: %s", text, detail)
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func swapTexts() map[**sql.Stmt]string {
	texts := map[**sql.Stmt]string{}
	eachTable(tenantTables, func(t *table) {
		for i := range t.bodies {
			if c := &t.bodies[i]; c.name != "" {
				texts[new(*sql.Stmt)] = t.swapText(c)
			}
		}
	})
	return texts
}

// Every table is described, so that none is left out of an export or an erasure.
func TestTablesAreDescribed(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	described := map[string]bool{"meta": true, "versions": true}
	for _, name := range nameTables {
		described[name] = true
	}
	eachTable(tenantTables, func(t *table) { described[t.name] = true })
	rows, err := s.readers.db.QueryContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'table'")
	names, err := collect(rows, err, func(rows *sql.Rows) (name string, err error) { return name, rows.Scan(&name) })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !described[name] {
			t.Errorf("table %s is not described", name)
		}
	}
}

// oldFile makes a database of schema version 1 as its host left it: tasks in
// three states, each with an entry of everything.
func oldFile(t *testing.T, dir string) {
	t.Helper()
	db, c, err := openConn(t.Context(), filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	defer c.Close()
	if err := migrate(t.Context(), c, migrations[:1], testTime); err != nil {
		t.Fatal(err)
	}
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := c.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	run("INSERT INTO meta VALUES ('secret', ?), ('epoch', 7)", []byte("0123456789abcdef0123456789abcdef"))
	run("INSERT INTO instances VALUES (1, ?, ?, ?)", []byte(testInstance.Tenant), []byte(testInstance.Swarm), []byte(testInstance.Instance))
	for tid, state := range []string{1: "running", 2: "paused", 3: "completed"} {
		if tid == 0 {
			continue
		}
		id := fmt.Sprint("t", tid)
		st := testStep(id, 1)
		st.Task.State = swarm.State(state)
		task, err := json.Marshal(st.Task)
		if err != nil {
			t.Fatal(err)
		}
		run("INSERT INTO tasks VALUES (?, 1, ?, ?, ?, ?)", tid, []byte(id), state, stamp(testTime), append([]byte{1}, task...))
		run("INSERT INTO events VALUES (?, ?)", pack(int64(tid), 1), []byte("\x01"+`{"event":"old"}`))
		run("INSERT INTO agents VALUES (?, ?, ?, ?)", tid, tid, []byte("a"), []byte("\x01"+`{"n":1}`))
		run("INSERT INTO history VALUES (?, ?)", pack(int64(tid), 1), []byte("\x01"+`{"seq":1,"note":"old"}`))
		run("INSERT INTO submissions VALUES (1, ?, ?, ?, ?, 1, 1, ?, 0)", []byte("rest"), []byte(id), []byte("\x03digest\x00"), []byte(id), stamp(testTime))
	}
}

// A file of the first schema opens, and everything in it is as it was.
func TestMigrateOldFile(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]*keyring.Options{"plain": nil, "sealed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			oldFile(t, dir)
			s := openSealed(t, dir, keys)
			s.chores.stopped.Wait() // it seals what was plain
			for _, id := range []string{"t1", "t2", "t3"} {
				wantOldTask(t, s, id)
			}
			wantCounted(t, s)
			if f, err := s.Footprint(t.Context(), testInstance.Tenant); f.Tasks != 3 || f.Bytes == 0 || err != nil {
				t.Errorf("footprint is %+v, %v", f, err)
			}
			secret, err := s.Secret(t.Context())
			if string(secret) != "0123456789abcdef0123456789abcdef" || s.writer.epoch != 8 || err != nil {
				t.Errorf("secret is %q, epoch %d, %v", secret, s.writer.epoch, err)
			}
			// A task that had ended counts from the migration.
			if p, err := s.Prune(t.Context(), swarm.PruneRule{Tasks: testTime.Add(1)}); p.Tasks != 0 || err != nil {
				t.Errorf("Prune() = %+v, %v", p, err)
			}
			if p, err := s.Prune(t.Context(), swarm.PruneRule{Tasks: time.Now().Add(time.Hour)}); p.Tasks != 1 || err != nil {
				t.Errorf("Prune() = %+v, %v", p, err)
			}
		})
	}
}

func wantOldTask(t *testing.T, s *Store, id string) {
	t.Helper()
	key := testStep(id, 1).Task.Key
	snap, err := s.Load(t.Context(), key)
	if err != nil || string(snap.States["a"]) != `{"n":1}` {
		t.Errorf("Load(%s) = %+v, %v", id, snap, err)
	}
	if e, err := s.Events(t.Context(), key, 0, 10); len(e) != 1 || e[0].Name != "old" || err != nil {
		t.Errorf("events of %s = %+v, %v", id, e, err)
	}
	if h, err := s.History(t.Context(), key, "a", 0, 10); len(h) != 1 || h[0].Note != "old" || err != nil {
		t.Errorf("history of %s = %+v, %v", id, h, err)
	}
	if p, err := s.Submission(t.Context(), testInstance, "rest", id); string(p.Digest) != "\x03digest\x00" || err != nil {
		t.Errorf("submission of %s = %+v, %v", id, p, err)
	}
}
