package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"skep/host/internal/store/pgtest"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// TestSchema: tests do not see each other's tables.
func TestSchema(t *testing.T) {
	t.Parallel()
	one, two := connect(t, pgtest.Schema(t)), connect(t, pgtest.Schema(t))
	exec(t, one, "CREATE TABLE kept (n int)")
	if _, err := two.Exec(t.Context(), "SELECT n FROM kept"); err == nil {
		t.Error("another schema has the table")
	}
}

// TestKill: what was committed outlives a server that is killed, whose connections end.
func TestKill(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	conn := connect(t, s.DSN())
	exec(t, conn, "CREATE TABLE kept (n int)")
	s.Kill(t)
	if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a connection outlives the server")
	}
	s.Start(t)
	exec(t, connect(t, s.DSN()), "SELECT n FROM kept")
}

// TestPair: what a primary has acknowledged is on the standby that replaces it, and so on.
func TestPair(t *testing.T) {
	t.Parallel()
	p := pgtest.StartPair(t, true)
	exec(t, connect(t, p.DSN()), "CREATE TABLE kept (n int)")
	p.Primary.Kill(t)
	p.Promote(t)
	exec(t, connect(t, p.DSN()), "SELECT n FROM kept")
	p.Follow(t)
	exec(t, connect(t, p.DSN()), "INSERT INTO kept VALUES (0)")
}
