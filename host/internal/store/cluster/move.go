package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errWork: the work of a slot that is this host's cannot be taken up or laid down.
var errWork = errors.New("the work of the host's slots")

// Move fences hosts that are silent, and takes free slots or gives some away until each
// host has its share. Run does it after each beat.
func (m *Member) Move(ctx context.Context, moves Moves) error {
	m.fenceSilent(ctx)
	if m.isRetiring() {
		return m.moves.exec(ctx, leave, m.opts.HID)
	}
	if !m.mayTakeSlots() || !m.HasBegun() {
		return nil
	}
	own, err := m.own(ctx)
	if err != nil {
		return err
	}
	// The answer to the statement that took some of them may have been lost.
	if err := m.takeUp(ctx, m.unserved(own), moves); err != nil {
		return err
	}
	share := m.share()
	if len(own) > share {
		return m.give(ctx, own[share:], moves)
	}
	taken, err := m.slots(ctx, takeFree, m.opts.HID, share-len(own))
	if err != nil {
		return err
	}
	m.counters.taken.Add(int64(len(taken)))
	return m.takeUp(ctx, taken, moves)
}

// fenceSilent fences the hosts that are silent.
func (m *Member) fenceSilent(ctx context.Context) {
	for hid, seen := range m.silent() {
		fenced, err := m.Fence(ctx, hid, seen)
		if err != nil { // the others are fenced nevertheless, and this one with the next beat
			m.opts.Logger.Warn("cannot fence a host that is silent", "host", hid, "err", err)
			continue
		}
		if fenced {
			m.counters.fenced.Add(1)
			m.opts.Logger.Warn("fenced a host that is silent", "host", hid, "ttl", m.opts.TTL.String())
		}
	}
}

// silent returns the hosts without a sign of life for TTL, with the number of their last one.
func (m *Member) silent() map[int64]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[int64]int64{}
	for hid, o := range m.others {
		if hid != m.opts.HID && o.silent >= m.opts.TTL {
			found[hid] = o.n
		}
	}
	return found
}

// share is how many slots the host is to have.
func (m *Member) share() int {
	hosts, takes := m.takers()
	if !takes {
		return 0
	}
	return (int(slots) + hosts - 1) / hosts
}

// own returns the host's slots, in order. Only the session that moves slots is asked: what a beat
// has read may be older than the last move.
func (m *Member) own(ctx context.Context) ([]Slot, error) {
	return m.slots(ctx, "SELECT slot FROM slots WHERE hid = $1", m.opts.HID)
}

func (m *Member) slots(ctx context.Context, text string, args ...any) (list []Slot, err error) {
	err = m.moves.query(ctx, text, args, func(r pgx.Rows) error {
		var s Slot
		err := r.Scan(&s)
		list = append(list, s)
		return err
	})
	slices.Sort(list)
	return list, err
}

func (m *Member) unserved(own []Slot) (list []Slot) {
	for _, s := range own {
		if !m.Serves(s) {
			list = append(list, s)
		}
	}
	return list
}

// lockNotAvailable is the SQLSTATE of a row that another session holds.
const lockNotAvailable = "55P03"

// fence marks a host dead, unless it has given a sign of life since the one with a number.
const fence = `UPDATE hosts SET dead = true WHERE hid = $1 AND NOT dead
	AND EXISTS (SELECT 1 FROM beats WHERE hid = $1 AND n = $2)`

// endSession ends the session with which a host writes, in the midst of a group if need be.
const endSession = `SELECT pg_terminate_backend(a.pid, 5000) FROM hosts h JOIN pg_stat_activity a ON a.pid = h.pid
	WHERE h.hid = $1 AND a.application_name = 'skep' AND a.usename = current_user`

// Fence makes a host's writes fail from now on, and its slots free. It reports false for a host
// that is fenced already, or has given a sign of life since the one that was seen.
func (m *Member) Fence(ctx context.Context, hid, seen int64) (fenced bool, err error) {
	n, err := m.moves.change(ctx, fence, hid, seen)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == lockNotAvailable {
		if err := m.moves.exec(ctx, endSession, hid); err != nil {
			return false, err
		}
		n, err = m.moves.change(ctx, fence, hid, seen)
	}
	return n > 0, err
}

// priorFences bounds how often an earlier host is fenced that gives signs of life nevertheless: the server
// may still do what it sent last.
const priorFences = 3

// FencePrior fences [Options].Prior: nobody waits for TTL until its slots are free.
func (m *Member) FencePrior(ctx context.Context) error {
	const text = "SELECT hid, b.n FROM roster r JOIN hosts h USING (hid) JOIN beats b USING (hid) WHERE r.life = $1 AND hid <> $2 AND NOT h.dead"
	if m.opts.Prior == "" {
		return nil
	}
	for range priorFences {
		var hid, seen int64
		err := m.moves.query(ctx, text, []any{m.opts.Prior, m.opts.HID}, func(r pgx.Rows) error { return r.Scan(&hid, &seen) })
		if err != nil || hid == 0 {
			return err
		}
		fenced, err := m.Fence(ctx, hid, seen)
		if err != nil {
			return err
		}
		if fenced {
			m.opts.Logger.Info("this host ended without giving its slots away: they are free now", "host", hid)
		}
	}
	return nil
}

// takeFree gives a host slots without a host, or of a dead one. The server checks a slot again
// that another host has taken meanwhile, but joins it with the row of the host before, or with
// none: a slot whose host is not found is not free
// (https://www.postgresql.org/docs/15/transaction-iso.html#XACT-READ-COMMITTED).
const takeFree = `WITH free AS (SELECT s.slot FROM slots s LEFT JOIN hosts h ON h.hid = s.hid
		WHERE s.hid IS NULL OR h.dead ORDER BY s.slot FOR UPDATE OF s SKIP LOCKED LIMIT $2)
	UPDATE slots SET hid = $1 FROM free WHERE slots.slot = free.slot
	AND EXISTS (SELECT 1 FROM hosts WHERE hid = $1 AND NOT dead) RETURNING slots.slot`

// takeUp takes up the work of slots.
func (m *Member) takeUp(ctx context.Context, list []Slot, moves Moves) error {
	if len(list) == 0 {
		return nil
	}
	if err := m.readDeaths(ctx); err != nil { // the next move takes them up
		return fmt.Errorf("read the deaths of hosts: %w", err)
	}
	if err := moves.Gained(ctx, list); err != nil {
		return fmt.Errorf("%w: take up %d: %w", errWork, len(list), err)
	}
	m.setServes(list, true)
	if err := m.pruneHosts(ctx); err != nil {
		m.opts.Logger.Warn("cannot drop what is kept of hosts that are dead", "err", err)
	}
	return nil
}

// give lays down the work of slots and frees them.
func (m *Member) give(ctx context.Context, list []Slot, moves Moves) error {
	m.setServes(list, false)
	if err := moves.Losing(ctx, list); err != nil {
		return fmt.Errorf("%w: lay down %d: %w", errWork, len(list), err)
	}
	n, err := m.moves.change(ctx, "UPDATE slots SET hid = NULL WHERE hid = $1 AND slot = ANY($2)", m.opts.HID, list)
	m.counters.given.Add(n)
	return err
}

func (m *Member) setServes(list []Slot, yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range list {
		if yes {
			m.serves[s] = true
		} else {
			delete(m.serves, s)
		}
	}
}
