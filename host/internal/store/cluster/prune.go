package cluster

import (
	"context"
	"errors"
)

// keptHosts is how many of the newest hosts stay known when they are dead: one that stood still for long
// finds that it is fenced. prunedHosts bounds how many rows of a table are dropped at once.
const (
	keptHosts   = 1000
	prunedHosts = 1000
)

// pruneTables drop what is kept of hosts that are dead and have no slots. A host that has ended before its first
// sign of life is not marked as dead: it has no session.
var pruneTables = []string{
	`DELETE FROM beats WHERE hid IN (SELECT hid FROM beats b` + pruned,
	`DELETE FROM votes WHERE hid IN (SELECT hid FROM votes b` + pruned,
	`DELETE FROM roster WHERE hid IN (SELECT hid FROM roster b` + pruned,
	`WITH gone AS (SELECT hid FROM hosts h WHERE hid <= (SELECT max(hid) FROM hosts) - $1::bigint
		AND (h.dead OR NOT EXISTS (SELECT FROM beats b WHERE b.hid = h.hid)
			AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = h.pid AND a.application_name = 'skep'))
		AND NOT EXISTS (SELECT FROM slots s WHERE s.hid = h.hid) AND NOT EXISTS (SELECT FROM computing c WHERE c.hid = h.hid)
		ORDER BY hid LIMIT $2 FOR UPDATE OF h SKIP LOCKED)
	DELETE FROM hosts USING gone WHERE hosts.hid = gone.hid`,
}

const pruned = ` WHERE hid <= (SELECT max(hid) FROM hosts) - $1::bigint AND NOT EXISTS (SELECT FROM hosts h WHERE h.hid = b.hid AND NOT h.dead)
	ORDER BY hid LIMIT $2 FOR UPDATE SKIP LOCKED)`

// pruneHosts drops what is kept of hosts that are dead. A host that takes slots calls it: only when hosts come
// and go there are more.
func (m *Member) pruneHosts(ctx context.Context) (err error) {
	err = m.moves.exec(ctx, "DELETE FROM loads l WHERE NOT EXISTS (SELECT FROM hosts h WHERE h.hid = l.hid AND NOT h.dead)")
	for _, text := range pruneTables {
		err = errors.Join(err, m.moves.exec(ctx, text, keptHosts, prunedHosts))
	}
	return err
}
