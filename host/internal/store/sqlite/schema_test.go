package sqlite

import (
	"strings"
	"testing"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	ctx, c := t.Context(), s.writer.conn
	if v, err := schemaVersion(ctx, c); v != len(migrations) || err != nil {
		t.Fatalf("schema version is %d, %v, want %d", v, err, len(migrations))
	}

	next := append(migrations[:len(migrations):len(migrations)],
		"ALTER TABLE tasks ADD COLUMN note TEXT", "CREATE INDEX tasks_by_note ON tasks (note)")
	if err := migrate(ctx, c, next, testTime); err != nil {
		t.Fatal(err)
	}
	if err := migrate(ctx, c, next, testTime); err != nil {
		t.Fatalf("migrate to the version it has = %v", err)
	}
	bad := append(next, "CREATE TABLE half (a); CREATE TABLE half (a)")
	if err := migrate(ctx, c, bad, testTime); err == nil {
		t.Fatal("a step that fails succeeded")
	}
	if v, err := schemaVersion(ctx, c); v != len(next) || err != nil {
		t.Errorf("schema version after a failed step is %d, %v, want %d", v, err, len(next))
	}
	var halves int
	err := c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'").Scan(&halves)
	if halves != 0 || err != nil {
		t.Errorf("a failed step left %d tables behind, %v", halves, err)
	}
}

func TestOpenRefusesNewerSchema(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := openTest(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	exec(t, behind(t, dir), "INSERT INTO versions VALUES (99, 0)")
	refused(t, dir, "schema is version 99", "newer skep")
}

// Every statement finds what it needs by a key. A scan or a sort would cost
// more the longer the host has been in use.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	texts := s.readers.texts()
	for stmt, text := range s.writer.tables.texts() {
		texts[stmt] = text
	}
	for stmt, text := range texts {
		if stmt == &s.readers.claim {
			continue // scans the index of what is running, as it must
		}
		args := make([]any, strings.Count(text, "?"))
		rows, err := s.readers.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(detail, "SCAN") || strings.Contains(detail, "TEMP B-TREE") {
				t.Errorf("%s\nplan: %s", text, detail)
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
