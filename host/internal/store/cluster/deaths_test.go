package cluster

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"skep/host/internal/store/pgtest"
)

// noSet is a running set without a disk; its numbers go up.
type noSet struct{ n int }

func (s *noSet) Begin(ID) int { s.n++; return s.n }
func (*noSet) Computing(int)  {}
func (*noSet) Waiting(int)    {}
func (*noSet) End(ID, int)    {}
func (*noSet) Stop(ID, int)   {}
func (*noSet) Forget(ID)      {}

// share makes the host's set, whose life is its only byte, and publishes what is given to compute.
func (h *testHost) share(t *testing.T, life byte, compute ...ID) (*SharedRunSet, []int) {
	t.Helper()
	c := h.Share(&noSet{}, []byte{life})
	var numbers []int
	for _, id := range compute {
		n := c.Begin(id)
		c.Computing(n)
		numbers = append(numbers, n)
	}
	h.publish(t, c)
	return c, numbers
}

// publish publishes what computes, as after publishAfter.
func (h *testHost) publish(t *testing.T, c *SharedRunSet) {
	t.Helper()
	c.mu.Lock()
	for n, b := range c.bursts {
		b.begin = b.begin.Add(-2 * publishAfter)
		if b.paused {
			b.last = b.last.Add(-2 * sameBurst)
		}
		c.bursts[n] = b
	}
	c.mu.Unlock()
	list, _ := c.long()
	if err := c.publish(t.Context(), true, list); err != nil {
		t.Fatal(err)
	}
}

