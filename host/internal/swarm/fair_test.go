package swarm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func of(tenant, id string) InstanceKey { return InstanceKey{tenant, "hive", "user:" + id} }

// machine runs turns on tokens by a clock of its own: a turn that others wait
// for yields every millisecond.
type machine struct {
	cpu    *cpu
	clock  *ticking
	turns  []*work
	delays map[string][]int
}

// work is one turn that needs so many milliseconds, and when it came.
type work struct {
	key   InstanceKey
	left  int
	came  time.Time
	ready chan struct{} // nil when it holds a token
}

func newMachine(tokens int) *machine {
	clock := &ticking{time.Unix(1e9, 0)}
	return &machine{cpu: newCPU(tokens, clock.now, equal), clock: clock, delays: map[string][]int{}}
}

func (m *machine) add(key InstanceKey, ms int) {
	m.turns = append(m.turns, &work{key: key, left: ms, came: m.clock.at, ready: m.cpu.ask(key)})
}

// tick lets a millisecond pass.
func (m *machine) tick() {
	m.clock.move(time.Millisecond)
	var held []*work
	for _, w := range m.turns {
		if w.ready == nil || isClosed(w.ready) {
			held = append(held, w)
		}
	}
	for _, w := range held {
		w.left--
		if w.left > 0 && !m.cpu.contended() {
			w.ready = nil
			continue
		}
		m.cpu.release(w.key)
		if w.left > 0 {
			w.ready = m.cpu.ask(w.key)
		} else {
			m.delays[w.key.Tenant] = append(m.delays[w.key.Tenant], int(m.clock.at.Sub(w.came)/time.Millisecond))
		}
	}
	m.turns = slices.DeleteFunc(m.turns, func(w *work) bool { return w.left == 0 })
}

func (m *machine) has(tenant string) bool { return m.count(tenant) > 0 }

func (m *machine) count(tenant string) (n int) {
	for _, w := range m.turns {
		if w.key.Tenant == tenant {
			n++
		}
	}
	return n
}

func p99(delays []int) int {
	slices.Sort(delays)
	return delays[len(delays)*99/100]
}

// A tenant that floods the processor from many instances makes others wait at
// most twice as long as they do without it.
func TestCPUFlood(t *testing.T) {
	for _, tokens := range []int{1, 2, 4} {
		for _, quiet := range []int{1, 3} {
			run := func(flood int) (worst int) {
				m := newMachine(tokens)
				for at := range 5000 {
					for i := len(m.turns); i < flood; i++ {
						m.add(of("flood", fmt.Sprint(at, i)), 20)
					}
					for i := range quiet {
						if name := fmt.Sprint("quiet", i); !m.has(name) && at%7 == i {
							m.add(of(name, "u"), 5)
						}
					}
					m.tick()
				}
				for i := range quiet {
					worst = max(worst, p99(m.delays[fmt.Sprint("quiet", i)]))
				}
				return worst
			}
			alone, flooded := run(0), run(100)
			if flooded > 2*alone {
				t.Errorf("%d tokens, %d quiet tenants: p99 is %d ms, without the flood %d ms", tokens, quiet, flooded, alone)
			}
		}
	}
}

// Tenants that burn the processor from many instances get it by weight, however
// long the turns of each are.
func TestCPUWeights(t *testing.T) {
	long := map[string]int{"heavy": 7, "light": 30}
	for _, tokens := range []int{1, 2, 4} {
		m := newMachine(tokens)
		m.cpu = newCPU(tokens, m.clock.now, tenants{"heavy": {Weight: 3}, "light": {Weight: 1}}.weight)
		got := map[string]int{}
		for at := range 4000 {
			for tenant, ms := range long {
				for i := m.count(tenant); i < 20; i++ {
					m.add(of(tenant, fmt.Sprint(at, i)), ms)
				}
			}
			for _, w := range m.turns {
				if w.ready == nil || isClosed(w.ready) {
					got[w.key.Tenant]++
				}
			}
			m.tick()
		}
		if ratio := float64(got["heavy"]) / float64(got["light"]); ratio < 2.85 || ratio > 3.15 {
			t.Errorf("%d tokens: milliseconds by weights 3 and 1: %v, %.2f to 1", tokens, got, ratio)
		}
	}
}

// The same for slots: however many turns a tenant wants and however long they
// take, another finds a free slot at once.
func TestScheduleFlood(t *testing.T) {
	for _, slots := range []int{1, 2, 8, 64} {
		s := newSchedule(slots, tenants{"flood": {}, "quiet": {}, "third": {}})
		push := func(tenant string, n int) {
			for i := range n {
				s.push(newLive(TaskKey{of(tenant, fmt.Sprint(i)), "t"}, nil), "x", 5)
			}
		}
		push("flood", 500)
		running := 0
		for _, ok := s.take(); ok; _, ok = s.take() {
			running++
		}
		if running != slots {
			t.Errorf("one tenant alone runs %d turns in %d slots", running, slots)
		}
		push("quiet", 1)
		if r, ok := s.take(); !ok || r.task.key.Tenant != "quiet" {
			t.Errorf("%d slots: a quiet tenant waits for one that floods", slots)
		}
	}
}

