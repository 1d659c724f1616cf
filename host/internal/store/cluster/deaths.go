package cluster

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ID names a piece of work, the same on every host.
type ID = [32]byte

// Deaths are the deaths of hosts at which a piece of work was being done.
type Deaths struct {
	// Here counts deaths of the host with this one's address, Elsewhere of others.
	Here, Elsewhere int
}

// deathTables: computing is what each host does now, which its own death leaves there. A server
// that was killed forgets it. Several hosts may note one death, which
// counts once. The deaths of work that has ended stay there as ended for a while: a host that
// comes back late notes its own again. Work that ends may begin again, as a turn that waited for a person
// does: later deaths count.
const deathTables = `
CREATE UNLOGGED TABLE IF NOT EXISTS computing (
	hid     BIGINT PRIMARY KEY,
	life    BYTEA NOT NULL,
	address TEXT NOT NULL,
	work    BYTEA[] NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS deaths (
	work    BYTEA NOT NULL,
	life    BYTEA NOT NULL,
	address TEXT NOT NULL,
	at      TIMESTAMPTZ NOT NULL DEFAULT now(),
	PRIMARY KEY (work, life)
);
ALTER TABLE deaths ADD COLUMN IF NOT EXISTS ended BOOLEAN NOT NULL DEFAULT false;`

// noteDeaths notes what hosts did that are dead by now.
const noteDeaths = `WITH gone AS (DELETE FROM computing c USING hosts h WHERE h.hid = c.hid AND h.dead RETURNING c.life, c.address, c.work)
	INSERT INTO deaths (work, life, address) SELECT w, life, address FROM gone, unnest(work) w ON CONFLICT DO NOTHING`

// dropOldDeaths drops the deaths that no host notes again.
const dropOldDeaths = "DELETE FROM deaths WHERE at < now() - interval '30 days'"

// readDeaths reads the deaths for which work may be to blame. The work of slots that this host has
// taken is among it: a host is dead before its slots are free.
func (m *Member) readDeaths(ctx context.Context) error {
	for _, text := range []string{noteDeaths, dropOldDeaths} {
		if err := m.moves.exec(ctx, text); err != nil {
			return err
		}
	}
	found := map[ID]Deaths{}
	const text = "SELECT work, address FROM deaths WHERE NOT ended"
	err := m.moves.query(ctx, text, nil, func(r pgx.Rows) error {
		var work []byte
		var address string
		err := r.Scan(&work, &address)
		id := toID(work)
		d := found[id]
		if address == m.opts.Address {
			d.Here++
		} else {
			d.Elsewhere++
		}
		found[id] = d
		return err
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deaths = found
	return nil
}

// Deaths returns the deaths for which work may be to blame, as they were when this host last took
// slots.
func (m *Member) Deaths() map[ID]Deaths {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deaths
}

// NoteDeath notes what this host did when an earlier life of it ended, by its own disk: the others
// may not have been told. It is called before Run.
func (m *Member) NoteDeath(ctx context.Context, life []byte, work []ID) error {
	if len(work) == 0 {
		return nil
	}
	const text = "INSERT INTO deaths (work, life, address) SELECT w, $2, $3 FROM unnest($1::bytea[]) w ON CONFLICT DO NOTHING"
	return m.moves.exec(ctx, text, toBytes(work), life, m.opts.Address)
}

// ForgetLife clears the work of an earlier life of this host that ended in order, but could not tell the others: it is
// to blame for nothing, also where they have noted a death meanwhile. It is called before Run.
func (m *Member) ForgetLife(ctx context.Context, life []byte) error {
	for _, text := range []string{"DELETE FROM computing WHERE life = $1", "DELETE FROM deaths WHERE life = $1"} {
		if err := m.moves.exec(ctx, text, life); err != nil {
			return err
		}
	}
	return nil
}

// toID returns the piece of work of a row.
func toID(work []byte) ID {
	return ID(append(make([]byte, 0, len(ID{})), work...)[:len(ID{}):len(ID{})])
}

func toBytes(work []ID) [][]byte {
	out := make([][]byte, 0, len(work))
	for _, id := range work {
		out = append(out, id[:])
	}
	return out
}
