package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"skep/host/internal/swarm/slot"
)

// rosterTables are what operators see of hosts, and the feature level: what hosts write is understood by
// each of them that starts. The level only rises.
const rosterTables = `
CREATE TABLE IF NOT EXISTS roster (
	hid      BIGINT PRIMARY KEY,
	version  TEXT NOT NULL,
	features INT NOT NULL,
	draining BOOL NOT NULL DEFAULT false
);
ALTER TABLE roster ADD COLUMN IF NOT EXISTS life TEXT NOT NULL DEFAULT '', ADD COLUMN IF NOT EXISTS leaving BOOL NOT NULL DEFAULT false;
CREATE TABLE IF NOT EXISTS feature_level (
	one   BOOL PRIMARY KEY DEFAULT true CHECK (one),
	level INT NOT NULL
);`

// Features is the highest feature level that this version of skep writes and reads. One that writes what
// older versions do not understand raises it, and writes that once the hosts have the level. Level 2:
// bodies are packed with phrases, see [sqlite.Options], and hosts take part in chores.
const Features = 2

var (
	// ErrNoHost means that no host that is alive has a number.
	ErrNoHost = errors.New("no host has this number")
	// ErrLastHost means that no other host takes slots.
	ErrLastHost = errors.New("no other host takes its tasks")
)

// Listed is a host that is not dead, as another one sees it.
type Listed struct {
	Place
	Version  string
	Features int
	// Slots is how many slots of tasks it has.
	Slots int
	// Draining: it gives its slots away.
	Draining bool
	// Silent is the time since its last sign of life, by the clock of the host that lists it.
	Silent time.Duration
}

// enlist makes the host one of the roster, and refuses one that does not understand what the others write.
func (m *Member) enlist(ctx context.Context) error {
	err := errors.Join(
		m.moves.exec(ctx, "INSERT INTO feature_level (level) VALUES ($1) ON CONFLICT DO NOTHING", m.opts.Features),
		m.moves.exec(ctx, "INSERT INTO roster (hid, version, features, life) VALUES ($1, $2, $3, $4)", m.opts.HID, m.opts.Version, m.opts.Features, m.opts.Life))
	if err != nil {
		return err
	}
	level, err := m.readLevel(ctx, &m.moves)
	if err != nil {
		return err
	}
	return m.checkLevel(level)
}

func (m *Member) readLevel(ctx context.Context, s *session) (level int, err error) {
	err = s.query(ctx, "SELECT level FROM feature_level", nil, func(r pgx.Rows) error { return r.Scan(&level) })
	return level, err
}

// ErrLevel means that the hosts write what this version of skep does not understand.
var ErrLevel = errors.New("this version of skep is too old for the others")

// checkLevel refuses a level. The level may have been raised after the host was enlisted, before its first
// sign of life: each beat checks it, too.
func (m *Member) checkLevel(level int) error {
	if level <= m.opts.Features {
		return nil
	}
	return fmt.Errorf("%w: the hosts have the feature level %d, and this version (%s) has %d at most: start a newer one", ErrLevel, level, m.opts.Version, m.opts.Features)
}

// List returns the hosts that are not dead, as the last beat has seen them, and their feature level.
func (m *Member) List() (list []Listed, level int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slots := map[int64]int{}
	for _, hid := range m.owners[:slot.Tasks] {
		slots[hid]++
	}
	var since time.Duration // since the last beat has seen them
	if !m.read.IsZero() {
		since = m.opts.Now().Sub(m.read)
	}
	for hid, o := range m.others {
		list = append(list, Listed{
			Place: Place{hid, o.address}, Version: o.version, Features: o.features, Draining: o.draining || o.leaving,
			Slots: slots[hid], Silent: o.silent + since,
		})
	}
	slices.SortFunc(list, func(a, b Listed) int { return cmp.Compare(a.HID, b.HID) })
	return list, m.level
}

// Level returns the feature level that was read last, 0 before the first beat.
func (m *Member) Level() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.level
}

// drain makes a host give its slots away, if there is another one that takes them.
const drain = `UPDATE roster SET draining = true WHERE hid = $1
	AND EXISTS (SELECT 1 FROM hosts h JOIN beats USING (hid) WHERE h.hid = $1 AND NOT h.dead)
	AND EXISTS (SELECT 1 FROM roster r JOIN hosts h USING (hid) JOIN beats USING (hid)
		WHERE r.hid <> $1 AND NOT r.draining AND NOT r.leaving AND NOT h.dead)`

// leave makes the others see that a host takes no more slots, also where all others are drained.
const leave = "UPDATE roster SET leaving = true WHERE hid = $1 AND NOT leaving"

// Drain makes a host give its slots away and take no more, until it is started again. The hosts see it with
// their next beat. Where all hosts that are alive are drained each takes its share nevertheless.
func (m *Member) Drain(ctx context.Context, hid int64) error {
	return m.act(ctx, func(s *session) error {
		n, err := s.change(ctx, drain, hid)
		if err != nil || n > 0 {
			return err
		}
		found := false
		err = s.query(ctx, "SELECT 1 FROM hosts h JOIN beats USING (hid) WHERE h.hid = $1 AND NOT h.dead", []any{hid}, func(pgx.Rows) error {
			found = true
			return nil
		})
		switch {
		case err != nil:
			return err
		case !found:
			return ErrNoHost
		}
		return ErrLastHost
	})
}

// IsDraining reports whether an operator has had this host give its slots away.
func (m *Member) IsDraining() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.others[m.opts.HID]
	return own != nil && own.draining
}

// raiseLevel raises the level to the highest that all hosts have.
const raiseLevel = `WITH f AS (SELECT min(coalesce(r.features, 0)) AS level FROM hosts h JOIN beats USING (hid) LEFT JOIN roster r USING (hid) WHERE NOT h.dead)
	UPDATE feature_level l SET level = f.level FROM f WHERE l.level < f.level`

// Finalize raises the feature level to the highest one that all hosts have, and returns it. Hosts that do
// not have it are refused from then on.
func (m *Member) Finalize(ctx context.Context) (level int, err error) {
	err = m.act(ctx, func(s *session) error {
		if err := s.exec(ctx, raiseLevel); err != nil {
			return err
		}
		level, err = m.readLevel(ctx, s)
		return err
	})
	return level, err
}

// act does what an operator asks for on a session of its own.
func (m *Member) act(ctx context.Context, do func(*session) error) error {
	s := session{dsn: m.opts.DSN, settings: moveSettings, patience: beatPatience}
	return errors.Join(do(&s), s.close())
}

// takers is how many hosts take slots, and whether this one does. Where none does but hosts that are drained,
// these do: nobody else would do the work.
func (m *Member) takers() (n int, takes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	drained := 0
	for _, o := range m.others {
		switch {
		case o.leaving:
		case o.draining:
			drained++
		default:
			n++
		}
	}
	own := m.others[m.opts.HID]
	switch {
	case own == nil || own.leaving:
		return max(1, n), false
	case n == 0:
		return drained, true
	}
	return n, !own.draining
}