// Slots that become free go to tenants by their weight.
func TestScheduleWeights(t *testing.T) {
	s := newSchedule(4, tenants{"a": {Weight: 1}, "b": {Weight: 3}})
	for _, name := range []string{"a", "b"} {
		for i := range 500 {
			s.push(newLive(TaskKey{of(name, fmt.Sprint(i)), "t"}, nil), "x", 5)
		}
	}
	var running []ready
	got := map[string]int{}
	for range 400 {
		r, ok := s.take()
		for ; ok; r, ok = s.take() {
			running = append(running, r)
			got[r.task.key.Tenant]++
		}
		s.done(running[0])
		running = running[1:]
	}
	if ratio := float64(got["b"]) / float64(got["a"]); ratio < 2.5 || ratio > 3.5 {
		t.Errorf("turns by weights 1 and 3: %v", got)
	}
}

// The same where tenants flood the host with many tasks in a few instances, and
// an instance whose turn has just ended could go on in the reserve.
func TestScheduleWeightsInFewInstances(t *testing.T) {
	for _, slots := range []int{8, 16, 64} {
		for _, instances := range []int{5, 8, 40} {
			for _, long := range []int{1, 3, 7} {
				got := flooded(slots, instances, long)
				if ratio := float64(got["heavy"]) / float64(got["light"]); ratio < 3*0.85 || ratio > 3*1.15 {
					t.Errorf("%d slots, %d instances, turns of %d ticks: turns by weights 3 and 1: %v, %.2f to 1",
						slots, instances, long, got, ratio)
				}
			}
		}
	}
}

// flooded counts the turns of two tenants, of which each instance always has
// more tasks than may run, and of which turns take so many ticks, one more or one
// less.
func flooded(slots, instances, long int) (got map[string]int) {
	s := newSchedule(slots, tenants{"heavy": {Weight: 3}, "light": {Weight: 1}})
	push := func(tenant string, i int) {
		s.push(newLive(TaskKey{of(tenant, fmt.Sprint(i)), "t"}, nil), "x", 5)
	}
	for i := range instances * slots {
		push("light", i%instances)
		push("heavy", i%instances)
	}
	got = map[string]int{}
	ends := map[int][]ready{}
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	for at := range 600 {
		for r, ok := s.take(); ok; r, ok = s.take() {
			key := r.task.key.InstanceKey
			if at > 100 {
				got[key.Tenant]++
			}
			end := at + max(1, long-1+random.IntN(3))
			ends[end] = append(ends[end], r)
			s.push(r.task, "x", 5)
		}
		for _, r := range ends[at+1] {
			s.done(r)
		}
	}
	return got
}

// A quota of turns makes a tenant's turns wait, and nobody else's.
func TestScheduleQuota(t *testing.T) {
	s := newSchedule(8, tenants{"small": {Quota: Quota{Turns: 2}}, "other": {}})
	for i := range 5 {
		s.push(newLive(TaskKey{of("small", fmt.Sprint(i)), "t"}, nil), "x", 5)
	}
	s.push(newLive(TaskKey{of("other", "o"), "t"}, nil), "x", 5)
	got := map[string]int{}
	var last ready
	for r, ok := s.take(); ok; r, ok = s.take() {
		got[r.task.key.Tenant]++
		if r.task.key.Tenant == "small" {
			last = r
		}
	}
	if got["small"] != 2 || got["other"] != 1 {
		t.Errorf("running: %v", got)
	}
	s.done(last)
	if r, ok := s.take(); !ok || r.task.key.Tenant != "small" {
		t.Error("a turn given back is not used")
	}
}

func BenchmarkSchedule(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("tenants=%d", n), func(b *testing.B) {
			all := tenants{}
			tasks := make([]*live, n)
			for i := range tasks {
				name := fmt.Sprint("t", i)
				all[name] = Tenant{}
				tasks[i] = newLive(TaskKey{of(name, "u"), "t"}, nil)
			}
			s := newSchedule(64, all)
			for _, t := range tasks {
				s.push(t, "x", 5)
			}
			for b.Loop() {
				r, ok := s.take()
				if !ok {
					b.Fatal("no claim")
				}
				s.done(r)
				s.push(r.task, "x", 5)
			}
		})
	}
}

func BenchmarkCPU(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			clock := &ticking{time.Unix(1e9, 0)}
			c := newCPU(1, clock.now, equal)
			asked := map[chan struct{}]InstanceKey{}
			c.ask(of("first", "u"))
			holder := of("first", "u")
			order := make([]chan struct{}, 0, n)
			for i := range n {
				key := of(fmt.Sprint("t", i), "u")
				ready := c.ask(key)
				asked[ready], order = key, append(order, ready)
			}
			for i := 0; b.Loop(); i++ {
				clock.move(time.Millisecond)
				c.release(holder)
				ready := order[i%n]
				holder = asked[ready]
				delete(asked, ready)
				order[i%n] = c.ask(holder)
				asked[order[i%n]] = holder
			}
		})
	}
}
