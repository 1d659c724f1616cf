package metrics

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	boss = Owner{"acme", "hive", "boss"}
	math = Owner{"acme", "hive", "math"}
	far  = Owner{"other", "hive", "boss"}
)

func batch(reports ...Report) *Batch {
	b := &Batch{}
	for _, r := range reports {
		b.Put(r)
	}
	return b
}

func count(name string, value float64, labels ...string) Report {
	r := Report{Name: name, Value: value}
	for i := 0; i < len(labels); i += 2 {
		r.Labels = append(r.Labels, Label{labels[i], labels[i+1]})
	}
	return r
}

func gauge(name string, value float64) Report { return Report{Name: name, Gauge: true, Value: value} }

func shown(b *Registry) string {
	var lines []string
	for _, s := range b.Series() {
		lines = append(lines, fmt.Sprintf("%s/%s %s%v=%v", s.Tenant, s.Agent, s.Name, s.Labels, s.Value))
	}
	return strings.Join(lines, "; ")
}

// Counters add up, gauges are replaced, and labels and kinds tell series apart.
func TestBoard(t *testing.T) {
	t.Parallel()
	b := New(Limits{10, 20})
	b.Add(boss, batch(count("a", 1), count("a", 2), gauge("a", 7), gauge("a", 8), count("a", 1, "x", "1"), count("a", 1, "x", "2")))
	b.Add(boss, batch(count("a", 4), gauge("a", 5), count("a", 2, "x", "2")))
	b.Add(math, batch(count("a", 1)))
	b.Add(far, batch(count("0", 0)))
	b.Add(far, &Batch{})
	want := "other/boss 0[]=0; acme/boss a[]=7; acme/boss a[]=5; acme/boss a[{x 1}]=1; acme/boss a[{x 2}]=3; acme/math a[]=1"
	if got := shown(b); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	b.Forget("acme")
	if got := shown(b); got != "other/boss 0[]=0" || b.tenants["acme"] != 0 {
		t.Errorf("%s", got)
	}
}

// What has no room is refused and counted; what is there goes on.
func TestBoardIsBounded(t *testing.T) {
	t.Parallel()
	b := New(Limits{2, 3})
	full := batch(count("a", 1), count("b", 1))
	if b.Check(boss, full) != Fits {
		t.Error("there is no room for two")
	}
	b.Add(boss, full)
	if b.Check(boss, batch(count("a", 1))) != Fits || b.Check(boss, batch(count("c", 1))) != AgentFull {
		t.Error("an agent's bound does not hold")
	}
	if b.Check(math, batch(count("a", 1))) != Fits || b.Check(math, batch(count("a", 1), count("b", 1))) != TenantFull {
		t.Error("a tenant's bound does not hold")
	}
	if b.Check(far, full) != Fits {
		t.Error("another tenant has no room")
	}
	b.Add(math, batch(count("a", 1), count("b", 1))) // others have been faster
	b.Add(boss, batch(count("c", 1), count("a", 1)))
	if got := shown(b); got != "acme/boss a[]=2; acme/math a[]=1; acme/boss b[]=1" || b.Refused() != 4 {
		t.Errorf("%s, %d refused", got, b.Refused())
	}
}

// A report that is taken back leaves the batch as it was.
func TestBatchUndo(t *testing.T) {
	t.Parallel()
	b := batch(count("a", 1), gauge("g", 1))
	for _, r := range []Report{count("a", 5), gauge("g", 5), count("new", 5)} {
		b.Put(r)()
	}
	board := New(Limits{9, 9})
	board.Add(boss, b)
	if got := shown(board); got != "acme/boss a[]=1; acme/boss g[]=1" || !slices.Equal(b.order, []string{"a", "g\x00"}) {
		t.Errorf("%s, %q", got, b.order)
	}
}

// Many agents report at once, and nothing is lost.
func TestBoardHammer(t *testing.T) {
	t.Parallel()
	b := New(Limits{100, 1000})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				o := Owner{fmt.Sprint("t", i%3), "hive", "a"}
				r := batch(count("n", 1, "i", fmt.Sprint(i%7)))
				if b.Check(o, r) == Fits {
					b.Add(o, r)
				}
				b.Series()
			}
		})
	}
	all.Wait()
	sum := 0.0
	for _, s := range b.Series() {
		sum += s.Value
	}
	if sum != 1600 || b.Refused() != 0 {
		t.Errorf("%v reports count, %d were refused", sum, b.Refused())
	}
}

// A sum over tenants does not fall when one is erased, and a series that only it had is gone.
func TestForgetKeepsSums(t *testing.T) {
	t.Parallel()
	b := New(Limits{10, 20})
	third := Owner{"third", "hive", "boss"}
	sum := func() (sum float64) {
		for _, s := range b.Series() {
			if s.Name == "a" && !s.Gauge {
				sum += s.Value + s.Erased
			}
		}
		return sum
	}
	b.Add(boss, batch(count("a", 3), count("mine", 1), gauge("a", 7)))
	b.Add(far, batch(count("a", 4), gauge("a", 1)))
	b.Add(third, batch(count("a", 5)))
	b.Forget("acme")
	if got := sum(); got != 12 {
		t.Errorf("the sum is %v, want 12: %s", got, shown(b))
	}
	b.Forget("other")
	if got := sum(); got != 12 || strings.Contains(shown(b), "mine") {
		t.Errorf("the sum is %v, want 12: %s", got, shown(b))
	}
	b.Forget("third")
	if got := shown(b); got != "" {
		t.Errorf("left behind: %s", got)
	}
}
