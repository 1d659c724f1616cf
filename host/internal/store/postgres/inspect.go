package postgres

import (
	"context"
	"errors"
	"fmt"

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

// Inspect connects to a server and changes nothing. Its error has a [Unfit] for each reason
// why the server is not fit, see [FindUnfit].
func Inspect(ctx context.Context, c *Connector) (found Condition, err error) {
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
	return found, errors.Join(checkServer(ctx, pg, c.Replicated), checkSchema(ctx, pg, found.Schema))
}

// checkSchema refuses a role that cannot make tables.
func checkSchema(ctx context.Context, pg *pgconn.PgConn, schema string) error {
	if schema == "" {
		return unfit("dsn", "no schema of its search_path is there: make one with CREATE SCHEMA, or name another one")
	}
	may, err := show(ctx, pg, "SELECT has_schema_privilege(current_schema(), 'CREATE')::text")
	if err == nil && may != "true" {
		err = unfit("dsn", "its role may make no tables in the schema %s: GRANT CREATE ON SCHEMA %[1]s TO it", fmt.Sprintf("%q", schema))
	}
	return err
}
