package simulation

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// scheduler lets one parked actor go on at a time. Only the goroutine that calls run
// uses its random numbers.
type scheduler struct {
	rng     *rand.Rand
	faults  *faults
	arrived chan struct{}
	// over is closed at the end of the run, when gates are open.
	over  chan struct{}
	trace trace

	mu     sync.Mutex
	parked []*actor
	n      int
}

// actor is a goroutine that waits at a gate.
type actor struct {
	name string
	gate gate
	n    int
	// lives is closed when the actor's host dies; nil for an actor of no host.
	lives <-chan struct{}
	pass  chan pass
}

// pass is how an actor goes on.
type pass struct {
	fault fault
	// roll is a random number for the actor.
	roll uint64
}

func newScheduler(rng *rand.Rand, f *faults) *scheduler {
	return &scheduler{rng: rng, faults: f, arrived: make(chan struct{}, 1), over: make(chan struct{}), trace: trace{sum: fnv.New64a(), began: time.Now(), ids: map[string]int{}}}
}

// park waits until the scheduler lets the actor go on, or its host dies.
func (s *scheduler) park(name string, g gate, lives <-chan struct{}) pass {
	a := &actor{name: name, gate: g, lives: lives, pass: make(chan pass, 1)}
	s.mu.Lock()
	s.n++
	a.n = s.n
	s.parked = append(s.parked, a)
	s.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	select {
	case p := <-a.pass:
		return p
	case <-s.over:
	case <-lives:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.parked = slices.DeleteFunc(s.parked, func(other *actor) bool { return other == a })
	}
	return pass{fault: hostDied}
}

// maxRun bounds the time of one call of run.
const maxRun = time.Hour

// run lets actors go on until none has come for the time idle, or stop returns true. It
// is false when they do not come to rest.
func (s *scheduler) run(idle time.Duration, stop func() bool) (rests bool) {
	for began := time.Now(); time.Since(began) < maxRun; {
		synctest.Wait()
		if stop() {
			return true
		}
		if a := s.choose(); a != nil {
			s.letGo(a)
			if s.rng.IntN(40) == 0 {
				time.Sleep(time.Duration(s.rng.Int64N(int64(2 * time.Second))))
			}
			continue
		}
		timer := time.NewTimer(idle)
		select {
		case <-s.arrived:
			timer.Stop()
		case <-timer.C:
			return true
		}
	}
	return false
}

// choose takes one of the parked actors. Their order does not depend on the order in
// which they came, unless they have one name.
func (s *scheduler) choose() *actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parked) == 0 {
		return nil
	}
	slices.SortFunc(s.parked, func(a, b *actor) int { return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.n, b.n)) })
	i := s.rng.IntN(len(s.parked))
	a := s.parked[i]
	s.parked = slices.Delete(s.parked, i, i+1)
	return a
}

// isParked reports whether an actor of that name waits.
func (s *scheduler) isParked(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.parked, func(a *actor) bool { return a.name == name })
}

func (s *scheduler) letGo(a *actor) {
	p := pass{fault: s.faults.choose(s.rng, a.gate), roll: s.rng.Uint64()}
	s.trace.add("%s%s", a.name, p.fault)
	a.pass <- p
}

// trace is what happened, in order.
type trace struct {
	sum interface {
		Write([]byte) (int, error)
		Sum64() uint64
	}
	began time.Time

	mu    sync.Mutex
	steps int
	lines []string
	// ids numbers random ids in the order in which steps name them.
	ids map[string]int
}

var randomID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// add adds a step, which another run of the seed repeats. Random ids count by their
// order: goroutines between two steps draw them in any order.
func (t *trace) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps++
	fmt.Fprintln(t.sum, randomID.ReplaceAllStringFunc(t.line(format, args...), func(id string) string {
		if _, ok := t.ids[id]; !ok {
			t.ids[id] = len(t.ids)
		}
		return fmt.Sprint("id", t.ids[id])
	}))
}

// note adds what an actor has seen.
func (t *trace) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line("        "+format, args...)
}

func (t *trace) line(format string, args ...any) string {
	line := fmt.Sprintf("%5d %9.3fs ", t.steps, time.Since(t.began).Seconds()) + fmt.Sprintf(format, args...)
	t.lines = append(t.lines, line)
	return line
}

// tail is the end of the trace.
func (t *trace) tail(n int) string {
	return strings.Join(t.lines[max(0, len(t.lines)-n):], "\n")
}
