package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skep/host/internal/turn"
)

// Limits of restarts. The pause after a death doubles up to maxBackoff. After maxDeaths
// deaths without a completed turn, there is no restart for deathCooldown.
const (
	firstBackoff  = 100 * time.Millisecond
	maxBackoff    = 10 * time.Second
	maxDeaths     = 5
	deathCooldown = 5 * time.Minute
)

// tenantProcess holds one tenant's process. It is safe for concurrent use.
type tenantProcess struct {
	// sem is a lock; a channel, so that a turn can stop waiting for it.
	sem       chan struct{}
	memory    int64 // limit of the process, in bytes
	proc      *process
	closed    bool
	deaths    int
	lastDeath time.Time // zero before the first
}

func newTenantProcess(memory int64) *tenantProcess {
	return &tenantProcess{sem: make(chan struct{}, 1), memory: memory}
}

func (s *tenantProcess) lock(ctx context.Context) error {
	select {
	case s.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *tenantProcess) unlock() { <-s.sem }

// acquire returns a process with the turn counted, and starts one if there is none.
func (s *tenantProcess) acquire(ctx context.Context, p *Program) (*process, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.proc != nil && s.proc.beginTurn() {
		return s.proc, nil
	}
	if err := s.waitBackoff(ctx); err != nil {
		return nil, err
	}
	proc := p.takeFresh(s.memory)
	if proc != nil && !proc.beginTurn() {
		proc = nil
	}
	if proc == nil {
		var err error
		if proc, err = s.startProcess(ctx, p); err != nil {
			return nil, err
		}
	}
	s.proc = proc
	return proc, nil
}

// errEndedAtStart is why a process that has started gets no turn.
var errEndedAtStart = errors.New("it ended before its first turn")

// startProcess starts a process for a turn.
func (s *tenantProcess) startProcess(ctx context.Context, p *Program) (*process, error) {
	proc, err := p.startProcess(ctx, s.memory)
	if err == nil {
		err = proc.beginFirstTurn(ctx)
	}
	if err == nil {
		return proc, nil
	}
	if ctx.Err() == nil {
		s.recordDeath()
	}
	return nil, fmt.Errorf("the process of the agent does not start: %w", err)
}

// beginFirstTurn lets a new process prepare for turns, and counts the first.
func (p *process) beginFirstTurn(ctx context.Context) error {
	if err := p.warm(ctx); err != nil {
		p.kill("")
		return err
	}
	if !p.beginTurn() {
		return errEndedAtStart
	}
	return nil
}

// waitBackoff waits until a restart is allowed.
func (s *tenantProcess) waitBackoff(ctx context.Context) error {
	if s.deaths == 0 {
		return nil
	}
	wait := min(firstBackoff<<(s.deaths-1), maxBackoff)
	if s.deaths >= maxDeaths {
		if left := time.Until(s.lastDeath.Add(deathCooldown)); left > 0 {
			return fmt.Errorf("the process of the agent died %d times in a row without ending a turn; it is tried again in %v, or after a reload", s.deaths, left.Round(time.Second))
		}
		s.deaths = maxDeaths - 1
		return nil
	}
	timer := time.NewTimer(time.Until(s.lastDeath.Add(wait)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// recordDeath counts a death. The caller holds sem.
func (s *tenantProcess) recordDeath() { s.deaths, s.lastDeath = s.deaths+1, time.Now() }

// recordExit updates the deaths after a turn.
func (s *tenantProcess) recordExit(exit *turn.Exit) {
	s.sem <- struct{}{}
	defer s.unlock()
	switch {
	case exit == nil || exit.Kind == turn.ExitFailed || exit.Kind == turn.ExitAbort:
		s.deaths = 0
	case exit.Kind == turn.ExitProcess || exit.Kind == turn.ExitMemory:
		s.recordDeath()
	}
}

// close ends the process.
func (s *tenantProcess) close() {
	s.sem <- struct{}{}
	defer s.unlock()
	s.closed = true
	if s.proc != nil {
		s.proc.stop()
	}
}
