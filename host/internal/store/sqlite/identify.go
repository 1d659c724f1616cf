package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schema is what a database declares, by kind and name.
type schema map[schemaName]schemaEntry

type schemaName struct{ kind, name string }

func (n schemaName) String() string { return fmt.Sprintf("%s %q", n.kind, n.name) }

type schemaEntry struct{ table, sql string }

// identify refuses a file that is not ours before anything is written to it, and returns
// the version of its schema, 0 for an empty file. A schema that is not the one that the
// migrations make is refused: its triggers, checks and virtual tables would run with our
// statements, and a view could stand in for a table.
func identify(ctx context.Context, c *sql.Conn) (version int, err error) {
	var id int64
	if err := c.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return 0, err
	}
	have, err := readSchema(ctx, c)
	if err != nil {
		return 0, err
	}
	switch {
	case id != applicationID && (id != 0 || len(have) > 0):
		return 0, fmt.Errorf("%w: it belongs to another program (application id %#x): choose another data directory", errForeign, id)
	case len(have) == 0:
		return 0, nil
	}
	versions := schemaName{"table", "versions"}
	if have[versions].sql != versionsTable { // a view could go on for ever
		return 0, fmt.Errorf("%w: its %v is not as skep makes it", errForeign, versions)
	}
	if version, err = schemaVersion(ctx, c); err != nil {
		return 0, err
	}
	if err := tooNew(version, len(migrations)); err != nil {
		return 0, err
	}
	if version < 1 {
		return 0, fmt.Errorf("%w: its schema has the version %d", errForeign, version)
	}
	want, err := schemaOf(ctx, version)
	if err != nil {
		return 0, err
	}
	return version, compareSchema(have, want)
}

// compareSchema names the first difference.
func compareSchema(have, want schema) error {
	for _, names := range []schema{have, want} {
		for _, n := range slices.SortedFunc(maps.Keys(names), func(a, b schemaName) int { return cmp.Compare(a.String(), b.String()) }) {
			h, isThere := have[n]
			w, wanted := want[n]
			switch {
			case !wanted:
				return fmt.Errorf("%w: its %v is none of skep's: drop it, or use a backup without it", errForeign, n)
			case !isThere:
				return fmt.Errorf("%w: its %v is missing: use another backup", errForeign, n)
			case h != w:
				return fmt.Errorf("%w: its %v is not as skep makes it: use another backup", errForeign, n)
			}
		}
	}
	return nil
}

func readSchema(ctx context.Context, c *sql.Conn) (schema, error) {
	rows, err := c.QueryContext(ctx, "SELECT coalesce(type, ''), coalesce(name, ''), coalesce(tbl_name, ''), coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := schema{}
	for rows.Next() {
		var n schemaName
		var e schemaEntry
		if err := rows.Scan(&n.kind, &n.name, &e.table, &e.sql); err != nil {
			return nil, err
		}
		all[n] = e
	}
	return all, rows.Err()
}

// schemaOf returns what the migrations make up to a version.
func schemaOf(ctx context.Context, version int) (_ schema, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.ExecContext(ctx, "BEGIN; "+versionsTable+"; "+strings.Join(migrations[:version], "\n")); err != nil {
		return nil, err
	}
	return readSchema(ctx, c)
}
