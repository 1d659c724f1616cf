package sandbox

// shelf is the place of the instances of one kind: one module, one rewriter, the
// same limits of the start. Its fields belong to the pool's lock.
type shelf struct {
	pool   *pool
	key    shelfKey
	making *making
	idle   []*instance // the latest at the end, warm ones behind all others
	warm   int         // warm ones that are idle or about to be
}

// idleWarm counts the warm ones that are idle.
func (s *shelf) idleWarm() (n int) {
	for n < len(s.idle) && s.idle[len(s.idle)-1-n].warm {
		n++
	}
	return n
}

// making is the making of a shelf's image, by one run while others wait. The
// fields below done are set before it is closed.
type making struct {
	done chan struct{}
	// image is what instances begin as; without one they begin from the
	// module's own data.
	image *image
	// settled is false when the making came to nothing and another run may
	// try: with an exit, if it would come to the same.
	settled bool
	exit    *Exit
}

// claim returns the latest making, and whether it is the caller's to do.
func (s *shelf) claim() (m *making, mine bool) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.making == nil {
		s.making, mine = &making{done: make(chan struct{})}, true
	}
	return s.making, mine
}

// settle ends a making. What failed is forgotten, so that the next run tries.
func (s *shelf) settle(m *making) {
	s.pool.mu.Lock()
	if !m.settled {
		s.making = nil
	}
	if m.image != nil {
		s.pool.stats.Images++
	}
	s.pool.mu.Unlock()
	close(m.done)
}

// repeats reports whether another run with the same limits would end the same
// way. Time, cancellation and faults of the host are a run's own.
func (e *Exit) repeats() bool {
	switch e.Kind {
	case ExitCPU, ExitDeadline, ExitCancelled, ExitHost:
		return false
	}
	return true
}

// clone returns the exit for another turn: each caller has its own.
func (e *Exit) clone() *Exit {
	same := *e
	return &same
}
