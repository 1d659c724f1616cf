package sqlite

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

func weights(tenant string) float64 { return map[string]float64{"heavy": 3, "light": 1}[tenant] }

func jobOf(tenant string) job {
	return job{change: &flush{}, tenant: tenant, done: make(chan error, 1)}
}

// Tenants that flood the writer get by weight, and each one's jobs keep order.
func TestQueueWeights(t *testing.T) {
	t.Parallel()
	q := newQueue(weights)
	sent := map[string][]job{}
	for _, tenant := range []string{"light", "heavy"} {
		for range tenantChanges {
			j := jobOf(tenant)
			sent[tenant] = append(sent[tenant], j)
			if err := q.putJob(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string]int{}
	for range 100 {
		j, ok, _ := q.takeJob()
		if !ok || j.done != sent[j.tenant][got[j.tenant]].done {
			t.Fatalf("job %d of %q: %v, out of order or missing", got[j.tenant], j.tenant, ok)
		}
		got[j.tenant]++
	}
	if got["heavy"] != 75 || got["light"] != 25 {
		t.Errorf("of 100 jobs by weights 3 and 1: %v", got)
	}
}

// large is a change of many bytes.
type large struct{ flush }

func (large) bytes() int { return 9 * costBytes }

// Who writes much at once gets fewer turns at the writer.
func TestQueueBytes(t *testing.T) {
	t.Parallel()
	q := newQueue(nil)
	for range 100 {
		for tenant, c := range map[string]change{"large": &large{}, "small": &flush{}} {
			if err := q.putJob(t.Context(), job{change: c, tenant: tenant}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string]int{}
	for range 99 {
		j, _, _ := q.takeJob()
		got[j.tenant]++
	}
	if got["small"] != 90 || got["large"] != 9 {
		t.Errorf("jobs of cost 1 and 10: %v", got)
	}
}

// What waits of one tenant has a bound, and no other tenant waits for it.
func TestQueueIsBoundedPerTenant(t *testing.T) {
	t.Parallel()
	q := newQueue(nil)
	for range tenantChanges {
		if err := q.putJob(t.Context(), jobOf("flood")); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.putJob(t.Context(), jobOf("calm")); err != nil {
		t.Errorf("put for another tenant: %v", err)
	}
	why := errors.New("why")
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := q.putJob(gone, jobOf("flood")); !errors.Is(err, why) {
		t.Errorf("put without room = %v, want the cause of the context's end", err)
	}
	late := make(chan error)
	go func() { late <- q.putJob(t.Context(), jobOf("flood")) }()
	for range tenantChanges/2 + 2 {
		q.takeJob()
	}
	if err := <-late; err != nil {
		t.Errorf("put when there is room again: %v", err)
	}
}

// Close ends those who wait for room, and leaves what is in.
func TestQueueClose(t *testing.T) {
	t.Parallel()
	q := newQueue(nil)
	for range tenantChanges {
		if err := q.putJob(t.Context(), jobOf("flood")); err != nil {
			t.Fatal(err)
		}
	}
	late := make(chan error)
	go func() { late <- q.putJob(t.Context(), jobOf("flood")) }()
	q.close()
	if err := <-late; !errors.Is(err, ErrClosed) {
		t.Errorf("put without room = %v, want ErrClosed", err)
	}
	for i := range tenantChanges {
		if _, ok := q.nextJob(); !ok {
			t.Fatalf("%d jobs are left after close, want %d", i, tenantChanges)
		}
	}
	if _, ok := q.nextJob(); ok {
		t.Error("a job that nobody has put")
	}
}

// slow is a change that takes a while by the writer's clock.
type slow struct {
	tenant string
	pass   func()
	done   func(tenant string)
}

func (*slow) bytes() int { return 0 }

func (s *slow) tenantName() string { return s.tenant }

func (s *slow) apply(context.Context, *tables) (int, error) {
	s.pass()
	s.done(s.tenant)
	return 1, nil
}

// A change that comes while a flood is written is in the group in hand, and that
// group then takes in no more than fits the time of a sync.
func TestNewcomerWaitsForOneGroup(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	var clock struct {
		sync.Mutex
		at time.Time
	}
	s.writer.now = func() time.Time { // only read by the writer from here on
		clock.Lock()
		defer clock.Unlock()
		return clock.at
	}
	pass := func() {
		clock.Lock()
		defer clock.Unlock()
		clock.at = clock.at.Add(time.Millisecond)
	}
	const flooding = 200
	var order []string // the writer's alone until all is written
	done := func(tenant string) { order = append(order, tenant) }
	b := &blocked{in: make(chan struct{}), out: make(chan struct{})}
	var wg sync.WaitGroup
	put := func(tenant string) {
		wg.Go(func() {
			if err := s.writer.submit(t.Context(), &slow{tenant, pass, done}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() { _ = s.writer.submit(t.Context(), b) })
	<-b.in
	for range flooding {
		put(swarm.DefaultTenant)
	}
	for s.writer.queue.length() < flooding {
		wait()
	}
	put("calm")
	for s.writer.queue.waiting() < 2 {
		wait()
	}
	b.out <- struct{}{}
	wg.Wait()
	if at := slices.Index(order, "calm"); at > 1 {
		t.Errorf("the newcomer is number %d", at)
	}
	if _, groups := s.Stats(); groups < 2 {
		t.Errorf("%d groups, want one that ends behind the newcomer", groups)
	}
}

// waiting is how many tenants have something in the queue.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tenants.Waiting()
}
