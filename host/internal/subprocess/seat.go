package subprocess

import (
	"context"
	"fmt"
	"time"

	"skep/host/internal/sandbox"
)

// Bounds of restarts: the pause after a death doubles up to the longest. After so
// many deaths without one turn that ended, there is none before a rest is over.
const (
	firstPause  = 100 * time.Millisecond
	longestPlea = 10 * time.Second
	maxDeaths   = 5
	rest        = 5 * time.Minute
)

// seat is the place of one tenant's process. It is safe for concurrent use.
type seat struct {
	// key is held by who looks at the seat; a channel, so that a turn can stop
	// waiting for it.
	key    chan struct{}
	memory int64 // that its process may take
	proc   *process
	closed bool
	deaths int
	last   time.Time // of the deaths
}

func newSeat(memory int64) *seat { return &seat{key: make(chan struct{}, 1), memory: memory} }

func (s *seat) lock(ctx context.Context) error {
	select {
	case s.key <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *seat) unlock() { <-s.key }

// take returns a process with a turn counted in, and starts one where there is
// none.
func (s *seat) take(ctx context.Context, p *Program) (*process, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.proc != nil && s.proc.take() {
		return s.proc, nil
	}
	if err := s.pause(ctx); err != nil {
		return nil, err
	}
	proc := p.unused(s.memory)
	if proc != nil && !proc.take() {
		proc = nil
	}
	if proc == nil {
		var err error
		if proc, err = s.begin(ctx, p); err != nil {
			return nil, err
		}
	}
	s.proc = proc
	return proc, nil
}

// begin starts a process for a turn.
func (s *seat) begin(ctx context.Context, p *Program) (*process, error) {
	proc, err := p.begin(ctx, s.memory)
	if err == nil {
		if err = proc.warm(ctx); err != nil {
			proc.kill("")
		}
	}
	if err == nil && proc.take() {
		return proc, nil
	}
	if ctx.Err() == nil {
		s.died()
	}
	return nil, fmt.Errorf("the process of the agent does not start: %w", err)
}

// pause waits as long as the deaths so far ask for.
func (s *seat) pause(ctx context.Context) error {
	if s.deaths == 0 {
		return nil
	}
	wait := min(firstPause<<(s.deaths-1), longestPlea)
	if s.deaths >= maxDeaths {
		if left := time.Until(s.last.Add(rest)); left > 0 {
			return fmt.Errorf("the process of the agent died %d times in a row without ending a turn; it is tried again in %v, or after a reload", s.deaths, left.Round(time.Second))
		}
		s.deaths = maxDeaths - 1
		return nil
	}
	timer := time.NewTimer(time.Until(s.last.Add(wait)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// died counts a death. The caller holds the key.
func (s *seat) died() { s.deaths, s.last = s.deaths+1, time.Now() }

// judge learns from the end of a turn.
func (s *seat) judge(exit *sandbox.Exit) {
	s.key <- struct{}{}
	defer s.unlock()
	switch {
	case exit == nil || exit.Kind == sandbox.ExitFailed || exit.Kind == sandbox.ExitAbort:
		s.deaths = 0
	case exit.Kind == sandbox.ExitProcess || exit.Kind == sandbox.ExitMemory:
		s.died()
	}
}

// close ends the process.
func (s *seat) close() {
	s.key <- struct{}{}
	defer s.unlock()
	s.closed = true
	if s.proc != nil {
		s.proc.stop()
	}
}
