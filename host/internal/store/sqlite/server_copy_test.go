package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"skep/host/internal/quarantine"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// exported returns what a store has of the tests' tenant.
func exported(t *testing.T, s *Store) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.Export(t.Context(), testInstance.Tenant, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// copiedSteps writes tasks with all that has numbers.
func copiedSteps(t *testing.T, s *Store, first, tasks int) {
	t.Helper()
	for i := first; i < first+tasks; i++ {
		task := fmt.Sprint("t", i)
		step := testStep(task, 1)
		step.States = []swarm.AgentState{{Agent: "supervisor", State: []byte(`{"n":1}`)}}
		step.KV = []swarm.KVWrite{{Scope: swarm.KVScope{Kind: swarm.KVTask}, Name: "", Value: []byte("v")}}
		step.Blobs = []swarm.Blob{{ID: swarm.BlobID{byte(i)}, Data: []byte(task)}}
		if _, err := s.Accept(t.Context(), step, testPost(task, 1)); err != nil {
			t.Fatal(err)
		}
		agent := quarantine.Agent{Tenant: testInstance.Tenant, Swarm: testInstance.Swarm, Name: task}
		mustDo(t, s.ConfineAgent(t.Context(), quarantine.Confined{Agent: agent, Since: testTime, Why: "it kills hosts"}))
	}
}

// copiedTasks is how many tasks a test moves.
const copiedTasks = 100

// TestServerCopy: a store is the same on a server, goes on there, and is the same in a
// directory again. No host opens what was moved away.
func TestServerCopy(t *testing.T) {
	t.Parallel()
	kek := testKEK(1)
	for name, c := range map[string]struct{ before, after *keyring.Options }{
		"open":             {},
		"sealed":           {&keyring.Options{KEK: kek}, &keyring.Options{KEK: kek}},
		"sealed but plain": {&keyring.Options{}, &keyring.Options{KEK: kek}},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); testServerCopy(t, c.before, c.after) })
	}
}

func testServerCopy(t *testing.T, before, after *keyring.Options) {
	dir, server, tasks := t.TempDir(), Server{DSN: pgtest.Schema(t)}, copiedTasks
	var how CopyOptions
	if after != nil {
		how.KEK = after.KEK
	}
	s, err := Open(t.Context(), dir, Options{Keyring: before})
	if err != nil {
		t.Fatal(err)
	}
	copiedSteps(t, s, 0, tasks)
	want, secret := exported(t, s), s.writer.secret
	confined, err := s.Confined(t.Context())
	mustDo(t, err)
	if _, err := CopyToServer(t.Context(), dir, server, how); !errors.Is(err, ErrInUse) {
		t.Errorf("a store in use was moved: %v", err)
	}
	mustDo(t, s.Close())
	if after != nil {
		if _, err := CopyToServer(t.Context(), dir, server, CopyOptions{}); err == nil {
			t.Error("keys were moved plain")
		}
	}
	var seen []TableSum
	how.Progress = func(s TableSum) { seen = append(seen, s) }
	sums, err := CopyToServer(t.Context(), dir, server, how)
	if err != nil || len(seen) != len(copiedTables) || sums[2].Table != "tasks" || sums[2].Rows != int64(tasks) {
		t.Fatalf("CopyToServer() = %v, %v after %v", sums, err, seen)
	}
	if _, err := Open(t.Context(), dir, Options{Keyring: before}); !errors.Is(err, ErrMoved) {
		t.Errorf("Open() of what was moved = %v", err)
	}
	if _, err := CopyToServer(t.Context(), dir, Server{DSN: pgtest.Schema(t)}, how); !errors.Is(err, ErrMoved) {
		t.Errorf("a store was moved twice: %v", err)
	}
	moved, err := OpenServer(t.Context(), server, Options{Keyring: after})
	if err != nil {
		t.Fatal(err)
	}
	if got := exported(t, moved); got != want || !bytes.Equal(moved.writer.secret, secret) {
		t.Errorf("the server has\n%s\nwant\n%s", got, want)
	}
	if got, err := moved.Confined(t.Context()); !slices.Equal(got, confined) || err != nil {
		t.Errorf("the server has in quarantine %v, %v, want %v", got, err, confined)
	}
	copiedSteps(t, moved, tasks, 10)
	want = exported(t, moved)
	back := filepath.Join(t.TempDir(), "back")
	if _, err := CopyFromServer(t.Context(), server, back, how); !errors.Is(err, ErrInUse) {
		t.Errorf("a store in use was moved back: %v", err)
	}
	mustDo(t, moved.Close())
	if _, err := CopyFromServer(t.Context(), server, dir, how); err == nil {
		t.Error("a store was moved over another")
	}
	if _, err := CopyFromServer(t.Context(), server, back, how); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenServer(t.Context(), server, Options{Keyring: after}); !errors.Is(err, ErrMoved) {
		t.Errorf("OpenServer() of what was moved = %v", err)
	}
	again, err := Open(t.Context(), back, Options{Keyring: after})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := exported(t, again); got != want || !bytes.Equal(again.writer.secret, secret) {
		t.Errorf("the directory has\n%s\nwant\n%s", got, want)
	}
	copiedSteps(t, again, tasks+10, 10)
}

