package scheduler

import (
	"fmt"
	"testing"
)

// Members are served by weight, independent of their demand; an absent one saves
// nothing up.
func TestFairWeights(t *testing.T) {
	f := NewFairQueue(func(name string) float64 { return map[string]float64{"a": 1, "b": 3, "late": 1}[name] },
		func() struct{} { return struct{}{} })
	serve := func(rounds int) map[string]int {
		got := map[string]int{}
		for range rounds {
			p := f.Next(Any)
			f.Grant(p, 1)
			f.Settle(p, 0)
			got[p.Name]++
		}
		return got
	}
	f.Enqueue(f.Member("a"))
	f.Enqueue(f.Member("b"))
	if got := serve(400); got["a"] != 100 || got["b"] != 300 {
		t.Errorf("by weights 1 and 3: %v", got)
	}
	f.Enqueue(f.Member("late"))
	if got := serve(500); got["late"] < 99 || got["late"] > 101 {
		t.Errorf("one who comes late gets %d of 500 with a fifth of the weight", got["late"])
	}
}

// Who comes and goes is not forgiven what he has had.
func TestFairRemembers(t *testing.T) {
	f := NewFairQueue(nil, func() struct{} { return struct{}{} })
	f.Enqueue(f.Member("patient"))
	got := map[string]int{}
	for range 100 {
		f.Enqueue(f.Member("comes and goes"))
		p := f.Next(Any)
		f.Grant(p, 1)
		f.Dequeue(f.Member("comes and goes"))
		f.Settle(p, 0)
		got[p.Name]++
	}
	if got["patient"] != 50 {
		t.Errorf("grants: %v", got)
	}
}

// Parties at rest are forgotten, however many there were.
func TestFairForgets(t *testing.T) {
	f := NewFairQueue(nil, func() struct{} { return struct{}{} })
	for i := range 10_000 {
		p := f.Member(fmt.Sprint(i))
		f.Grant(p, 1)
		f.Settle(p, 0)
	}
	if len(f.members) > 2*minForgetAbove {
		t.Errorf("%d parties are remembered", len(f.members))
	}
}
