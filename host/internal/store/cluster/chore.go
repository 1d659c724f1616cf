package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Chore is work on a tenant in which all hosts take part.
type Chore struct{ Kind, Tenant string }

// Chores is a host's part in the chores of all hosts. A chore has phases, from 1 on: the next begins once
// each live host has done its part of the one before. After an error a call is repeated, on another host if
// this one is dead.
type Chores interface {
	// Begin is called once, after the first sign of life and before the host takes slots: what the host has
	// read before may be out of date. It returns chores that were left undone. They go on with phase 1: each
	// host does its part of it before it takes slots.
	Begin(ctx context.Context) (left []Chore, err error)
	// TakePart does the host's part of a phase.
	TakePart(ctx context.Context, c Chore, phase int) (Part, error)
	// Drive does what one host does for all, before the first phase, which is 0, and after each. It reports
	// whether the phase was the last.
	Drive(ctx context.Context, c Chore, phase int) (last bool, err error)
	// End is called when the chore is done on all hosts.
	End(c Chore)
}

// Part is what became of a host's part in a chore.
type Part struct {
	// Found: the host had something of the tenant.
	Found bool
	// Fault is what could not be done. It does not keep the chore from its end.
	Fault error
}

// choresVersion is the name in the table changes of the table shared_chores.
const choresVersion = "chores"

// choreFeatures is the feature level of hosts that take part in chores.
const choreFeatures = 2

// sharedChores is the host's part in chores. Its own is nil for none.
type sharedChores struct {
	own Chores
	// follow and drive have a value when a chore may have another phase.
	follow, drive chan struct{}
	// ended is closed when the host takes part no longer.
	ended chan struct{}

	asking sync.Mutex // for the session, over a statement
	session

	// waiting are the callers of chores of this host, by the chore's number. Its lock is held until a
	// new chore has its waiter.
	mu      sync.Mutex
	waiting map[int64]chan Part

	// outcomes are the results of the chores that this host has driven.
	outcomes map[int64]Part
	// begun: the host takes part.
	begun bool
	// joined are the chores that this host takes part in. Only moveAll uses them.
	joined map[int64]*joinedChore
}

func newSharedChores(dsn string) sharedChores {
	return sharedChores{
		session: session{dsn: dsn, settings: moveSettings, patience: beatPatience},
		follow:  make(chan struct{}, 1), drive: make(chan struct{}, 1), ended: make(chan struct{}),
		waiting: map[int64]chan Part{}, outcomes: map[int64]Part{}, joined: map[int64]*joinedChore{},
	}
}

type joinedChore struct {
	Chore
	phase int
}

// choreRow is a row of the table shared_chores.
type choreRow struct {
	Chore
	n, driver int64
	phase     int
	// driven: its driver is alive.
	driven bool
}

// ShareChores makes this host take part in chores. It is called before Run.
func (m *Member) ShareChores(own Chores) {
	m.chores.mu.Lock()
	m.chores.own = own
	m.chores.mu.Unlock()
	m.Watch(choresVersion, func(context.Context) error {
		m.wakeChores()
		return nil
	})
}

