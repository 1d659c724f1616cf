package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/postgres"
	"skep/host/internal/swarm"
)

func openSealedServer(t *testing.T, at Server) *Store {
	t.Helper()
	s, err := OpenServer(t.Context(), at, Options{Keyring: &keyring.Options{KEK: testKEK(1)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestServerKeyringKilled: a key that is wanted while the server is away is made when it is back.
func TestServerKeyringKilled(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	at := Server{DSN: server.DSN()}
	s := openSealedServer(t, at)
	copiedSteps(t, s, 0, 1)
	server.Kill(t)
	made := make(chan error)
	go func() {
		_, err := s.codec.ring.Sealer("late")
		made <- err
	}()
	server.Start(t)
	if err := <-made; err != nil {
		t.Error("Sealer() =", err)
	}
	if err := s.Rotate(t.Context(), testInstance.Tenant); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again := openSealedServer(t, at)
	defer again.Close()
	if n := len(again.codec.ring.Entries()); n != 3 {
		t.Errorf("the table has %d keys of 3", n)
	}
}

// TestServerKeyringFenced: a host that is fenced does not write over the keys of the next one.
func TestServerKeyringFenced(t *testing.T) {
	t.Parallel()
	at := Server{DSN: pgtest.Schema(t)}
	s := openSealedServer(t, at)
	defer s.Close()
	copiedSteps(t, s, 0, 1)
	exec(t, s.keyring.db, "UPDATE hosts SET dead = true")
	if _, err := s.codec.ring.Sealer("late"); !errors.Is(err, swarm.ErrFenced) {
		t.Error("Sealer() =", err)
	}
	if err := s.codec.ring.Destroy(testInstance.Tenant); !errors.Is(err, swarm.ErrFenced) {
		t.Error("Destroy() =", err)
	}
}

// TestStopBesideKey: a write that waits for a tenant's key when the host stops, or comes later, is told that the
// store is away, as one that waits for the server: its caller may send it again.
func TestStopBesideKey(t *testing.T) {
	t.Parallel()
	at := Server{DSN: pgtest.Schema(t)}
	s := openSealedServer(t, at)
	defer s.Close()
	connector, err := postgres.NewConnector(at.DSN, nil)
	mustDo(t, err)
	locking := sql.OpenDB(connector)
	defer locking.Close()
	tx, err := locking.BeginTx(t.Context(), nil)
	mustDo(t, err)
	defer tx.Rollback() // the lock ends
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE keyring")
	mustDo(t, err)
	refused := make(chan error, 1)
	go func() {
		_, err := s.Accept(t.Context(), testStep("t0", 1), testPost("t0", 1))
		refused <- err
	}()
	const waits = "SELECT count(*) FROM pg_locks WHERE relation = 'keyring'::regclass AND NOT granted"
	for n := 0; n == 0; time.Sleep(time.Millisecond) {
		mustDo(t, tx.QueryRowContext(t.Context(), waits).Scan(&n))
	}
	s.StopWaiting()
	_, late := s.codec.ring.Sealer("late")
	for name, err := range map[string]error{"a write that waits": <-refused, "a later one": late} {
		if !errors.Is(err, swarm.ErrUnavailable) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServerReader: a reader sees what a host keeps while it runs, and makes a backup with
// which a directory goes on.
func TestServerReader(t *testing.T) {
	t.Parallel()
	at, opts := Server{DSN: pgtest.Schema(t)}, Options{Keyring: &keyring.Options{KEK: testKEK(1)}}
	if _, err := OpenServerReader(t.Context(), at, opts); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenServerReader() of an empty schema = %v", err)
	}
	s := openSealedServer(t, at)
	defer s.Close()
	copiedSteps(t, s, 0, 3)
	r, err := OpenServerReader(t.Context(), at, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got bytes.Buffer
	if err := r.Export(t.Context(), testInstance.Tenant, &got); err != nil {
		t.Fatal(err)
	}
	want := exported(t, s)
	if got.String() != want || !bytes.Equal(r.Secret(), s.writer.secret) {
		t.Errorf("a reader exports\n%s\nwant\n%s", got.String(), want)
	}
	backup, dir := filepath.Join(t.TempDir(), "backup"), t.TempDir()
	if err := r.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	keys, err := r.KeyringText()
	if err != nil {
		t.Fatal(err)
	}
	mustDo(t, os.WriteFile(filepath.Join(dir, keyringName), keys, 0o600))
	if err := Restore(t.Context(), backup, dir, nil); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := exported(t, again); got != want {
		t.Errorf("a directory exports\n%s\nwant\n%s", got, want)
	}
}

// countTables counts the tables of a schema.
func countTables(t *testing.T, at Server) (n int) {
	t.Helper()
	connector, err := at.connector()
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestServerRewrap: the keys of a store are wrapped with another key, and nothing is made where
// there is none.
func TestServerRewrap(t *testing.T) {
	t.Parallel()
	at, to := Server{DSN: pgtest.Schema(t)}, bytes.Repeat([]byte("x"), 32)
	if _, _, err := RewrapServer(t.Context(), at, testKEK(1), to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("RewrapServer() in an empty schema = %v", err)
	}
	if tables := countTables(t, at); tables != 0 {
		t.Errorf("there are %d tables in a schema without a store", tables)
	}
	s := openSealedServer(t, at)
	copiedSteps(t, s, 0, 1)
	if _, _, err := RewrapServer(t.Context(), at, testKEK(1), to); !errors.Is(err, ErrInUse) {
		t.Errorf("RewrapServer() beside a host = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := RewrapServer(t.Context(), at, to, to[:1]); err == nil {
		t.Error("a short key was taken")
	}
	if _, _, err := RewrapServer(t.Context(), at, testKEK(1), nil); err == nil {
		t.Error("the keys were left plain")
	}
	for _, changed := range []bool{true, false} {
		if n, did, err := RewrapServer(t.Context(), at, testKEK(1), to); n != 1 || did != changed || err != nil {
			t.Errorf("RewrapServer() = %d, %v, %v", n, did, err)
		}
	}
	if _, err := OpenServer(t.Context(), at, Options{Keyring: &keyring.Options{KEK: testKEK(1)}}); !errors.Is(err, keyring.ErrWrongKEK) {
		t.Errorf("OpenServer() with the old key = %v", err)
	}
}
