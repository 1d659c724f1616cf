package postgres

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"skep/host/internal/store/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writer writes numbers in groups, as the store does.
type writer struct {
	*Conn
	db  *sql.DB
	on  *sql.Conn
	add *sql.Stmt
}

// openWriter opens a writer, with a table of its numbers.
func openWriter(t *testing.T, c *Connector) *writer {
	t.Helper()
	below, err := OpenWriter(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{Conn: below, db: below.DB()}
	t.Cleanup(w.close)
	if w.on, err = w.db.Conn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.on.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS numbers (n BIGINT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	if w.add, err = w.on.PrepareContext(t.Context(), "INSERT INTO numbers VALUES (?)"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *writer) close() {
	if w.on != nil {
		_ = w.on.Close()
	}
	_ = w.db.Close()
}

func connector(t *testing.T, dsn string) *Connector {
	t.Helper()
	c, err := NewConnector(dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// try writes a group once.
func (w *writer) try(ctx context.Context, n int64) error {
	if err := w.BeginGroup(ctx); err != nil {
		return err
	}
	if _, err := w.add.ExecContext(ctx, n); err != nil {
		return w.RollbackGroup(ctx, err)
	}
	if err := w.CommitGroup(ctx); err != nil {
		return w.RollbackGroup(ctx, err)
	}
	return nil
}

// write writes a group until it is there.
func (w *writer) write(ctx context.Context, n int64) error {
	for {
		if err := w.try(ctx, n); !errors.Is(err, ErrRepeat) {
			return err
		}
	}
}

// wantNumbers asserts that each number up to last is there once.
func wantNumbers(t *testing.T, dsn string, last int64) {
	t.Helper()
	db := sql.OpenDB(connector(t, dsn).ReadOnly())
	defer db.Close()
	var all, distinct, highest int64
	err := db.QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT n), coalesce(max(n), 0) FROM numbers").Scan(&all, &distinct, &highest)
	if err != nil || all != last || distinct != last || highest != last {
		t.Errorf("%d numbers, %d distinct, up to %d, %v; want %d", all, distinct, highest, err, last)
	}
}

// change changes the database as another program would.
func change(t *testing.T, dsn, text string) {
	t.Helper()
	db := sql.OpenDB(connector(t, dsn))
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

func TestFenced(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	w := openWriter(t, connector(t, dsn))
	if err := w.write(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	change(t, dsn, "UPDATE hosts SET dead = true")
	for range 2 {
		if err := w.write(t.Context(), 2); !errors.Is(err, ErrFenced) {
			t.Errorf("a group of a fenced host: %v", err)
		}
	}
	wantNumbers(t, dsn, 1)
}

// TestTakenOver: a host that comes later fences the one before.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	w := openWriter(t, connector(t, dsn))
	if _, err := w.ask(t.Context(), "SELECT pg_advisory_unlock_all() IS NULL"); err != nil { // as a server that has ended the session
		t.Fatal(err)
	}
	other := openWriter(t, connector(t, dsn))
	if err := w.write(t.Context(), 1); !errors.Is(err, ErrFenced) {
		t.Errorf("a group of the host before: %v", err)
	}
	if err := other.write(t.Context(), 1); err != nil {
		t.Error(err)
	}
	wantNumbers(t, dsn, 1)
}

func TestInUse(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	w := openWriter(t, connector(t, dsn))
	if _, err := OpenWriter(t.Context(), connector(t, dsn)); !errors.Is(err, ErrInUse) {
		t.Errorf("a second host: %v", err)
	}
	if err := w.write(t.Context(), 1); err != nil {
		t.Errorf("the first host: %v", err)
	}
}

// TestLost: a server that has fewer groups than it has acknowledged stops the host, which says
// how many.
func TestLost(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	w := openWriter(t, connector(t, dsn))
	for n := range int64(5) {
		if err := w.write(t.Context(), n+1); err != nil {
			t.Fatal(err)
		}
	}
	change(t, dsn, "UPDATE hosts SET seq = 2")
	for range 2 {
		err := w.write(t.Context(), 6)
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "3 are gone") {
			t.Errorf("a group after a loss: %v", err)
		}
	}
	wantNumbers(t, dsn, 5)
}

// TestOldPrimary: a server whose history was replaced is refused.
func TestOldPrimary(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	w := openWriter(t, connector(t, dsn))
	w.close()
	change(t, dsn, "UPDATE timeline SET number = 7")
	if _, err := OpenWriter(t.Context(), connector(t, dsn)); !errors.Is(err, ErrLost) {
		t.Errorf("a server with an older history: %v", err)
	}
}

func TestServerThatForgets(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	change(t, s.DSN(), "ALTER SYSTEM SET full_page_writes = off")
	change(t, s.DSN(), "ALTER SYSTEM SET fsync = off")
	s.Kill(t)
	s.Start(t)
	c := connector(t, s.DSN())
	c.Replicated = true
	_, err := OpenWriter(t.Context(), c)
	for _, want := range []string{"fsync = on", "full_page_writes = on", "synchronous_standby_names"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("OpenWriter() = %v, want %q", err, want)
		}
	}
}

// cutConn is a connection that breaks when the server has got a COMMIT and before its answer.
type cutConn struct {
	net.Conn
	cut *atomic.Bool
}

func (c cutConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil && bytes.Contains(b, []byte("COMMIT\x00")) && c.cut.Load() {
		_ = c.Conn.Close()
	}
	return n, err
}

// cutting returns a connector whose connections break while cut is set.
func cutting(t *testing.T, dsn string) (c *Connector, cut *atomic.Bool) {
	t.Helper()
	c, cut = connector(t, dsn), &atomic.Bool{}
	var dialer net.Dialer
	c.config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		return cutConn{conn, cut}, err
	}
	return c, cut
}

// TestCut: a connection that breaks between each COMMIT and its answer loses nothing and
// doubles nothing. make failover cuts 1,000 times.
func TestCut(t *testing.T) {
	t.Parallel()
	rounds := int64(200)
	if text := os.Getenv("SKEP_CUTS"); text != "" {
		var err error
		if rounds, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	dsn := pgtest.Schema(t)
	c, cut := cutting(t, dsn)
	w := openWriter(t, c)
	repeated := 0
	for n := int64(1); n <= rounds; {
		cut.Store(true)
		switch err := w.try(t.Context(), n); {
		case errors.Is(err, ErrRepeat):
			repeated++
		case err != nil:
			t.Fatalf("group %d: %v", n, err)
		default:
			n++
		}
	}
	cut.Store(false)
	wantNumbers(t, dsn, rounds)
	t.Logf("%d of %d groups were undone by the cut and written again", repeated, rounds)
}

// TestKill: the server is killed while groups are written, and starts again.
func TestKill(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	w := openWriter(t, connector(t, s.DSN()))
	const rounds = 3
	var written atomic.Int64
	done := make(chan error, 1)
	stop, cancel := context.WithCancel(t.Context())
	go func() {
		for n := int64(1); stop.Err() == nil; n++ {
			if err := w.write(context.WithoutCancel(stop), n); err != nil {
				done <- err
				return
			}
			written.Store(n)
		}
		done <- nil
	}()
	for range rounds {
		before := written.Load()
		for written.Load() < before+20 {
			select {
			case err := <-done:
				t.Fatal(err)
			default:
			}
		}
		s.Kill(t)
		s.Start(t)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantNumbers(t, s.DSN(), written.Load())
}

// TestStopWaiting: a host that stops does not wait for a server that is gone.
func TestStopWaiting(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	w := openWriter(t, connector(t, s.DSN()))
	s.Kill(t)
	w.StopWaiting()
	if err := w.write(t.Context(), 1); err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrLost) {
		t.Errorf("a group without a server: %v", err)
	}
}

// countingConn counts what is sent at once.
type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestRoundTrips: a group whose statements need no answer is sent at once.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	c, writes := connector(t, dsn), &atomic.Int64{}
	var dialer net.Dialer
	c.config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		return countingConn{conn, writes}, err
	}
	w := openWriter(t, c)
	if err := w.write(t.Context(), 1); err != nil { // prepares the fence
		t.Fatal(err)
	}
	before := writes.Load()
	if err := w.BeginGroup(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := int64(2); n <= 100; n++ {
		if _, err := w.add.ExecContext(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.CommitGroup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sent := writes.Load() - before; sent != 1 {
		t.Errorf("a group was sent in %d parts", sent)
	}
	wantNumbers(t, dsn, 100)
}

// TestReadOnly: connections that only read are made to the server that the DSN asks to be the
// primary.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(connector(t, pgtest.Schema(t)+"&target_session_attrs=read-write").ReadOnly())
	defer db.Close()
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}