func wantDeaths(t *testing.T, h *testHost, id ID, want Deaths) {
	t.Helper()
	if err := h.readDeaths(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.Deaths()[id]; got != want {
		t.Errorf("host %d sees %+v of %x, want %+v", h.opts.HID, got, id[:1], want)
	}
}

// die lets a host be silent until another one has fenced it.
func die(t *testing.T, watcher *testHost) {
	t.Helper()
	for range int(testTTL/testBeat) + 1 {
		watcher.step(t)
	}
}

// TestDeaths: what a host computed when it died is blamed for its death once, whoever notes it, until
// it is done.
func TestDeaths(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b, c := joinHost(t, dsn), joinHost(t, dsn), joinHost(t, dsn)
	settle(t, a, b, c)
	poison, waits, done := ID{1}, ID{2}, ID{3}
	set, numbers := c.share(t, 'c', poison, waits, done)
	set.Waiting(numbers[1])
	set.End(done, numbers[2])
	c.publish(t, set)
	wantDeaths(t, a, poison, Deaths{}) // it lives
	if untried, _, err := c.readUntried(t.Context(), c); err != nil || len(untried) > 0 {
		t.Errorf("what a host that lives computes is untried: %v, %v", untried, err)
	}
	for range int(testTTL/testBeat) + 1 {
		a.step(t)
		b.step(t)
	}
	for _, h := range []*testHost{a, b} {
		wantDeaths(t, h, poison, Deaths{Elsewhere: 1})
		wantDeaths(t, h, waits, Deaths{})
		wantDeaths(t, h, done, Deaths{})
	}
	// The dead one publishes nothing, and its disk says the same of the same life.
	c.publish(t, set)
	again := joinHost(t, dsn)
	again.opts.Address = c.opts.Address
	if err := again.NoteDeath(t.Context(), []byte{'c'}, []ID{poison}); err != nil {
		t.Fatal(err)
	}
	wantDeaths(t, again, poison, Deaths{Here: 1})
	if untried, others, err := again.readUntried(t.Context(), again); err != nil || len(untried) == 0 || others == 0 {
		t.Errorf("%v, %d, %v: the poison is to be tried by another host", untried, others, err)
	}
	b.share(t, 'b', poison)
	die(t, a)
	wantDeaths(t, a, poison, Deaths{Elsewhere: 2})
	wantDeaths(t, again, poison, Deaths{Here: 1, Elsewhere: 1})
	if untried, _, err := again.readUntried(t.Context(), again); err != nil || len(untried) > 0 {
		t.Errorf("%v, %v: the poison has been tried by another host", untried, err)
	}
	set, numbers = a.share(t, 'a', poison)
	set.End(poison, numbers[0])
	a.publish(t, set)
	wantDeaths(t, a, poison, Deaths{})
	// Its first host is back late, and knows of the death alone, as one does that has not seen its end.
	late := joinHost(t, dsn)
	late.opts.Address = "http://late"
	if err := late.NoteDeath(t.Context(), []byte{'c'}, []ID{poison}); err != nil {
		t.Fatal(err)
	}
	wantDeaths(t, a, poison, Deaths{})
	if untried, _, err := late.readUntried(t.Context(), late); err != nil || len(untried) > 0 {
		t.Errorf("%v, %v: the poison has ended", untried, err)
	}
	// It had ended to wait for a person, and goes on.
	settle(t, a, late)
	late.share(t, 'e', poison)
	die(t, a)
	wantDeaths(t, a, poison, Deaths{Elsewhere: 1})
}

// TestEndedWhileItWasPublished: a host does not wait for others to do what it had published, or its disk has as begun,
// when it was killed, and what had ended by then, whether the others have noted its death or not.
func TestEndedWhileItWasPublished(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b := joinHost(t, dsn), joinHost(t, dsn)
	settle(t, a, b)
	published, onDisk, left := ID{1}, ID{2}, ID{3}
	b.share(t, 'b', published, left)
	again := joinHost(t, dsn)
	again.opts.Address = b.opts.Address
	want := func(want ...ID) {
		t.Helper()
		untried, _, err := again.readUntried(t.Context(), again)
		slices.SortFunc(untried, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
		if err != nil || !slices.Equal(untried, want) {
			t.Errorf("untried: %x, %v, want %x", untried, err, want)
		}
	}
	if err := again.NoteDeath(t.Context(), []byte{'b'}, []ID{onDisk, left}); err != nil {
		t.Fatal(err)
	}
	want(published, onDisk, left)
	again.ended = []ID{published, onDisk}
	want(left)
	die(t, a)
	for _, id := range []ID{published, onDisk, left} { // each may be done again
		wantDeaths(t, a, id, Deaths{Elsewhere: 1})
	}
	want(left)
}

// TestLeft: a host that stops in order has killed itself by nothing.
func TestLeft(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b := joinHost(t, dsn), joinHost(t, dsn)
	settle(t, a, b)
	b.share(t, 'b', ID{1})
	if err := b.Leave(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	wantDeaths(t, a, ID{1}, Deaths{})
}

// TestPublished: a member that runs publishes what computes for long, also to a server that has
// forgotten it, and what waits no more.
func TestPublished(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a := joinHost(t, dsn)
	settle(t, a)
	set := a.Share(&noSet{}, []byte{'a'})
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		set.publishAll(ctx)
		close(over)
	}()
	defer func() {
		stop()
		<-over
	}()
	n := set.Begin(ID{1})
	set.Computing(n)
	wantPublished(t, dsn, 1)
	s := session{dsn: dsn}
	defer func() { _ = s.close() }()
	if err := s.exec(t.Context(), "TRUNCATE computing"); err != nil {
		t.Fatal(err)
	}
	wantPublished(t, dsn, 1)
	set.Waiting(n)
	wantPublished(t, dsn, 0)
}

// TestBursts: work that lays its token down again and again has computed all the while, and work that
// computes a little now and then is not published.
func TestBursts(t *testing.T) {
	t.Parallel()
	set := (&Member{}).Share(&noSet{}, []byte{'a'})
	yields, calls, waits := set.Begin(ID{1}), set.Begin(ID{2}), set.Begin(ID{3})
	now := time.Now()
	for n, b := range map[int]burst{
		yields: {begin: now.Add(-time.Hour), last: now, paused: true},
		calls:  {begin: now.Add(-time.Hour), last: now.Add(-time.Minute), paused: true},
		waits:  {begin: now.Add(-time.Hour), last: now.Add(-time.Minute), paused: true},
	} {
		set.bursts[n] = b
	}
	set.Computing(yields)
	set.Computing(calls)
	if begin := set.bursts[calls].begin; begin.Before(now) {
		t.Errorf("a burst goes on after a minute, since %v", begin)
	}
	set.Waiting(calls)
	if list, _ := set.long(); !slices.Equal(list, []ID{{1}}) {
		t.Errorf("%x have computed for long, want only what yields", list)
	}
	set.Waiting(yields)
	if list, more := set.long(); !slices.Equal(list, []ID{{1}}) || !more {
		t.Errorf("%x have computed for long, %v: want what yields, for now", list, more)
	}
	if _, ok := set.bursts[waits]; ok {
		t.Error("what waits has a burst")
	}
}

// wantPublished waits until so many pieces of work are there to be seen.
func wantPublished(t *testing.T, dsn string, want int) {
	t.Helper()
	s := session{dsn: dsn}
	defer func() { _ = s.close() }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		rows, err := s.change(t.Context(), "SELECT FROM computing, unnest(work)")
		if err != nil {
			t.Fatal(err)
		}
		if int(rows) == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d pieces of work are published, want %d", rows, want)
		}
	}
}

// TestForgetLife: of a host that ended in order while its server was away no work is to blame, whether the others have
// noted its death before it is started again or do so later. Its other deaths stay.
func TestForgetLife(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b, c := joinHost(t, dsn), joinHost(t, dsn), joinHost(t, dsn)
	settle(t, a, b, c)
	work, other := ID{1}, ID{2}
	b.share(t, 'b', work)
	c.share(t, 'c', work, other)
	again := joinHost(t, dsn)
	forget := func(life byte) {
		t.Helper()
		if err := again.ForgetLife(t.Context(), []byte{life}); err != nil {
			t.Fatal(err)
		}
	}
	forget('b')
	die(t, a)
	wantDeaths(t, a, work, Deaths{Elsewhere: 1}) // of c
	wantDeaths(t, a, other, Deaths{Elsewhere: 1})
	forget('c')
	wantDeaths(t, a, work, Deaths{})
	wantDeaths(t, a, other, Deaths{})
}
