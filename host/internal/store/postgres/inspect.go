package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Condition is what [Inspect] finds at a server.
type Condition struct {
	// Version is the server's own word for it, as in "15.18".
	Version string
	// Schema is where the tables lie.
	Schema string
	// Standbys is its synchronous_standby_names.
	Standbys string
}

// inspectLimit bounds how long a server is looked at: packets to it may be lost.
const inspectLimit = 15 * time.Second

// Inspect connects to a server and changes nothing. Its error has a [Unfit] for each reason
// why the server is not fit, see [FindUnfit].
func Inspect(ctx context.Context, c *Connector) (found Condition, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	pg, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, pg.Close(ctx)) }()
	for text, to := range map[string]*string{
		"SELECT current_setting('server_version')":            &found.Version,
		"SELECT coalesce(current_schema(), '')":               &found.Schema,
		"SELECT current_setting('synchronous_standby_names')": &found.Standbys,
	} {
		if *to, err = show(ctx, pg, text); err != nil {
			return found, err
		}
	}
	return found, errors.Join(checkServer(ctx, pg, c.Replicated), checkWrites(ctx, pg, found.Standbys))
}

// minServer is the oldest version that is accepted: pg_terminate_backend waits since 14.
const minServer = 140000

// checkServer refuses a server that does not keep what it has acknowledged, or has no place for
// the tables. replicated refuses one that acknowledges what no standby has.
func checkServer(ctx context.Context, pg *pgconn.PgConn, replicated bool) error {
	found := map[string]string{}
	for _, name := range []string{"server_version_num", "fsync", "full_page_writes", "synchronous_standby_names"} {
		value, err := show(ctx, pg, "SELECT current_setting('"+name+"')")
		if err != nil {
			return err
		}
		found[name] = value
	}
	var errs []error
	if version := found["server_version_num"]; len(version) < 6 || version < fmt.Sprint(minServer) {
		errs = append(errs, unfit("dsn", "use a newer PostgreSQL", "the server has version %s, at least %d is needed", version, minServer))
	}
	for _, name := range []string{"fsync", "full_page_writes"} {
		if found[name] != "on" {
			errs = append(errs, unfit("dsn", fmt.Sprintf("set %s = on in its postgresql.conf, and reload it", name),
				"the server has %s = %s and forgets in a crash what it has acknowledged", name, found[name]))
		}
	}
	if replicated && found["synchronous_standby_names"] == "" {
		errs = append(errs, unfit("durability", "set synchronous_standby_names in its postgresql.conf, as ANY 1 (…) of two standbys, or [store] durability = \"local\" if that may be",
			"the server has no synchronous standby, and what it has acknowledged is lost with it"))
	}
	return errors.Join(append(errs, checkSession(ctx, pg), checkSchema(ctx, pg))...)
}

// checkSession refuses a pooler that gives a session's transactions to several processes: a host
// must be able to end its own.
func checkSession(ctx context.Context, pg *pgconn.PgConn) error {
	for range 2 { // the first transaction may have the process that the pooler names
		pid, err := show(ctx, pg, "SELECT pg_backend_pid()::text")
		if err != nil {
			return err
		}
		if pid != fmt.Sprint(pg.PID()) {
			return unfit("dsn", "let [store] dsn name the server itself", "a pooler stands before the server")
		}
	}
	return nil
}

// checkSchema refuses a role that cannot make tables. A schema that it may not use is none to it.
func checkSchema(ctx context.Context, pg *pgconn.PgConn) error {
	found := map[string]string{}
	for name, text := range map[string]string{
		"schema": "coalesce(quote_ident(current_schema()), '')", "path": "current_setting('search_path')", "role": "quote_ident(current_user)",
		"may": "coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)::text",
	} {
		value, err := show(ctx, pg, "SELECT "+text)
		if err != nil {
			return err
		}
		found[name] = value
	}
	switch {
	case found["schema"] == "":
		path := strings.Split(found["path"], ",")
		return unfit("dsn", fmt.Sprintf("CREATE SCHEMA %s AUTHORIZATION %s; or, if it is there, GRANT USAGE, CREATE ON SCHEMA %[1]s TO %[2]s", strings.TrimSpace(path[len(path)-1]), found["role"]),
			"no schema of its search_path, %s, is there and open to its role", found["path"])
	case found["may"] != "true":
		return unfit("dsn", fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s", found["schema"], found["role"]), "its role may make no tables in the schema %s", found["schema"])
	}
	return nil
}

// checkWrites refuses a server that takes no writes, or has nobody to acknowledge them. A host
// waits for both to end.
func checkWrites(ctx context.Context, pg *pgconn.PgConn, standbys string) error {
	standby, err := show(ctx, pg, "SELECT pg_is_in_recovery()::text")
	switch {
	case err != nil:
		return err
	case standby == "true":
		return unfit("dsn", "name its primary, or both with target_session_attrs=read-write", "the server is a standby, which takes no writes")
	case standbys == "":
		return nil
	}
	// Who may not read the states of standbys sees a row for each all the same, without its state
	// (https://www.postgresql.org/docs/15/monitoring-stats.html#MONITORING-PG-STAT-REPLICATION-VIEW).
	following, err := show(ctx, pg, "SELECT (count(*) > 0)::text FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')")
	if err == nil && following != "true" {
		err = unfit("durability", "start a standby that follows it, or leave those out of its synchronous_standby_names that are gone, and reload it",
			"the server has synchronous_standby_names = %s and none of them follows it, so every write waits", standbys)
	}
	return err
}
