package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"skep/host/internal/swarm/slot"
)

// tables are what membership needs beside the tables hosts and slots. A sign of life has a table of its own:
// it waits for no group of writes, and no group for it.
// Hosts that join at once wait for each other.
const tables = `SELECT set_config('lock_timeout', '60s', true);
SELECT pg_advisory_xact_lock(hashtext('skep'), hashtext(current_schema()));
CREATE TABLE IF NOT EXISTS beats (
	hid     BIGINT PRIMARY KEY,
	n       BIGINT NOT NULL,
	address TEXT NOT NULL
) WITH (fillfactor = 50);` + deathTables + configTables + rosterTables + auditTables + loadTables + nameTables

// makeSlots makes the slots the first time.
func makeSlots() string {
	return fmt.Sprintf("\nINSERT INTO slots SELECT generate_series(0, %d) WHERE NOT EXISTS (SELECT 1 FROM slots) ON CONFLICT DO NOTHING;", int(slots)-1)
}

// Member is a host among others. Its methods are safe for concurrent use.
type Member struct {
	opts Options
	// beats, moves and work are sessions of their own: taking work up may last long. On notices the
	// server wakes the host.
	beats, moves, work, notices session
	// runSet is what the other hosts see of this one's work, nil for nothing.
	runSet *SharedRunSet
	// config is what all hosts have alike. Its own is nil for nothing.
	config sharedConfig
	chores sharedChores
	loads  sharedLoads
	clock  serverClock

	counters counters

	mu     sync.Mutex
	others map[int64]*other
	owners [slots]int64
	// workers is how many hosts take slots or have some, 0 before the first beat.
	workers int
	// serves are the slots whose work has been taken up here.
	serves map[Slot]bool
	// deaths are those for which work may be to blame. The map is never changed.
	deaths map[ID]Deaths
	// level is the feature level that was read last.
	level int
	// sameAddress: it was said that another host has this one's address.
	sameAddress bool
	// retiring: the host takes no more slots.
	retiring bool
	// read is when the beats were read last, beat when the host last began to write its own.
	read, beat time.Time
	changed    chan struct{}
	watched    map[string]*watch
}

// other is what is known of a host that is not dead.
type other struct {
	n        int64
	silent   time.Duration
	address  string
	version  string
	features int
	draining bool
	leaving  bool
}

// Join readies a host to be a member. The others count with it from its first sign of life, so it
// may take its time until it runs. The caller runs it, or closes it.
func Join(ctx context.Context, opts Options) (_ *Member, err error) {
	opts.setDefaults()
	m := &Member{
		opts: opts, others: map[int64]*other{}, serves: map[Slot]bool{}, changed: make(chan struct{}),
		beats:   session{dsn: opts.DSN, settings: beatSettings, patience: beatPatience},
		moves:   session{dsn: opts.DSN, settings: moveSettings, patience: movePatience},
		work:    session{dsn: opts.DSN, settings: beatSettings, patience: beatPatience},
		notices: session{dsn: opts.DSN}, watched: map[string]*watch{},
		config: sharedConfig{wake: make(chan struct{}, 1), session: session{dsn: opts.DSN, settings: moveSettings, patience: beatPatience}},
		chores: newSharedChores(opts.DSN), clock: serverClock{own: opts.Now},
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("join the hosts: %w", err), m.Close())
		}
	}()
	if err := m.moves.exec(ctx, tables+makeSlots()); err != nil {
		return nil, err
	}
	if err := m.checkSwarm(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(m.checkSlots(ctx), m.beginClock(ctx)); err != nil {
		return nil, err
	}
	return m, m.enlist(ctx)
}

// giveSign gives a sign of life. The first one makes the host count.
const giveSign = "INSERT INTO beats VALUES ($1, 1, $2) ON CONFLICT (hid) DO UPDATE SET n = beats.n + 1"

// checkSlots refuses a server whose tasks are cut in another way.
func (m *Member) checkSlots(ctx context.Context) error {
	var n int
	if err := m.moves.query(ctx, "SELECT count(*) FROM slots", nil, func(r pgx.Rows) error { return r.Scan(&n) }); err != nil {
		return err
	}
	if n != int(slots) {
		return fmt.Errorf("the work is cut into %d slots, this version of skep has %d: run all hosts with one version", n, slots)
	}
	return nil
}

// Beat tells the others that the host is alive, and reads who is. Run does it regularly.
func (m *Member) Beat(ctx context.Context) error {
	began := m.opts.Now()
	if err := m.beats.exec(ctx, giveSign, m.opts.HID, m.opts.Address); err != nil {
		m.unread()
		return fmt.Errorf("beat: %w", err)
	}
	if err := m.readAll(ctx, began, true); err != nil {
		return err
	}
	if err := m.showLoads(ctx); err != nil && ctx.Err() == nil {
		m.opts.Logger.Warn("limits that all hosts hold together are less exact; the next beat tries again", "err", err)
	}
	return nil
}