// TestServerCopyRefused: a move to what is taken, and from what is not there, changes nothing.
func TestServerCopyRefused(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), Server{DSN: pgtest.Schema(t)}
	if _, err := CopyToServer(t.Context(), filepath.Join(dir, "none"), server, CopyOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("CopyToServer() from nothing = %v", err)
	}
	if _, err := CopyFromServer(t.Context(), server, filepath.Join(dir, "none"), CopyOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("CopyFromServer() from nothing = %v", err)
	}
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	copiedSteps(t, s, 0, 1)
	mustDo(t, s.Close())
	other := openTestServer(t, server.DSN)
	copiedSteps(t, other, 0, 1)
	mustDo(t, other.Close())
	if _, err := CopyToServer(t.Context(), dir, server, CopyOptions{}); err == nil {
		t.Error("a store was moved over another")
	}
	if s, err = Open(t.Context(), dir, Options{}); err != nil {
		t.Fatal("a move that was refused has changed its source:", err)
	}
	mustDo(t, s.Close())
}

// TestMoveBrokenOff: of a move that ends behind its copy no host opens the source, and the same
// move again completes it.
func TestMoveBrokenOff(t *testing.T) {
	t.Parallel()
	dir, back, server := t.TempDir(), filepath.Join(t.TempDir(), "back"), Server{DSN: pgtest.Schema(t)}
	s, err := Open(t.Context(), dir, Options{})
	mustDo(t, err)
	copiedSteps(t, s, 0, 1)
	want := exported(t, s)
	mustDo(t, s.Close())

	path := filepath.Join(dir, fileName)
	db, conn, err := openConn(t.Context(), path)
	mustDo(t, err)
	err = moveAway(t.Context(), conn, func(move int64) error {
		return errors.Join(copyFile(t.Context(), path, server, nil, &copier{move: move}), errUncertain)
	})
	if !errors.Is(err, errUncertain) {
		t.Fatal(err)
	}
	mustDo(t, errors.Join(conn.Close(), db.Close()))
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrMoving) {
		t.Errorf("Open() of what may be moved = %v", err)
	}
	s = openTestServer(t, server.DSN)
	if got := exported(t, s); got != want {
		t.Errorf("the server has\n%s\nwant\n%s", got, want)
	}
	mustDo(t, s.Close())
	if tables, err := CopyToServer(t.Context(), dir, server, CopyOptions{}); err != nil || len(tables) > 0 {
		t.Errorf("CopyToServer() once more = %v, %v", tables, err)
	}
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrMoved) {
		t.Errorf("Open() of what was moved = %v", err)
	}

	connector, err := server.connector()
	mustDo(t, err)
	w, err := openServerWriter(t.Context(), connector, Options{Now: time.Now})
	mustDo(t, err)
	readers := sql.OpenDB(connector.ReadOnly())
	err = moveAway(t.Context(), w.conn, func(move int64) error {
		return errors.Join(w.empty(t.Context(), readers, back, nil, &copier{move: move}), errUncertain)
	})
	if !errors.Is(err, errUncertain) {
		t.Fatal(err)
	}
	mustDo(t, errors.Join(readers.Close(), w.closeConn()))
	if _, err := OpenServer(t.Context(), server, Options{}); !errors.Is(err, ErrMoving) {
		t.Errorf("OpenServer() of what may be moved = %v", err)
	}
	if tables, err := CopyFromServer(t.Context(), server, back, CopyOptions{}); err != nil || len(tables) > 0 {
		t.Errorf("CopyFromServer() once more = %v, %v", tables, err)
	}
	if _, err := OpenServer(t.Context(), server, Options{}); !errors.Is(err, ErrMoved) {
		t.Errorf("OpenServer() of what was moved = %v", err)
	}
	s, err = Open(t.Context(), back, Options{})
	mustDo(t, err)
	mustDo(t, s.Close())
}

// TestCopyVerified: a copy that lacks a row, or has another one, is found.
func TestCopyVerified(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	copiedSteps(t, s, 0, 3)
	for name, change := range map[string]string{
		"lost": "DELETE FROM events WHERE id = (SELECT max(id) FROM events)", "changed": "UPDATE kv SET value = x'00' WHERE sid = 1",
	} {
		path := filepath.Join(t.TempDir(), "copy")
		mustDo(t, s.Backup(t.Context(), path))
		db, err := sql.Open("sqlite", dsn(path, url.Values{}))
		mustDo(t, err)
		defer db.Close()
		tx, err := db.BeginTx(t.Context(), nil)
		mustDo(t, err)
		defer tx.Rollback() // it changes a copy
		c := &copier{}
		for _, table := range copiedTables {
			sum := TableSum{Table: table}
			names, err := columnsOf(t.Context(), tx, table)
			mustDo(t, err)
			mustDo(t, eachRow(t.Context(), tx, table, "1 = 1", names, func(v []any) error { sum.add(v); return nil }))
			c.tables = append(c.tables, sum)
		}
		mustDo(t, c.verify(t.Context(), tx, tx))
		if _, err := tx.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if err := c.verify(t.Context(), tx, tx); err == nil {
			t.Errorf("a copy with a row that was %s is not found", name)
		}
	}
}
