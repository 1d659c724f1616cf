package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Run beats and moves slots until ctx ends, which it returns nil for, or until the host is fenced
// or cannot take up or lay down work. The caller leaves afterwards, unless it is fenced.
func (m *Member) Run(ctx context.Context, moves Moves) error {
	inner, stop := context.WithCancelCause(ctx)
	beaten, moved, woken := make(chan struct{}, 1), make(chan error, 1), make(chan struct{}, 1)
	go func() { moved <- m.moveAll(inner, beaten, moves, stop) }()
	var others sync.WaitGroup
	others.Go(func() { m.listen(inner, woken) })
	others.Go(func() { m.readAllStale(inner) })
	others.Go(func() { m.driveChores(inner) })
	if m.runSet != nil {
		others.Go(func() { m.runSet.publishAll(inner) })
	}
	m.awaitSuspects(inner, moves)
	m.awaitConfig(inner)
	followed := make(chan error, 1)
	go func() { followed <- m.followConfig(inner, stop) }()
	err := m.beatAll(inner, beaten, woken)
	stop(err)
	if err != nil || ctx.Err() == nil {
		moves.Ended(cmp.Or(err, context.Cause(inner)))
	}
	close(beaten)
	others.Wait()
	return errors.Join(err, <-moved, <-followed)
}

// moveAll moves slots after beats, and does this host's part of chores. It stops when the work of a slot cannot be
// taken up or laid down.
func (m *Member) moveAll(ctx context.Context, beaten <-chan struct{}, moves Moves, stop context.CancelCauseFunc) error {
	for {
		beat, open := false, true
		select {
		case _, open = <-beaten:
			beat = true
		case <-m.chores.follow:
		}
		if !open {
			return nil
		}
		if err := m.followChores(ctx); err != nil && ctx.Err() == nil {
			m.opts.Logger.Warn("what all hosts do for a tenant waits for this one; it tries again", "err", err)
		}
		if !beat {
			continue
		}
		err := m.Move(ctx, moves)
		switch {
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, errWork):
			stop(err)
			return err
		default:
			m.opts.Logger.Warn("move slots", "err", err)
		}
	}
}

// beatAll beats until ctx ends or the host is fenced.
func (m *Member) beatAll(ctx context.Context, beaten chan<- struct{}, woken <-chan struct{}) error {
	t := time.NewTicker(m.opts.Beat)
	defer t.Stop()
	for {
		err := m.Beat(ctx)
		switch {
		case errors.Is(err, ErrFenced), errors.Is(err, ErrLevel):
			return err
		case ctx.Err() != nil:
			return nil
		case err != nil:
			m.opts.Logger.Warn("no sign of life to the other hosts", "err", err)
		default:
			select {
			case beaten <- struct{}{}:
			default: // the last move goes on
			}
		}
		if !m.awaitBeat(ctx, t.C, woken) {
			return nil
		}
	}
}

// awaitBeat waits for the next beat, and reads the versions when the server wakes the host. It
// returns false once ctx has ended.
func (m *Member) awaitBeat(ctx context.Context, beat <-chan time.Time, woken <-chan struct{}) bool {
	for {
		select {
		case <-beat:
			return true
		case <-ctx.Done():
			return false
		case <-woken:
			if err := m.readVersions(ctx); err != nil && ctx.Err() == nil {
				m.opts.Logger.Debug("the next beat reads the versions", "err", err)
			}
		}
	}
}

// Leave lays down all work and tells the others that the host is gone, so that they take its
// slots at once. Run must have ended.
func (m *Member) Leave(ctx context.Context, moves Moves) (err error) {
	defer func() { err = errors.Join(err, m.Close()) }()
	own, err := m.own(ctx)
	if err != nil {
		return err
	}
	// What was not taken up is not laid down.
	if err := m.give(ctx, slices.DeleteFunc(own, func(s Slot) bool { return !m.Serves(s) }), moves); err != nil {
		return err
	}
	// Its turns have ended: none is to blame for anything.
	if err := m.moves.exec(ctx, "DELETE FROM computing WHERE hid = $1", m.opts.HID); err != nil {
		return err
	}
	if err := m.moves.exec(ctx, "DELETE FROM loads WHERE hid = $1", m.opts.HID); err != nil {
		return err
	}
	return m.moves.exec(ctx, "UPDATE hosts SET dead = true WHERE hid = $1", m.opts.HID)
}
