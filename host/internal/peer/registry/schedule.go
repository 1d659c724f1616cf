package registry

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// newcomerShare is how much each new swarm extends the time over which the first
// checks of new swarms are spread.
const newcomerShare = 50 * time.Millisecond

// schedule decides when each swarm is checked. It is safe for concurrent use.
type schedule struct {
	every time.Duration
	// woken is signalled when there may be new swarms.
	woken chan struct{}

	mu     sync.Mutex
	checks map[string]*scheduledCheck
}

// scheduledCheck is the time of a swarm's next check, and of its last
// description.
type scheduledCheck struct {
	nextCheck   time.Time
	busy        bool
	describedAt time.Time
}

func newSchedule(every time.Duration) *schedule {
	return &schedule{every: every, woken: make(chan struct{}, 1), checks: map[string]*scheduledCheck{}}
}

// wake makes Run look at the schedule again.
func (s *schedule) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// next returns the swarm to check next and the wait until then. It adds new names
// and drops removed ones. Without swarms it returns an empty name and an idle
// wait.
func (s *schedule) next(now time.Time, names []string) (first string, wait time.Duration) {
	if wait = s.every; wait == 0 {
		return "", time.Hour
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	end := now.Add(wait)
	for _, name := range names {
		t := s.checks[name]
		if t == nil {
			t = &scheduledCheck{nextCheck: now.Add(rand.N(min(s.every, time.Duration(len(names))*newcomerShare)))}
			s.checks[name] = t
		}
		if !t.busy && t.nextCheck.Before(end) {
			first, end = name, t.nextCheck
		}
	}
	if len(s.checks) > len(names) {
		maps.DeleteFunc(s.checks, func(name string, _ *scheduledCheck) bool { return !slices.Contains(names, name) })
	}
	return first, max(0, end.Sub(now))
}

// learnt schedules the next check of a swarm that was just checked; described is
// whether its description was queried.
func (s *schedule) learnt(name string, described bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &scheduledCheck{nextCheck: s.nextTime()}
	if described {
		t.describedAt = time.Now()
	}
	s.checks[name] = t
}

// reset schedules a swarm as a new one.
func (s *schedule) reset(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.checks, name)
}

// nextTime is the interval plus or minus a tenth at random, so that swarms
// checked together drift apart.
func (s *schedule) nextTime() time.Time {
	return time.Now().Add(s.every*9/10 + rand.N(s.every/5+1))
}

func (s *schedule) markBusy(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.checks[name]; t != nil {
		t.busy = true
	}
}

// reschedule schedules a swarm's next check, later by more.
func (s *schedule) reschedule(name string, more time.Duration) {
	s.mu.Lock()
	if t := s.checks[name]; t != nil {
		t.busy, t.nextCheck = false, s.nextTime().Add(more)
	}
	s.mu.Unlock()
	s.wake()
}

func (s *schedule) descriptionStale(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.checks[name]
	return t == nil || time.Since(t.describedAt) > describeEvery
}

func (s *schedule) markDescribed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.checks[name]; t != nil {
		t.describedAt = time.Now()
	}
}