func (m *Member) wakeChores() {
	for _, wake := range []chan struct{}{m.chores.follow, m.chores.drive} {
		select {
		case wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// askChores runs a statement on the session of chores.
func (m *Member) askChores(ctx context.Context, text string, args []any, each func(pgx.Rows) error) error {
	m.chores.asking.Lock()
	defer m.chores.asking.Unlock()
	return m.chores.query(ctx, text, args, each)
}

// changeChores runs a statement with a part "done", and wakes the hosts if that has a row. It returns its
// number, 0 for none.
func (m *Member) changeChores(ctx context.Context, text string, args ...any) (n int64, err error) {
	err = m.askChores(ctx, text+wakeFor+choresVersion+wakeEnd, args, func(r pgx.Rows) error {
		var none any
		return r.Scan(&n, &none)
	})
	return n, err
}

func (m *Member) readChores(ctx context.Context) (rows []choreRow, err error) {
	const text = `SELECT n, kind, tenant, phase, driver, EXISTS (SELECT FROM hosts h JOIN beats USING (hid) WHERE hid = driver AND NOT h.dead)
		FROM shared_chores ORDER BY n`
	err = m.askChores(ctx, text, nil, func(r pgx.Rows) error {
		var one choreRow
		var tenant []byte
		err := r.Scan(&one.n, &one.Kind, &tenant, &one.phase, &one.driver, &one.driven)
		one.Tenant = string(tenant)
		rows = append(rows, one)
		return err
	})
	return rows, err
}

// followChores does this host's parts of all chores.
func (m *Member) followChores(ctx context.Context) error {
	c := &m.chores
	if c.own == nil || !m.isAlive() {
		return nil
	}
	if !m.HasBegun() {
		if err := m.beginChores(ctx); err != nil {
			return err
		}
	}
	rows, err := m.readChores(ctx)
	if err != nil {
		return err
	}
	m.endChores(rows)
	var errs []error
	for _, row := range rows {
		errs = append(errs, m.joinChore(ctx, row))
	}
	if err = errors.Join(errs...); err == nil {
		m.setBegun()
	}
	return err
}

// leaveChore notes a chore that was left undone. A live host is waited for, so the chore is not done
// meanwhile. For a fenced one it may be done, and its tenant may have begun anew. The lock keeps others from
// fencing the host before the note is there.
const leaveChore = `WITH live AS (SELECT FROM hosts WHERE hid = $3 AND NOT dead FOR SHARE),
	done AS (INSERT INTO shared_chores (tenant, kind, phase, driver) SELECT $1, $2, 1, 0 FROM live ON CONFLICT DO NOTHING RETURNING n)`

func (m *Member) beginChores(ctx context.Context) error {
	left, err := m.chores.own.Begin(ctx)
	if err != nil {
		return err
	}
	for _, one := range left {
		if _, err := m.changeChores(ctx, leaveChore, []byte(one.Tenant), one.Kind, m.opts.HID); err != nil {
			return err
		}
	}
	return nil
}

// HasBegun reports whether the host has read again what may have been out of date, and takes part in chores.
func (m *Member) HasBegun() bool {
	m.chores.mu.Lock()
	defer m.chores.mu.Unlock()
	return m.chores.begun || m.chores.own == nil
}

func (m *Member) setBegun() {
	m.chores.mu.Lock()
	defer m.chores.mu.Unlock()
	m.chores.begun = true
}

// joinChore does this host's part of a chore up to its phase.
func (m *Member) joinChore(ctx context.Context, row choreRow) error {
	joined := m.chores.joined[row.n]
	if joined == nil {
		joined = &joinedChore{Chore: row.Chore}
		m.chores.joined[row.n] = joined
	}
	for joined.phase < row.phase {
		part, err := m.chores.own.TakePart(ctx, row.Chore, joined.phase+1)
		if err == nil {
			err = m.acknowledge(ctx, row.n, joined.phase+1, part)
		}
		if err != nil {
			return fmt.Errorf("%s of tenant %q, phase %d: %w", row.Kind, row.Tenant, joined.phase+1, err)
		}
		joined.phase++
	}
	return nil
}

func (m *Member) acknowledge(ctx context.Context, n int64, phase int, part Part) error {
	fault := ""
	if part.Fault != nil {
		fault = refusalText(part.Fault)
	}
	const text = `INSERT INTO chore_acks AS a VALUES ($1, $2, $3, $4, $5) ON CONFLICT (n, hid) DO UPDATE
		SET phase = excluded.phase, found = a.found OR excluded.found, fault = excluded.fault`
	m.chores.asking.Lock()
	defer m.chores.asking.Unlock()
	return m.chores.exec(ctx, text, n, m.opts.HID, phase, part.Found, fault)
}

// endChores ends what this host takes part in and what is done.
func (m *Member) endChores(rows []choreRow) {
	goes := map[int64]bool{}
	for _, row := range rows {
		goes[row.n] = true
	}
	for n, joined := range m.chores.joined {
		if goes[n] {
			continue
		}
		m.chores.own.End(joined.Chore)
		delete(m.chores.joined, n)
		m.answer(n)
	}
}

// closeChores ends the session of chores.
func (m *Member) closeChores() error {
	m.chores.asking.Lock()
	defer m.chores.asking.Unlock()
	return m.chores.close()
}
