package fair

import (
	"fmt"
	"testing"
)

// Parties get by their weight, whoever asks most; who was away saves nothing up.
func TestFairWeights(t *testing.T) {
	f := New(func(name string) float64 { return map[string]float64{"a": 1, "b": 3, "late": 1}[name] },
		func() struct{} { return struct{}{} })
	serve := func(rounds int) map[string]int {
		got := map[string]int{}
		for range rounds {
			p := f.Next(Anyone)
			f.Grant(p, 1)
			f.Settle(p, 0)
			got[p.Name]++
		}
		return got
	}
	f.Wait(f.Party("a"))
	f.Wait(f.Party("b"))
	if got := serve(400); got["a"] != 100 || got["b"] != 300 {
		t.Errorf("by weights 1 and 3: %v", got)
	}
	f.Wait(f.Party("late"))
	if got := serve(500); got["late"] < 99 || got["late"] > 101 {
		t.Errorf("one who comes late gets %d of 500 with a fifth of the weight", got["late"])
	}
}

// Who comes and goes is not forgiven what he has had.
func TestFairRemembers(t *testing.T) {
	f := New(nil, func() struct{} { return struct{}{} })
	f.Wait(f.Party("patient"))
	got := map[string]int{}
	for range 100 {
		f.Wait(f.Party("comes and goes"))
		p := f.Next(Anyone)
		f.Grant(p, 1)
		f.Leave(f.Party("comes and goes"))
		f.Settle(p, 0)
		got[p.Name]++
	}
	if got["patient"] != 50 {
		t.Errorf("grants: %v", got)
	}
}

// Parties at rest are forgotten, however many there were.
func TestFairForgets(t *testing.T) {
	f := New(nil, func() struct{} { return struct{}{} })
	for i := range 10_000 {
		p := f.Party(fmt.Sprint(i))
		f.Grant(p, 1)
		f.Settle(p, 0)
	}
	if len(f.by) > 2*minSweep {
		t.Errorf("%d parties are remembered", len(f.by))
	}
}
