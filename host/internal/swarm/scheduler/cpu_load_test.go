package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func of(tenant, id string) Owner { return Owner{tenant, "user:" + id} }

// machine runs turns on tokens by a clock of its own: a turn that others wait
// for yields every millisecond.
type machine struct {
	cpu    *CPU
	clock  *ticking
	turns  []*work
	delays map[string][]int
}

// work is one turn that needs so many milliseconds, and when it came.
type work struct {
	key   Owner
	left  int
	came  time.Time
	ready chan struct{} // nil when it holds a token
}

func newMachine(tokens int) *machine {
	clock := &ticking{time.Unix(1e9, 0)}
	return &machine{cpu: NewCPU(tokens, clock.now, equal), clock: clock, delays: map[string][]int{}}
}

func (m *machine) add(key Owner, ms int) {
	m.turns = append(m.turns, &work{key: key, left: ms, came: m.clock.at, ready: m.cpu.request(key)})
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
		if w.left > 0 && !contended(m.cpu) {
			w.ready = nil
			continue
		}
		m.cpu.Release(w.key)
		if w.left > 0 {
			w.ready = m.cpu.request(w.key)
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
		m.cpu = NewCPU(tokens, m.clock.now, tenants{"heavy": {weight: 3}, "light": {weight: 1}}.weightOf)
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

func BenchmarkCPU(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			clock := &ticking{time.Unix(1e9, 0)}
			c := NewCPU(1, clock.now, equal)
			asked := map[chan struct{}]Owner{}
			c.request(of("first", "u"))
			holder := of("first", "u")
			order := make([]chan struct{}, 0, n)
			for i := range n {
				key := of(fmt.Sprint("t", i), "u")
				ready := c.request(key)
				asked[ready], order = key, append(order, ready)
			}
			for i := 0; b.Loop(); i++ {
				clock.move(time.Millisecond)
				c.Release(holder)
				ready := order[i%n]
				holder = asked[ready]
				delete(asked, ready)
				order[i%n] = c.request(holder)
				asked[order[i%n]] = holder
			}
		})
	}
}
