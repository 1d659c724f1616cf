package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// dropAdditions leaves a server as an older version has made it.
func dropAdditions(t *testing.T, s *Store) {
	t.Helper()
	for _, one := range serverAdditions {
		kind := strings.Fields(one.text)[1]
		if _, err := s.keyring.db.ExecContext(t.Context(), "DROP "+kind+" "+one.name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSharedUpgrade: hosts of a version that has more tables and indexes start beside one that does not have them,
// which goes on.
func TestSharedUpgrade(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	older := openShared(t, dsn)
	dropAdditions(t, older)
	if err := CheckServer(t.Context(), Server{DSN: dsn}); err == nil || !strings.Contains(err.Error(), "start a host of this version") {
		t.Errorf("CheckServer() before = %v", err)
	}
	give(t, older, "before", "after")
	commit := func(task string) {
		t.Helper()
		if err := older.Commit(t.Context(), testStep(task, 1)); err != nil {
			t.Errorf("a host of the older version: %v", err)
		}
	}
	commit("before")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			s, err := OpenServer(t.Context(), Server{DSN: dsn, Shared: true}, Options{Keyring: &keyring.Options{KEK: testKEK(7)}})
			if err != nil {
				t.Errorf("a host of the newer version: %v", err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := CheckServer(t.Context(), Server{DSN: dsn}); err != nil {
		t.Errorf("CheckServer() after = %v", err)
	}
	commit("after")
}

// TestUpgradeMakesAdditions: a host that shares nothing makes what an older version has not made.
func TestUpgradeMakesAdditions(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	first, err := OpenServer(t.Context(), Server{DSN: dsn}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dropAdditions(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := OpenServer(t.Context(), Server{DSN: dsn}, Options{})
	if err == nil {
		err = errors.Join(CheckServer(t.Context(), Server{DSN: dsn}), second.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// TestServerOfNewerVersion: a host lives beside tables and indexes that it does not have: it opens the server,
// erases a tenant, and is copied.
func TestServerOfNewerVersion(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	older := openShared(t, dsn)
	const newer = "CREATE TABLE newer (tenant BYTEA PRIMARY KEY); CREATE INDEX tasks_newer ON tasks (state, tid)"
	if _, err := older.keyring.db.ExecContext(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	again := openShared(t, dsn)
	give(t, again, "task")
	if err := again.Commit(t.Context(), testStep("task", 1)); err != nil {
		t.Fatal(err)
	}
	if err := again.Backup(t.Context(), filepath.Join(t.TempDir(), "copy")); err != nil {
		t.Error(err)
	}
	if err := again.Erase(t.Context(), testInstance.Tenant); err != nil {
		t.Error(err)
	}
	if _, err := again.Load(t.Context(), testKey("task")); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("Load() of an erased task = %v", err)
	}
}
