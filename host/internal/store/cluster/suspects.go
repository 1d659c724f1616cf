package cluster

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// suspectTTLs is how many TTL a host waits at most for the others to do what it did when it died.
// silentBeats is how many beats the others are silent when it waits no longer.
const (
	suspectTTLs = 10
	silentBeats = 3
)

// awaitSuspects waits before the first sign of life while other hosts have yet to do what this one did
// when it died: with a share of the slots it would take that up itself, and die of it again.
func (m *Member) awaitSuspects(ctx context.Context, moves Moves) {
	t := time.NewTicker(m.opts.Beat)
	defer t.Stop()
	var last int64
	silent := 0
	for first := m.opts.Now(); m.opts.Now().Sub(first) < suspectTTLs*m.opts.TTL && silent < silentBeats; {
		began := m.opts.Now()
		untried, signs, err := m.readUntried(ctx, moves)
		switch {
		case err == nil && (len(untried) == 0 || signs == 0):
			return
		case err != nil || signs == last:
			silent++
		default:
			silent, last = 0, signs
			err = m.readAll(ctx, began, false)
		}
		if err != nil && ctx.Err() == nil {
			m.opts.Logger.Warn("cannot read whether other hosts do what this one did when it died", "err", err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// readUntried returns what this host did when it died, is still to be done and has not been done at the death of
// another one, and counts the signs of life of the others. What was published or noted as it ended is not among it,
// but its deaths stay: it may be done again later, as work that waits for a person is.
func (m *Member) readUntried(ctx context.Context, moves Moves) (untried []ID, signs int64, err error) {
	suspects, signs, err := m.readSuspects(ctx)
	if err != nil || len(suspects) == 0 || signs == 0 {
		return suspects, signs, err
	}
	untried, err = moves.Undone(ctx, suspects)
	return untried, signs, err
}

// readSuspects returns what this host did when it died and has not been done at the death of another one since,
// unless its end is noted, and counts the signs of life of the others.
func (m *Member) readSuspects(ctx context.Context) (suspects []ID, signs int64, err error) {
	const text = `SELECT ARRAY(SELECT unnest(work) FROM computing WHERE address = $2 AND hid <> $1
		UNION SELECT d.work FROM deaths d WHERE d.address = $2 AND NOT d.ended AND d.at > now() - make_interval(secs => $3)
			AND NOT EXISTS (SELECT FROM deaths e WHERE e.work = d.work AND e.address <> d.address)),
		(SELECT coalesce(sum(b.n), 0)::bigint FROM beats b JOIN hosts h USING (hid) WHERE NOT h.dead AND b.address <> $2)`
	args := []any{m.opts.HID, m.opts.Address, (suspectTTLs * m.opts.TTL).Seconds()}
	var works [][]byte
	err = m.beats.query(ctx, text, args, func(r pgx.Rows) error { return r.Scan(&works, &signs) })
	for _, work := range works {
		suspects = append(suspects, toID(work))
	}
	return suspects, signs, err
}
