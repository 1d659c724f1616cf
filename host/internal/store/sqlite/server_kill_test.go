package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/postgres"
	"skep/host/internal/swarm"
)

func openTestServer(t *testing.T, dsn string) *Store {
	t.Helper()
	s, err := OpenServer(t.Context(), Server{DSN: dsn}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return s
}

// stepsOf commits steps to a task until stop, and counts them.
func stepsOf(ctx context.Context, s *Store, task string, count *atomic.Int64, stop *atomic.Bool) error {
	for n := int64(1); !stop.Load(); n++ {
		var err error
		if n == 1 {
			_, err = s.Accept(ctx, testStep(task, n), testPost(task, n))
		} else {
			err = s.Commit(ctx, testStep(task, n))
		}
		if err != nil {
			return fmt.Errorf("step %d of %s: %w", n, task, err)
		}
		count.Add(1)
	}
	return nil
}

// TestServerKilled: a server that is killed while tasks go on loses no step that was
// acknowledged and doubles none: callers wait until it is back, and none sees an error.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := openTestServer(t, server.DSN())
	const tasks, kills = 8, 3
	var counts [tasks]atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range tasks {
		wg.Go(func() {
			if err := stepsOf(t.Context(), s, fmt.Sprint("t", i), &counts[i], &stop); err != nil {
				t.Error(err)
			}
		})
	}
	for range kills {
		before := counts[0].Load()
		for counts[0].Load() < before+10 && !t.Failed() {
			wait()
		}
		server.Kill(t)
		server.Start(t)
	}
	stop.Store(true)
	wg.Wait()
	for i := range tasks {
		key := swarm.TaskKey{InstanceKey: testInstance, Task: fmt.Sprint("t", i)}
		events, err := s.Events(t.Context(), key, 0, 1<<20)
		for n, e := range events {
			if e.Seq != int64(n)+1 {
				t.Fatalf("event %d of %v has the number %d", n+1, key, e.Seq)
			}
		}
		if n := counts[i].Load(); err != nil || int64(len(events)) != n {
			t.Errorf("%v has %d steps of %d, %v", key, len(events), n, err)
		}
	}
}

// TestServerLoss: a host whose server has lost acknowledged groups stops, and says how many.
func TestServerLoss(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	s := openTestServer(t, dsn)
	for n := range int64(5) {
		if err := s.Commit(t.Context(), testStep("t", n+1)); err != nil {
			t.Fatal(err)
		}
	}
	connector, err := postgres.NewConnector(dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if err := s.End(); err != nil {
		t.Error(err)
	}
	exec(t, db, "UPDATE hosts SET seq = seq - 2")
	err = s.Commit(t.Context(), testStep("t", 6))
	if !errors.Is(err, swarm.ErrFenced) || !strings.Contains(err.Error(), "2 are gone") {
		t.Errorf("Commit() = %v", err)
	}
	select {
	case <-s.Ended():
	default:
		t.Error("the store has not ended")
	}
	if err := s.End(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "2 are gone") {
		t.Errorf("End() = %v", err)
	}
}

// TestServerStatements prepares every statement, those too that only a walk or a chore has.
func TestServerStatements(t *testing.T) {
	t.Parallel()
	s := openTestServer(t, pgtest.Schema(t))
	for _, texts := range []map[**sql.Stmt]string{s.readers.texts(), newWalk(nil, nil).texts(), swapTexts()} {
		for _, text := range texts {
			stmt, err := s.readers.db.PrepareContext(t.Context(), text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if err := stmt.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, query := range []func() error{
		func() error { _, err := s.Definitions(t.Context()); return err },
		func() error { _, err := s.NamedDefinitions(t.Context()); return err },
		func() error { _, err := s.Loaded(t.Context()); return err },
		func() error { _, err := s.Modules(t.Context()); return err },
		func() error { _, err := s.TenantFootprints(t.Context(), "", 10); return err },
	} {
		if err := query(); err != nil {
			t.Error(err)
		}
	}
}
