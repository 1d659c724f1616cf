package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Pair is a primary and a standby that follows it. A killed primary is replaced by its standby.
type Pair struct {
	Primary, Standby *Server
}

// StartPair starts a primary and its standby for this test alone. With synchronous the primary
// acknowledges what the standby has as well, and so does a standby once it is promoted: it waits
// for a standby of its own.
func StartPair(t testing.TB, synchronous bool) *Pair {
	t.Helper()
	more := ""
	if synchronous {
		more = "synchronous_standby_names = 'ANY 1 (*)'\n"
	}
	p := &Pair{Primary: start(t, more)}
	standby, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.stop() })
	p.Standby = standby
	p.Follow(t)
	return p
}

// DSN leads to the one of both that is the primary, with further parameters.
func (p *Pair) DSN(params ...string) string {
	q := url.Values{"host": {p.Primary.dir + "," + p.Standby.dir}, "target_session_attrs": {"read-write"}}
	for i := 0; i+1 < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	return "postgres://skep@/postgres?" + q.Encode()
}

// Promote makes the standby of a killed primary the primary.
func (p *Pair) Promote(t testing.TB) {
	t.Helper()
	for {
		err := p.Standby.run(t.Context(), "SELECT pg_promote(true)")
		if err == nil {
			break
		}
		// What it replays may call a query off: https://www.postgresql.org/docs/15/hot-standby.html#HOT-STANDBY-CONFLICT
		if conflict, ok := errors.AsType[*pgconn.PgError](err); !ok || conflict.Code != "40001" {
			t.Fatal(err)
		}
	}
	p.Primary, p.Standby = p.Standby, p.Primary
}

// Follow makes a standby of the primary, in the place of the server that was replaced.
func (p *Pair) Follow(t testing.TB) {
	t.Helper()
	s := p.Standby
	if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`exec "$0" -D data -h '%s' -U skep -X stream -c fast -R --no-sync`, p.Primary.dir)
	if out, err := s.command(script, "pg_basebackup").CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	if err := s.configure(""); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	p.waitForStandby(t)
}

// waitForStandby waits until the standby gets what the primary writes.
func (p *Pair) waitForStandby(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.Primary.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var state string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := conn.QueryRow(t.Context(), "SELECT state FROM pg_stat_replication").Scan(&state)
		if err == nil && state == "streaming" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the standby does not follow: %q, %v", state, err)
		}
	}
}
