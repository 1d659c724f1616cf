package scheduler

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// tenants are the weights and bounds of a test.
type tenants map[string]tenantRule

type tenantRule struct {
	weight float64
	slots  int
}

func (t tenants) weightOf(name string) float64 { return max(1, t[name].weight) }

func newSlots(size int, t tenants) *Slots[string] {
	return NewSlots[string](size, TenantRules{
		Weight: t.weightOf, Several: len(t) > 1, MaxSlots: func(name string) int { return t[name].slots },
	})
}

// Instances take turns for slots, and the higher tier goes first.
func TestScheduleOrder(t *testing.T) {
	s := newSlots(1, nil)
	s.reserve = 0
	s.Push(inst("a"), 5, "a1")
	s.Push(inst("a"), 5, "a2")
	s.Push(inst("a"), 1, "a3")
	s.Push(inst("b"), 5, "b1")
	var got []string
	for range 4 {
		r, ok := s.Next(t.Context())
		if !ok {
			t.Fatal("no claim")
		}
		got = append(got, r.Item)
		if _, ok := s.tryNext(); ok {
			t.Error("a second slot was given")
		}
		r.Release()
	}
	for i, want := range []string{"a3", "b1", "a1", "a2"} {
		if got[i] != want {
			t.Fatalf("order %q", got)
		}
	}
}

// An instance whose turns only wait leaves slots for others.
func TestScheduleShare(t *testing.T) {
	s := newSlots(8, nil)
	for i := range 8 {
		s.Push(inst("a"), 5, string(rune('0'+i)))
	}
	var first *Slot[string]
	for i := range 2 {
		var ok bool
		if first, ok = s.tryNext(); !ok {
			t.Fatalf("claim %d of 2 refused", i)
		}
	}
	if _, ok := s.tryNext(); ok {
		t.Error("one instance has more than a quarter of the slots")
	}
	s.Push(inst("b"), 5, "1")
	if r, ok := s.tryNext(); !ok || r.owner.Instance != "user:b" {
		t.Errorf("another instance waits: %v, %v", r, ok)
	}
	first.Release()
	if r, ok := s.tryNext(); !ok || r.owner.Instance != "user:a" {
		t.Errorf("the slot given back is not used: %v, %v", r, ok)
	}
}

// When all slots are taken by turns that wait, others still get a turn. While the
// turns compute they do not: a slot will be free in a moment.
func TestScheduleReserve(t *testing.T) {
	s := newSlots(4, nil)
	var running []*Slot[string]
	take := func() (*Slot[string], bool) {
		r, ok := s.tryNext()
		if ok {
			running = append(running, r)
		}
		return r, ok
	}
	push := func(id, name string) { s.Push(inst(id), 5, name) }
	for _, id := range []string{"a", "b", "c", "d"} {
		push(id, "1")
		push(id, "2")
		if _, ok := take(); !ok {
			t.Fatal("a free slot is refused")
		}
	}
	if r, ok := s.tryNext(); ok {
		t.Errorf("%s got a second turn out of the reserve", r.owner.Instance)
	}
	push("e", "1")
	if r, ok := take(); ok {
		t.Errorf("%s got a turn out of the reserve while all compute", r.owner.Instance)
	}
	for _, r := range running {
		r.SetWaiting(true)
	}
	if r, ok := take(); !ok || r.owner.Instance != "user:e" {
		t.Errorf("a newcomer waits for those who wait: %v", ok)
	}
	for _, id := range []string{"f", "g", "h", "i"} {
		push(id, "1")
		if r, ok := take(); ok {
			r.SetWaiting(true)
		}
	}
	if s.free != -4 {
		t.Errorf("the reserve has no end: %d slots", s.free)
	}
	for _, r := range running {
		r.Release()
	}
	if s.free != 4 || s.waiting != 0 {
		t.Errorf("at the end %d slots are free and %d turns wait", s.free, s.waiting)
	}
}

