package postgres

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"skep/host/internal/store/pgtest"
)

// TestReadOnlyServer: groups wait for a server that takes no writes for a while, as one that is
// being replaced.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	w := openWriter(t, connector(t, s.DSN()))
	if err := w.write(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	operator := s.DSN("default_transaction_read_only", "off")
	setReadOnly := func(on string) {
		change(t, operator, "ALTER SYSTEM SET default_transaction_read_only = "+on)
		change(t, operator, "SELECT pg_reload_conf()")
	}
	setReadOnly("on")
	for one := int64(0); one == 0; { // a session reads its settings again before its next statement
		row, err := w.ask(t.Context(), "SELECT (current_setting('default_transaction_read_only') = 'on')::int::bigint")
		if err != nil {
			t.Fatal(err)
		}
		one = row[0]
	}
	done := make(chan error, 1)
	go func() { done <- w.write(t.Context(), 2) }()
	select {
	case err := <-done:
		t.Fatal("a group on a server that is only read:", err)
	case <-time.After(3 * minPause): // what fails does so at once
	}
	setReadOnly("off")
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantNumbers(t, s.DSN(), 2)
}

// TestCloseAfterServer: what is closed once the server has ended its session, with nothing to be
// written, has no error: the server has let go of it.
func TestCloseAfterServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	for _, end := range []func(pids []int64){
		func(pids []int64) {
			for _, pid := range pids {
				change(t, s.DSN(), fmt.Sprintf("SELECT pg_terminate_backend(%d)", pid))
			}
		},
		func([]int64) { s.Kill(t) },
	} {
		c := connector(t, s.DSN())
		var closers []func() error
		var pids []int64
		for _, db := range []*sql.DB{sql.OpenDB(c), sql.OpenDB(c.ReadOnly())} {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			statement, err := conn.PrepareContext(t.Context(), "SELECT pg_backend_pid()::bigint")
			var pid int64
			if err == nil {
				err = statement.QueryRowContext(t.Context()).Scan(&pid)
			}
			if err != nil {
				t.Fatal(err)
			}
			closers, pids = append(closers, statement.Close, conn.Close, db.Close), append(pids, pid)
		}
		end(pids)
		for _, closeIt := range closers {
			if err := closeIt(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		}
	}
}

// TestIsAway: an error of a server that ends, starts or has no free connection says nothing of
// the statement.
func TestIsAway(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"57P01": true, "57P02": true, "57P03": true, "57P05": true, "08006": true, "08P01": true, "53300": true,
		"25006": false, "23505": false, "57014": false, "28P01": false, "42P01": false,
	} {
		if got := IsAway(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("IsAway(%s) = %v", code, got)
		}
	}
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}} {
		if !IsAway(err) {
			t.Errorf("IsAway(%v) = false", err)
		}
	}
	if IsAway(sql.ErrNoRows) {
		t.Error("a row that is not there is taken for a server that is away")
	}
	conn, err := pgx.Connect(t.Context(), pgtest.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT 1"); !IsAway(err) {
		t.Errorf("IsAway(%v) = false", err)
	}
}
