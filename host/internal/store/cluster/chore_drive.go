package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Errors of [Member.DoChore].
var (
	// ErrBusy: another chore of the tenant is under way.
	ErrBusy = errors.New("the hosts do something else for this tenant")
	// ErrOldHost: a host is too old to take part.
	ErrOldHost = errors.New("a host that is alive is of a version that cannot take part: replace it first, see skep cluster list")
	// ErrGoesOn: this host does not see the end of a chore, which the others do without it.
	ErrGoesOn = errors.New("this host stops: the others go on with it")
)

// chorePause is the time between two looks whether all hosts have done their part.
const chorePause = 50 * time.Millisecond

// Conditions of a new chore.
const (
	noOldHost = `NOT EXISTS (SELECT FROM hosts h JOIN beats USING (hid) LEFT JOIN roster r USING (hid) WHERE NOT h.dead AND coalesce(r.features, 0) < $4)`
	addChore  = `WITH done AS (INSERT INTO shared_chores (tenant, kind, phase, driver) SELECT $1, $2, 0, $3 WHERE ` + liveDriver + ` AND ` + noOldHost +
		` ON CONFLICT DO NOTHING RETURNING n)`
	// liveDriver: a program that is no host drives nothing, and a live host what it asks for.
	liveDriver = "($3::bigint = 0 OR EXISTS (SELECT FROM hosts WHERE hid = $3 AND NOT dead))"
	// findChore finds the reason why none is added: the tenant has one, or else this host is fenced, or else another one is old.
	findChore = `SELECT EXISTS (SELECT FROM shared_chores WHERE tenant = $1), NOT EXISTS (SELECT FROM hosts WHERE hid = $2 AND NOT dead)`
)

// DoChore has all hosts do a chore, and returns when it is done what they have found and could not do. When ctx
// ends, the hosts go on.
func (m *Member) DoChore(ctx context.Context, c Chore) (Part, error) {
	if !m.isAlive() || !m.HasBegun() { // nobody fences it
		return Part{}, errors.New("this host has no part of the tasks yet: ask one that has")
	}
	done, err := m.addChore(ctx, c)
	if err != nil {
		return Part{}, err
	}
	select {
	case all := <-done:
		return all, nil
	case <-m.chores.ended:
		return Part{}, ErrGoesOn
	case <-ctx.Done():
		return Part{}, context.Cause(ctx)
	}
}

