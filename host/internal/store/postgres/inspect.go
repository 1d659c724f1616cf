package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
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
	if err := checkPrimary(ctx, pg); err != nil {
		return found, err // its settings say nothing of its primary's
	}
	return found, errors.Join(checkServer(ctx, pg, c.Replicated), checkReadOnly(ctx, pg), checkStandbys(ctx, pg, found.Standbys))
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
		return checkPath(ctx, pg, found["path"], found["role"])
	case found["may"] != "true":
		return unfit("dsn", fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s", found["schema"], found["role"]), "its role may make no tables in the schema %s", found["schema"])
	}
	return nil
}

// checkPath refuses a search_path without a schema that is there. Its last one is where the tables are to lie.
func checkPath(ctx context.Context, pg *pgconn.PgConn, path, role string) error {
	name := lastSchema(path)
	if name == "" {
		return unfit("dsn", "name a schema with search_path in the DSN", "its search_path, %s, names no schema", path)
	}
	schema := role
	if name != "$user" {
		var err error
		if schema, err = show(ctx, pg, "SELECT quote_ident($1)", name); err != nil {
			return err
		}
	}
	return unfit("dsn", fmt.Sprintf("CREATE SCHEMA %s AUTHORIZATION %s; or, if it is there, GRANT USAGE, CREATE ON SCHEMA %[1]s TO %[2]s", schema, role),
		"no schema of its search_path, %s, is there and open to its role", path)
}

// lastSchema returns the last name of a search_path, without quotes
// (https://www.postgresql.org/docs/15/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS).
func lastSchema(path string) string {
	var name strings.Builder
	quoted := false
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case quoted && strings.HasPrefix(path[i:], `""`):
			name.WriteByte(c)
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
			name.WriteByte(c)
		case c == ',':
			name.Reset()
		case c != ' ':
			name.WriteString(strings.ToLower(path[i : i+1]))
		}
	}
	return name.String()
}

// checkPrimary refuses a standby. A host waits for its promotion.
func checkPrimary(ctx context.Context, pg *pgconn.PgConn) error {
	standby, err := show(ctx, pg, "SELECT pg_is_in_recovery()::text")
	if err == nil && standby == "true" {
		err = unfit("dsn", "name its primary, or both with target_session_attrs=read-write", "the server is a standby, which takes no writes")
	}
	return err
}

// checkReadOnly refuses a primary whose transactions only read unless they say otherwise.
func checkReadOnly(ctx context.Context, pg *pgconn.PgConn) error {
	readOnly, err := show(ctx, pg, "SELECT current_setting('transaction_read_only')")
	if err != nil || readOnly != "on" {
		return err
	}
	role, err := show(ctx, pg, "SELECT quote_ident(current_user)")
	if err == nil {
		err = unfit("dsn", fmt.Sprintf("ALTER ROLE %s SET default_transaction_read_only = off; it may also be on in the DSN, or for the role in this database alone", role),
			"the server has default_transaction_read_only = on for its role, which can write nothing")
	}
	return err
}

// checkStandbys refuses a server that has too few to acknowledge its writes. A host waits for them.
func checkStandbys(ctx context.Context, pg *pgconn.PgConn, names string) error {
	if names == "" {
		return nil
	}
	// Who may not read the states of standbys sees a row for each all the same, without its state
	// (https://www.postgresql.org/docs/15/monitoring-stats.html#MONITORING-PG-STAT-REPLICATION-VIEW).
	text, err := show(ctx, pg, "SELECT count(*)::text FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')")
	if err != nil {
		return err
	}
	following, err := strconv.Atoi(text)
	asked := standbysAsked(names)
	if err != nil || following >= asked {
		return err
	}
	have := "none of them follows it"
	if following > 0 {
		have = fmt.Sprintf("only %d of the %d that it asks for follow it", following, asked)
	}
	return unfit("durability", "start a standby that follows it, or leave those out of its synchronous_standby_names that are gone, and reload it",
		"the server has synchronous_standby_names = %s and %s, so every write waits", names, have)
}

// countedStandbys matches the number of a synchronous_standby_names that has one.
var countedStandbys = regexp.MustCompile(`(?i)^\s*(?:(?:first|any)\s+)?(\d+)\s*\(`)

// standbysAsked returns how many standbys have to acknowledge a write
// (https://www.postgresql.org/docs/15/runtime-config-replication.html#GUC-SYNCHRONOUS-STANDBY-NAMES).
func standbysAsked(names string) int {
	if m := countedStandbys.FindStringSubmatch(names); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return 1
}
