package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Pauses between attempts to reach the server.
const (
	minPause = 20 * time.Millisecond
	maxPause = time.Second
)

// findOutcome asks, as long as it takes to reach a server, whether the group in hand was
// written. It asks by a write: a server that lost its standby shows commits to readers that it
// may still lose.
func (c *Conn) findOutcome(ctx context.Context, cause error) error {
	c.open, c.pending = false, c.pending[:0]
	if c.host.end != nil {
		return c.host.end
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		seq, dead, err := c.askOutcome(ctx)
		c.leaveReadOnly(err)
		switch {
		case err != nil && pause == minPause:
			c.host.log.WarnContext(ctx, "the PostgreSQL server is away: posts wait until it or its standby answers", "err", err)
		case err == nil && pause > minPause:
			c.host.log.InfoContext(ctx, "the PostgreSQL server answers again")
		}
		switch h := c.host; {
		case err == nil && dead:
			h.end = ErrFenced
		case err == nil && seq == h.seq+1:
			h.seq++
			return nil
		case err == nil && seq == h.seq:
			return fmt.Errorf("%w: %w", ErrRepeat, orElse(cause, "it was idle"))
		case err == nil:
			h.end = fmt.Errorf("%w: it knows %d groups of this host and has acknowledged %d, so %d are gone: a standby that lagged was promoted, or a backup restored. Stop all hosts and look for a server that has them",
				ErrLost, seq, h.seq, h.seq-seq)
		case errors.Is(err, ErrLost):
			h.end = err
		}
		if c.host.end != nil {
			return c.host.end
		}
		select {
		case <-time.After(pause):
		case <-c.host.stop.Done():
			return c.giveUp(ctx, errors.Join(orElse(cause, "the connection is gone"), err))
		case <-ctx.Done():
			return errors.Join(orElse(cause, "the connection is gone"), err)
		}
	}
}

// giveUp lets no group wait any more for a server that is away while the host stops.
func (c *Conn) giveUp(ctx context.Context, err error) error {
	c.host.log.WarnContext(ctx, "the host stops and waits no longer for its PostgreSQL server: what the server has not acknowledged is refused. Tasks go on at the next start with what it has", "err", err)
	c.host.end = err
	return err
}

func orElse(err error, text string) error {
	if err == nil {
		err = errors.New(text)
	}
	return err
}

// endSession ends what an earlier session of this host may still be doing, and waits for it:
// afterwards nothing of it can be committed any more.
const endSession = `SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
	WHERE application_name = 'skep' AND usename = current_user AND pid <> pg_backend_pid()
	AND pid = (SELECT pid FROM hosts WHERE hid = %d)`

// askOutcome asks for the newest group of this host, on a new connection if need be.
func (c *Conn) askOutcome(ctx context.Context) (seq int64, dead bool, err error) {
	if c.pg.IsClosed() {
		connect, done := boundConnect(ctx, c.host.stop)
		pg, err := pgconn.ConnectConfig(connect, c.host.config)
		done()
		if err != nil {
			return 0, false, err
		}
		c.pg = pg
		c.session++
		c.blocks = nil // a server that was killed may have forgotten that it gave them
	}
	if c.pg.TxStatus() != 'I' {
		if err := c.end(ctx, "ROLLBACK"); err != nil {
			return 0, false, err
		}
	}
	if c.host.timeline, err = c.checkTimeline(ctx, c.host.timeline); err != nil {
		return 0, false, err
	}
	if _, err := c.ask(ctx, fmt.Sprintf(endSession, c.host.hid)); err != nil {
		return 0, false, err
	}
	row, err := c.ask(ctx, fmt.Sprintf("UPDATE hosts SET pid = pg_backend_pid() WHERE hid = %d RETURNING seq, dead::int::bigint", c.host.hid))
	if err != nil {
		return 0, false, err
	}
	if row == nil {
		return 0, false, fmt.Errorf("%w: it does not know this host", ErrLost)
	}
	if c.host.shared { // the lock of the last session is gone, and without it a lone host may start
		if _, err := c.ask(ctx, lockShared); err != nil {
			return 0, false, err
		}
	}
	return row[0], row[1] != 0, nil
}

// ask runs a statement and returns the numbers of its first row.
func (c *Conn) ask(ctx context.Context, text string) (row []int64, err error) {
	r := c.pg.ExecParams(ctx, text, nil, nil, nil, binaryFormat)
	for r.NextRow() {
		for i, raw := range r.Values() {
			v, err := decode(r.FieldDescriptions()[i].DataTypeOID, raw)
			if err != nil {
				return nil, err
			}
			n, _ := v.(int64)
			row = append(row, n)
		}
	}
	_, err = r.Close()
	return row, err
}

// checkTimeline refuses a server whose history is older than one that was seen before, and
// keeps its number.
func (c *Conn) checkTimeline(ctx context.Context, seen int64) (now int64, err error) {
	row, err := c.ask(ctx, `WITH now AS (SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint AS number)
		INSERT INTO timeline SELECT true, number FROM now
		ON CONFLICT (one) DO UPDATE SET number = greatest(timeline.number, excluded.number)
		RETURNING number, (SELECT number FROM now)`)
	if err != nil {
		return seen, err
	}
	if known := max(seen, row[0]); row[1] < known {
		return seen, fmt.Errorf("%w: its history is number %d and number %d was in use before: it is a primary that was replaced, and another one has what was written since", ErrLost, row[1], known)
	}
	return row[1], nil
}
