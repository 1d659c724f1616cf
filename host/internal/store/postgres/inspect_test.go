package postgres

import (
	"strings"
	"testing"
	"time"

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
	standby := connector(t, p.Standby.DSN())
	standby.Replicated = true
	_, err := Inspect(t.Context(), standby)
	if all := FindUnfit(err); len(all) != 1 || all[0].Setting != "dsn" || !strings.Contains(all[0].Error(), "is a standby, which takes no writes: name its primary") {
		t.Errorf("the standby: %v", err)
	}
	_, err = Inspect(t.Context(), connector(t, p.Standby.DSN("target_session_attrs", "read-write")))
	if all := FindUnfit(err); len(all) != 1 || !strings.HasPrefix(all[0].Fix, "name the primary in the DSN as well") {
		t.Errorf("no primary: %v", err)
	}
	p.Primary.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 2 (*)'", "SELECT pg_reload_conf()")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		found, err := Inspect(t.Context(), connector(t, p.Primary.DSN()))
		if all := FindUnfit(err); len(all) == 1 && strings.Contains(all[0].Error(), "only 1 of the 2 that it asks for") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("one standby of two: %+v, %v", found, err)
		}
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

// TestInspectSchema: what is to be typed for a role without a schema makes the schema that its search_path ends with,
// whatever its name has in it.
func TestInspectSchema(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	s.Exec(t, "CREATE ROLE poor LOGIN", "CREATE SCHEMA bystander")
	for path, want := range map[string]string{
		`nosuch, "$user"`:                     "CREATE SCHEMA poor AUTHORIZATION poor",
		`"a,b"`:                               `CREATE SCHEMA "a,b" AUTHORIZATION poor`,
		`x, "y""; DROP SCHEMA bystander; --"`: `CREATE SCHEMA "y""; DROP SCHEMA bystander; --" AUTHORIZATION poor`,
		`One`:                                 "CREATE SCHEMA one AUTHORIZATION poor",
		`""`:                                  "",
		``:                                    "",
	} {
		c := connector(t, strings.ReplaceAll(s.DSN("user", "poor", "search_path", path), "+", "%20")) // a plus is no space to the server's programs
		_, err := Inspect(t.Context(), c)
		all := FindUnfit(err)
		if len(all) != 1 {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if want == "" {
			if fix := all[0].Fix; fix != "name a schema with search_path in the DSN" {
				t.Errorf("%s: %s", path, fix)
			}
			continue
		}
		if fix := all[0].Fix; !strings.HasPrefix(fix, want+"; or") {
			t.Errorf("%s: %s", path, fix)
			continue
		}
		s.Exec(t, want)
		if _, err := Inspect(t.Context(), c); err != nil {
			t.Errorf("%s: after %s: %v", path, want, err)
		}
		s.Exec(t, strings.Replace(strings.TrimSuffix(want, " AUTHORIZATION poor"), "CREATE", "DROP", 1))
	}
}

// TestInspectReadOnly: a role whose transactions only read is found, and what to type mends it.
func TestInspectReadOnly(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	s.Exec(t, "CREATE ROLE poor LOGIN", "CREATE SCHEMA poor AUTHORIZATION poor", "ALTER ROLE poor SET default_transaction_read_only = on")
	c := connector(t, s.DSN("user", "poor"))
	_, err := Inspect(t.Context(), c)
	all := FindUnfit(err)
	if len(all) != 1 || !strings.HasPrefix(all[0].Fix, "ALTER ROLE poor SET default_transaction_read_only = off;") {
		t.Fatal(err)
	}
	fix, _, _ := strings.Cut(all[0].Fix, ";")
	s.Exec(t, fix)
	if _, err := Inspect(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// TestStandbysAsked reads the number of standbys in each form of the setting.
func TestStandbysAsked(t *testing.T) {
	for names, want := range map[string]int{"a": 1, "*": 1, "a, b": 1, "2 (a, b)": 2, "FIRST 2 (*)": 2, "any 3(a,b,c)": 3, "ANY 1 (*)": 1} {
		if got := standbysAsked(names); got != want {
			t.Errorf("%s: %d, want %d", names, got, want)
		}
	}
}