// The same for slots: however many turns a tenant wants and however long they
// take, another finds a free slot at once.
func TestScheduleFlood(t *testing.T) {
	for _, slots := range []int{1, 2, 8, 64} {
		s := newSlots(slots, tenants{"flood": {}, "quiet": {}, "third": {}})
		push := func(tenant string, n int) {
			for i := range n {
				s.Push(of(tenant, fmt.Sprint(i)), 5, "t")
			}
		}
		push("flood", 500)
		running := 0
		for _, ok := s.tryNext(); ok; _, ok = s.tryNext() {
			running++
		}
		if running != slots {
			t.Errorf("one tenant alone runs %d turns in %d slots", running, slots)
		}
		push("quiet", 1)
		if r, ok := s.tryNext(); !ok || r.owner.Tenant != "quiet" {
			t.Errorf("%d slots: a quiet tenant waits for one that floods", slots)
		}
	}
}

// Slots that become free go to tenants by their weight.
func TestScheduleWeights(t *testing.T) {
	s := newSlots(4, tenants{"a": {weight: 1}, "b": {weight: 3}})
	for _, name := range []string{"a", "b"} {
		for i := range 500 {
			s.Push(of(name, fmt.Sprint(i)), 5, "t")
		}
	}
	var running []*Slot[string]
	got := map[string]int{}
	for range 400 {
		r, ok := s.tryNext()
		for ; ok; r, ok = s.tryNext() {
			running = append(running, r)
			got[r.owner.Tenant]++
		}
		running[0].Release()
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
	s := newSlots(slots, tenants{"heavy": {weight: 3}, "light": {weight: 1}})
	push := func(tenant string, i int) {
		s.Push(of(tenant, fmt.Sprint(i)), 5, "t")
	}
	for i := range instances * slots {
		push("light", i%instances)
		push("heavy", i%instances)
	}
	got = map[string]int{}
	ends := map[int][]*Slot[string]{}
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	for at := range 600 {
		for r, ok := s.tryNext(); ok; r, ok = s.tryNext() {
			if at > 100 {
				got[r.owner.Tenant]++
			}
			end := at + max(1, long-1+random.IntN(3))
			ends[end] = append(ends[end], r)
			s.Push(r.owner, 5, r.Item)
		}
		for _, r := range ends[at+1] {
			r.Release()
		}
	}
	return got
}

// A quota of turns makes only its tenant's turns wait.
func TestScheduleQuota(t *testing.T) {
	s := newSlots(8, tenants{"small": {slots: 2}, "other": {}})
	for i := range 5 {
		s.Push(of("small", fmt.Sprint(i)), 5, "t")
	}
	s.Push(of("other", "o"), 5, "t")
	got := map[string]int{}
	var last *Slot[string]
	for r, ok := s.tryNext(); ok; r, ok = s.tryNext() {
		got[r.owner.Tenant]++
		if r.owner.Tenant == "small" {
			last = r
		}
	}
	if got["small"] != 2 || got["other"] != 1 {
		t.Errorf("running: %v", got)
	}
	last.Release()
	if r, ok := s.tryNext(); !ok || r.owner.Tenant != "small" {
		t.Error("a turn given back is not used")
	}
}

func BenchmarkSchedule(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("tenants=%d", n), func(b *testing.B) {
			all := tenants{}
			for i := range n {
				all[fmt.Sprint("t", i)] = tenantRule{}
			}
			s := newSlots(64, all)
			for name := range all {
				s.Push(of(name, "u"), 5, "t")
			}
			for b.Loop() {
				r, ok := s.tryNext()
				if !ok {
					b.Fatal("no claim")
				}
				r.Release()
				s.Push(r.owner, 5, r.Item)
			}
		})
	}
}

// TestBoundThatGrows: an item that waits because its tenant has as many slots as it may gets one when the bound grows.
func TestBoundThatGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most atomic.Int64
		most.Store(1)
		s := NewSlots[string](8, TenantRules{Weight: func(string) float64 { return 1 }, MaxSlots: func(string) int { return int(most.Load()) }})
		s.Push(Owner{"acme", "a"}, 5, "1")
		s.Push(Owner{"acme", "b"}, 5, "2")
		if _, ok := s.Next(t.Context()); !ok {
			t.Fatal("no slot")
		}
		got := make(chan bool, 1)
		go func() {
			_, ok := s.Next(t.Context())
			got <- ok
		}()
		synctest.Wait()
		if len(got) > 0 {
			t.Fatal("a tenant has more slots than its bound")
		}
		most.Store(2)
		s.Recheck()
		if !<-got {
			t.Error("no slot after the bound has grown")
		}
		if s.free != 6 {
			t.Errorf("%d slots are free, want 6", s.free)
		}
	})
}
