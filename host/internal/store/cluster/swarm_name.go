package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// nameTables have the name of the swarm whose tasks these are. The first host writes it, and no host another one.
const nameTables = `
CREATE TABLE IF NOT EXISTS swarm_name (
	one  BOOL PRIMARY KEY DEFAULT true CHECK (one),
	name TEXT NOT NULL
);`

// checkSwarm refuses a host of another swarm, whatever its version and whether others are alive: it would take tasks
// that its file does not cover.
func (m *Member) checkSwarm(ctx context.Context) error {
	if err := m.moves.exec(ctx, "INSERT INTO swarm_name (name) VALUES ($1) ON CONFLICT DO NOTHING", m.opts.Swarm); err != nil {
		return err
	}
	var name, schema string
	const text = "SELECT name, quote_ident(current_schema()) FROM swarm_name"
	err := m.moves.query(ctx, text, nil, func(r pgx.Rows) error { return r.Scan(&name, &schema) })
	if err != nil || name == m.opts.Swarm {
		return err
	}
	return fmt.Errorf("the server has the tasks of swarm %q, and this host is of %q: give the host [store] dsn of its own swarm, or name = %q in [swarm]; "+
		"to rename the swarm, stop all its hosts, run this on the server, and start them: UPDATE %s.swarm_name SET name = '%s'",
		name, m.opts.Swarm, name, schema, strings.ReplaceAll(m.opts.Swarm, "'", "''"))
}
