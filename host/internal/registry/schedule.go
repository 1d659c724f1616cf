package registry

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// newcomerShare is how much time each swarm adds to that over which many new ones
// are first asked.
const newcomerShare = 50 * time.Millisecond

// schedule says which swarm is asked when. It may be used by many at once.
type schedule struct {
	every time.Duration
	// woken has a word when there may be new swarms.
	woken chan struct{}

	mu    sync.Mutex
	turns map[string]*turn
}

// turn is when a swarm is asked next, and when it last said what it is.
type turn struct {
	at   time.Time
	busy bool
	said time.Time
}

func newSchedule(every time.Duration) *schedule {
	return &schedule{every: every, woken: make(chan struct{}, 1), turns: map[string]*turn{}}
}

// wake has the schedule looked at again.
func (s *schedule) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// next returns who is asked next and when that is. New names get a turn, gone
// ones lose theirs. Without anybody it returns an empty name and a while.
func (s *schedule) next(now time.Time, names []string) (first string, wait time.Duration) {
	if wait = s.every; wait == 0 {
		return "", time.Hour
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	end := now.Add(wait)
	for _, name := range names {
		t := s.turns[name]
		if t == nil {
			t = &turn{at: now.Add(rand.N(min(s.every, time.Duration(len(names))*newcomerShare)))}
			s.turns[name] = t
		}
		if !t.busy && t.at.Before(end) {
			first, end = name, t.at
		}
	}
	if len(s.turns) > len(names) {
		maps.DeleteFunc(s.turns, func(name string, _ *turn) bool { return !slices.Contains(names, name) })
	}
	return first, max(0, end.Sub(now))
}

// learnt gives a swarm that was asked just now its next turn; described says that
// it told what it is.
func (s *schedule) learnt(name string, described bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &turn{at: s.later()}
	if described {
		t.said = time.Now()
	}
	s.turns[name] = t
}

// forget has a swarm asked as a new one.
func (s *schedule) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.turns, name)
}

// later is at random around the time: swarms that were asked together drift apart.
func (s *schedule) later() time.Time {
	return time.Now().Add(s.every*9/10 + rand.N(s.every/5+1))
}

func (s *schedule) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turns[name]; t != nil {
		t.busy = true
	}
}

// end gives a swarm its next turn, which is as much later than usual as more says.
func (s *schedule) end(name string, more time.Duration) {
	s.mu.Lock()
	if t := s.turns[name]; t != nil {
		t.busy, t.at = false, s.later().Add(more)
	}
	s.mu.Unlock()
	s.wake()
}

func (s *schedule) stale(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[name]
	return t == nil || time.Since(t.said) > describeEvery
}

func (s *schedule) described(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turns[name]; t != nil {
		t.said = time.Now()
	}
}
