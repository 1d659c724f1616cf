package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// minServer is the oldest version that is accepted: pg_terminate_backend waits since 14.
const minServer = 140000

// checkServer refuses a server that does not keep what it has acknowledged, and a pooler that
// gives a session's transactions to several processes: a host must be able to end its own.
// replicated refuses one that acknowledges what no standby has.
func checkServer(ctx context.Context, pg *pgconn.PgConn, replicated bool) error {
	found := map[string]string{}
	for _, name := range []string{"server_version_num", "fsync", "full_page_writes", "synchronous_standby_names"} {
		value, err := show(ctx, pg, "SELECT current_setting('"+name+"')")
		if err != nil {
			return err
		}
		found[name] = value
	}
	pid, err := show(ctx, pg, "SELECT pg_backend_pid()::text")
	if err != nil {
		return err
	}
	var errs []error
	if version := found["server_version_num"]; len(version) < 6 || version < fmt.Sprint(minServer) {
		errs = append(errs, fmt.Errorf("the server has version %s, at least %d is needed: use a newer PostgreSQL", version, minServer))
	}
	for _, name := range []string{"fsync", "full_page_writes"} {
		if found[name] != "on" {
			errs = append(errs, fmt.Errorf("the server has %s = %s and forgets in a crash what it has acknowledged: set %s = on in its postgresql.conf", name, found[name], name))
		}
	}
	if replicated && found["synchronous_standby_names"] == "" {
		errs = append(errs, errors.New("the server has no synchronous standby, and what it has acknowledged is lost with it: set synchronous_standby_names in its postgresql.conf, as ANY 1 (…) of two standbys"))
	}
	if pid != fmt.Sprint(pg.PID()) {
		errs = append(errs, errors.New("a pooler stands before the server: let [store] dsn name the server itself"))
	}
	return errors.Join(errs...)
}

// IsOwnFault reports whether an error is the fault of the statement that met it: of its
// arguments, a constraint or a limit (https://www.postgresql.org/docs/15/errcodes-appendix.html).
func IsOwnFault(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pgErr.Code == divisionByZero {
		return false
	}
	switch pgErr.Code[:min(2, len(pgErr.Code))] {
	case "22", "23", "54":
		return true
	}
	return false
}

func show(ctx context.Context, pg *pgconn.PgConn, text string) (string, error) {
	r := pg.ExecParams(ctx, text, nil, nil, nil, nil).Read()
	if r.Err != nil {
		return "", r.Err
	}
	return string(r.Rows[0][0]), nil
}