func (m *Member) addChore(ctx context.Context, c Chore) (<-chan Part, error) {
	m.chores.mu.Lock()
	defer m.chores.mu.Unlock()
	n, err := m.changeChores(ctx, addChore, []byte(c.Tenant), c.Kind, m.opts.HID, choreFeatures)
	if err == nil && n == 0 {
		err = m.explainNoChore(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	done := make(chan Part, 1)
	m.chores.waiting[n] = done
	m.wakeChores()
	return done, nil
}

// explainNoChore returns why a chore was not added.
func (m *Member) explainNoChore(ctx context.Context, c Chore) error {
	var busy, fenced bool
	err := m.askChores(ctx, findChore, []any{[]byte(c.Tenant), m.opts.HID}, func(r pgx.Rows) error { return r.Scan(&busy, &fenced) })
	switch {
	case err != nil:
		return err
	case busy:
		return ErrBusy
	case fenced:
		return ErrFenced
	}
	return ErrOldHost
}

// answer gives the caller of a chore that this host has driven its outcome.
func (m *Member) answer(n int64) {
	m.chores.mu.Lock()
	defer m.chores.mu.Unlock()
	if done, ok := m.chores.waiting[n]; ok {
		done <- m.chores.outcomes[n]
	}
	delete(m.chores.waiting, n)
	delete(m.chores.outcomes, n)
}

// driveChores drives the chores of this host, and of hosts that are dead, until ctx ends.
func (m *Member) driveChores(ctx context.Context) {
	if m.chores.own == nil {
		return
	}
	defer close(m.chores.ended)
	for ctx.Err() == nil {
		pause := m.opts.Beat
		busy, err := m.driveOnce(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			m.opts.Logger.Error("what all hosts do for a tenant does not go on; it is tried again", "err", err)
		case busy:
			pause = chorePause
		}
		select {
		case <-time.After(pause):
		case <-m.chores.drive:
		case <-ctx.Done():
		}
	}
}

// claimChore makes this host drive a chore whose driver is dead.
const claimChore = `UPDATE shared_chores SET driver = $1 WHERE n = $2 AND driver = $3
	AND EXISTS (SELECT FROM hosts h JOIN beats USING (hid) WHERE hid = $1 AND NOT h.dead)
	AND NOT EXISTS (SELECT FROM hosts h JOIN beats USING (hid) WHERE hid = $3 AND NOT h.dead) RETURNING n`

// driveOnce drives each chore as far as it goes without waiting for other hosts. It is busy while there are any.
func (m *Member) driveOnce(ctx context.Context) (busy bool, err error) {
	if !m.isAlive() || !m.HasBegun() {
		return false, nil
	}
	rows, err := m.readChores(ctx)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, row := range rows {
		if row.driver != m.opts.HID {
			if row.driven {
				continue
			}
			claimed := false
			err := m.askChores(ctx, claimChore, []any{m.opts.HID, row.n, row.driver}, func(pgx.Rows) error {
				claimed = true
				return nil
			})
			if err != nil || !claimed {
				errs = append(errs, err)
				continue
			}
		}
		busy = true
		if err := m.driveChore(ctx, row); err != nil {
			errs = append(errs, fmt.Errorf("%s of tenant %q, phase %d: %w", row.Kind, row.Tenant, row.phase, err))
		}
	}
	return busy, errors.Join(errs...)
}

const (
	advanceChore = "WITH done AS (UPDATE shared_chores SET phase = phase + 1 WHERE n = $1 AND phase = $2 AND driver = $3 RETURNING n)"
	endChore     = "WITH done AS (DELETE FROM shared_chores WHERE n = $1 AND phase = $2 AND driver = $3 RETURNING n)"
)

// driveChore begins the next phase of a chore once each host has done its part of this one.
func (m *Member) driveChore(ctx context.Context, row choreRow) error {
	if row.phase > 0 {
		if waits, err := m.waitsForHost(ctx, row); waits || err != nil {
			return err
		}
	}
	last, err := m.chores.own.Drive(ctx, row.Chore, row.phase)
	if err != nil {
		return err
	}
	if !last {
		_, err := m.changeChores(ctx, advanceChore, row.n, row.phase, m.opts.HID)
		return err
	}
	if err := m.noteOutcome(ctx, row.n); err != nil {
		return err
	}
	if _, err := m.changeChores(ctx, endChore, row.n, row.phase, m.opts.HID); err != nil {
		return err
	}
	m.chores.asking.Lock()
	defer m.chores.asking.Unlock()
	return m.chores.exec(ctx, "DELETE FROM chore_acks WHERE NOT EXISTS (SELECT FROM shared_chores c WHERE c.n = chore_acks.n)")
}

// waitsForHost reports whether a live host has not done its part.
func (m *Member) waitsForHost(ctx context.Context, row choreRow) (waits bool, err error) {
	const text = `SELECT 1 FROM hosts h JOIN beats USING (hid) LEFT JOIN chore_acks a ON a.hid = h.hid AND a.n = $1 AND a.phase >= $2
		WHERE NOT h.dead AND a.hid IS NULL LIMIT 1`
	err = m.askChores(ctx, text, []any{row.n, row.phase}, func(pgx.Rows) error {
		waits = true
		return nil
	})
	return waits, err
}

// noteOutcome reads what the hosts have found.
func (m *Member) noteOutcome(ctx context.Context, n int64) error {
	var o Part
	const text = "SELECT a.found, a.fault, b.address FROM chore_acks a JOIN beats b USING (hid) WHERE a.n = $1 ORDER BY hid"
	err := m.askChores(ctx, text, []any{n}, func(r pgx.Rows) error {
		var found bool
		var fault, address string
		err := r.Scan(&found, &fault, &address)
		o.Found = o.Found || found
		if fault != "" {
			o.Fault = errors.Join(o.Fault, fmt.Errorf("the host at %s: %s", address, fault))
		}
		return err
	})
	if err != nil {
		return err
	}
	m.chores.mu.Lock()
	defer m.chores.mu.Unlock()
	m.chores.outcomes[n] = o
	return nil
}

// RequestChore has the hosts on a server do a chore for a program that is none of them, and returns when it is
// done. Without a live host it is [ErrNoHost].
func RequestChore(ctx context.Context, dsn string, c Chore) (err error) {
	s := session{dsn: dsn, settings: moveSettings, patience: beatPatience}
	defer func() { err = errors.Join(err, s.close()) }()
	if hosts, err := hasHosts(ctx, &s); err != nil {
		return err
	} else if !hosts {
		return ErrNoHost
	}
	var n int64
	err = s.query(ctx, addChore+wakeFor+choresVersion+wakeEnd, []any{[]byte(c.Tenant), c.Kind, int64(0), choreFeatures}, func(r pgx.Rows) error {
		var none any
		return r.Scan(&n, &none)
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("%w, or: %w", ErrBusy, ErrOldHost)
	}
	for goes := true; err == nil && goes; {
		select {
		case <-time.After(chorePause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		goes = false
		err = s.query(ctx, "SELECT 1 FROM shared_chores WHERE n = $1", []any{n}, func(pgx.Rows) error {
			goes = true
			return nil
		})
	}
	return err
}

// hasHosts reports whether a host that shares a server is alive. One that has never been shared lacks the table
// beats.
func hasHosts(ctx context.Context, s *session) (hosts bool, err error) {
	for _, text := range []string{
		"SELECT to_regclass('beats') IS NOT NULL",
		"SELECT EXISTS (SELECT FROM hosts h JOIN beats USING (hid) WHERE NOT h.dead)",
	} {
		err := s.query(ctx, text, nil, func(r pgx.Rows) error { return r.Scan(&hosts) })
		if err != nil || !hosts {
			return false, err
		}
	}
	return true, nil
}
