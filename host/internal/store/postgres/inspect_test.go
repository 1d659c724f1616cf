package postgres

import (
	"strings"
	"testing"

	"skep/host/internal/store/pgtest"
)

// TestInspectStandby: a server with a standby that follows is fit for a host that needs one, and the standby itself is
// not. A role that may not see the standby's state finds the same.
func TestInspectStandby(t *testing.T) {
	t.Parallel()
	p := pgtest.StartPair(t, true)
	p.Primary.Exec(t, "CREATE ROLE poor LOGIN", "CREATE SCHEMA poor AUTHORIZATION poor")
	for _, user := range []string{"skep", "poor"} {
		c := connector(t, p.Primary.DSN("user", user))
		c.Replicated = true
		if found, err := Inspect(t.Context(), c); err != nil || found.Standbys != "ANY 1 (*)" {
			t.Errorf("the primary, as %s: %+v, %v", user, found, err)
		}
	}
	_, err := Inspect(t.Context(), connector(t, p.Standby.DSN()))
	if all := FindUnfit(err); len(all) != 1 || all[0].Setting != "dsn" || !strings.Contains(all[0].Error(), "is a standby, which takes no writes: name its primary") {
		t.Errorf("the standby: %v", err)
	}
}

// TestWriterSettings: a server that acknowledges before its disk has what it acknowledges does not so for a host.
func TestWriterSettings(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	s.Exec(t, "ALTER ROLE skep SET synchronous_commit = off")
	ask := "SELECT (current_setting('synchronous_commit') = 'on')::int::bigint"
	if other := pgtest.Number(t, s.DSN(), ask); other() != 0 {
		t.Fatal("the setting of the role does not hold for others")
	}
	if _, err := Inspect(t.Context(), connector(t, s.DSN())); err != nil {
		t.Error(err)
	}
	if row, err := openWriter(t, connector(t, s.DSN())).ask(t.Context(), ask); err != nil || row[0] != 1 {
		t.Errorf("the writer has synchronous_commit off: %v, %v", row, err)
	}
}

// TestWriterSchema: a host whose role may make no tables ends with what to type.
func TestWriterSchema(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	s.Exec(t, "CREATE ROLE poor LOGIN", "CREATE SCHEMA hive", "GRANT USAGE ON SCHEMA hive TO poor")
	c := connector(t, s.DSN("user", "poor", "search_path", "hive"))
	if _, err := OpenWriter(t.Context(), c); err == nil || !strings.HasSuffix(err.Error(), ": GRANT CREATE ON SCHEMA hive TO poor") {
		t.Fatal(err)
	}
	s.Exec(t, "GRANT CREATE ON SCHEMA hive TO poor")
	openWriter(t, c)
}