// readAll reads who is alive, which slots they have, the versions and the clock. A member is fenced that is not
// among them.
func (m *Member) readAll(ctx context.Context, began time.Time, member bool) error {
	seen, err := m.readHosts(ctx)
	if err == nil && member && m.isFenced(seen) {
		return ErrFenced
	}
	var owners [slots]int64
	if err == nil {
		owners, err = m.readOwners(ctx)
	}
	if err == nil {
		err = m.readVersions(ctx)
	}
	var level int
	if err == nil {
		level, err = m.readLevel(ctx, &m.beats)
	}
	if err == nil {
		err = m.readClock(ctx, &m.beats)
	}
	if err != nil {
		m.unread()
		return fmt.Errorf("read the beats: %w", err)
	}
	if twin := m.note(seen, owners, level, began); twin != 0 {
		m.opts.Logger.Error("another host that is alive has the address of this one, so requests reach the wrong one: give each host its own [cluster] advertise",
			"host", twin, "address", m.opts.Address)
	}
	if member {
		return m.checkLevel(level)
	}
	return nil
}

// readHosts reads who is not dead.
func (m *Member) readHosts(ctx context.Context) (map[int64]*other, error) {
	seen := map[int64]*other{}
	const text = `SELECT h.hid, b.n, b.address, coalesce(r.version, ''), coalesce(r.features, 0), coalesce(r.draining, false), coalesce(r.leaving, false)
		FROM hosts h JOIN beats b USING (hid) LEFT JOIN roster r USING (hid) WHERE NOT h.dead`
	err := m.beats.query(ctx, text, nil, func(r pgx.Rows) error {
		var hid int64
		o := &other{}
		err := r.Scan(&hid, &o.n, &o.address, &o.version, &o.features, &o.draining, &o.leaving)
		seen[hid] = o
		return err
	})
	return seen, err
}

// readOwners reads which host has each slot, 0 for none.
func (m *Member) readOwners(ctx context.Context) (owners [slots]int64, err error) {
	err = m.beats.query(ctx, "SELECT slot, coalesce(hid, 0) FROM slots", nil, func(r pgx.Rows) error {
		var s Slot
		var hid int64
		if err := r.Scan(&s, &hid); err != nil {
			return err
		}
		if s >= 0 && s < slots {
			owners[s] = hid
		}
		return nil
	})
	return owners, err
}

// unread notes that the beats could not be read: the time until they can counts for no host.
func (m *Member) unread() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = time.Time{}
}

// note takes over what a beat that began at a time has read. It returns once which host that is alive has this one's
// address.
func (m *Member) note(seen map[int64]*other, owners [slots]int64, level int, began time.Time) (twin int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.opts.Now()
	for hid, o := range seen {
		before := m.others[hid]
		if hid != m.opts.HID && o.address == m.opts.Address && before != nil && before.n != o.n && !m.sameAddress {
			m.sameAddress, twin = true, hid
		}
		if before != nil && before.n == o.n && !m.read.IsZero() {
			// A host that was stopped itself has not watched.
			o.silent = before.silent + min(now.Sub(m.read), 2*m.opts.Beat)
		}
	}
	if !m.beat.IsZero() && began.Sub(m.beat) >= 2*m.opts.Beat {
		m.counters.lateBeats.Add(1)
	}
	changed := m.owners != owners || len(m.others) != len(seen)
	m.others, m.owners, m.level, m.read, m.beat = seen, owners, level, now, began
	m.workers = countWorkers(seen, owners[:slot.Tasks])
	if changed {
		close(m.changed)
		m.changed = make(chan struct{})
	}
	return twin
}

// Alive reports whether the others still count with this host, by its own clock. One that is not
// begins nothing.
func (m *Member) Alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opts.Now().Sub(m.beat) < m.opts.TTL
}

// Owner returns where a slot's work is done; false means that no host is known to do it.
func (m *Member) Owner(s Slot) (Place, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hid := m.owners[s]
	o := m.others[hid]
	if o == nil {
		return Place{}, false
	}
	return Place{hid, o.address}, true
}

// Serves reports whether a slot's work is done here.
func (m *Member) Serves(s Slot) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.serves[s]
}

// Changed returns a channel that is closed when a slot has another host, or a host has come or
// gone.
func (m *Member) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Retire makes the host take no more slots. The others see it with the next move, and share them.
func (m *Member) Retire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retiring = true
}

func (m *Member) isRetiring() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retiring
}

// Count is how many slots are worked on here.
func (m *Member) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.serves)
}

// Close ends the sessions of a member that does not leave: it is fenced, or broken.
func (m *Member) Close() error {
	return errors.Join(m.beats.close(), m.moves.close(), m.work.close(), m.notices.close(), m.closeConfig(), m.closeChores())
}

// isAlive reports whether the host has given a sign of life and is not dead, as far as it knows.
func (m *Member) isAlive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.others[m.opts.HID] != nil
}

// Workers is how many hosts take slots or have some, 1 at least: one that is drained works until it has none.
func (m *Member) Workers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(1, m.workers)
}

func countWorkers(hosts map[int64]*other, owners []int64) int {
	works := map[int64]bool{}
	for hid, o := range hosts {
		works[hid] = !o.draining && !o.leaving
	}
	for _, hid := range owners {
		works[hid] = hosts[hid] != nil
	}
	n := 0
	for _, yes := range works {
		if yes {
			n++
		}
	}
	return n
}

// Hosts is how many hosts are not dead, this one included, also before its first sign of life.
func (m *Member) Hosts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.others[m.opts.HID] == nil {
		return len(m.others) + 1
	}
	return len(m.others)
}
