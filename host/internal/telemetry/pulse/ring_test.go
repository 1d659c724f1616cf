package pulse_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/telemetry/pulse"
)

// number is the number in an id of the ring.
func number(t *testing.T, id string) int {
	t.Helper()
	_, digits, _ := strings.Cut(id, "-")
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Error("id", id, "has no number")
	}
	return n
}

// follower reads a ring and checks that what it gets is in order, without doubles, and whole
// but for what resets announce.
type follower struct {
	t      *testing.T
	last   string
	seen   int
	missed int
}

// follow reads until at least most events were seen, or the event with the number end.
func (f *follower) follow(ctx context.Context, ring *pulse.Ring, most, end int) {
	r := ring.NewReader(f.last, pulse.Filter{})
	defer r.Close()
	next := 0
	if f.last != "" {
		next = number(f.t, f.last) + 1
	}
	for seen := 0; seen < most && (f.last == "" || number(f.t, f.last) < end); {
		reset, list, err := r.Next(ctx)
		if err != nil {
			f.t.Error(err)
			return
		}
		if reset != nil {
			at := number(f.t, r.ID()) + 1
			if reset.Reason == pulse.ResetBehind && at-next != int(reset.Missed) {
				f.t.Errorf("behind: from %d to %d are not %d", next, at, reset.Missed)
			}
			f.missed += int(reset.Missed)
			next = at
		}
		for _, e := range list {
			if int(e.N) != next || e.Size != next {
				f.t.Errorf("event %d, which holds %d, comes where %d is due", e.N, e.Size, next)
				return
			}
			next++
		}
		seen += len(list)
		f.seen += len(list)
		f.last = r.ID()
	}
}

// Many events with readers that come, go and stop: each reads them in order, none twice,
// and whole or behind a reset that counts what is missing.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	const events, readers = manyEvents, 12
	ring := pulse.NewRing("here", pulse.DefaultSize)
	var all sync.WaitGroup
	followers := make([]follower, readers)
	began := make(chan struct{}, readers)
	for i := range followers {
		f := &followers[i]
		f.t = t
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			first := ring.NewReader("", pulse.Filter{})
			f.last = first.ID()
			first.Close()
			began <- struct{}{}
			if i == 0 {
				f.follow(t.Context(), ring, events, events)
				return
			}
			for number(t, f.last) < events && !t.Failed() {
				f.follow(t.Context(), ring, 1+random.IntN(20_000), events) // and comes again with the last id
			}
		})
	}
	for range readers {
		<-began
	}
	stopped := ring.NewReader("", pulse.Filter{}) // never reads
	for n := 1; n <= events; {
		batch := make([]pulse.Event, min(1+n%7, events+1-n))
		for i := range batch {
			batch[i] = pulse.Event{Kind: pulse.Mail, Size: n}
			n++
		}
		ring.Publish(batch...)
	}
	all.Wait()
	for i := range followers {
		if f := &followers[i]; f.seen+f.missed != events {
			t.Errorf("reader %d has seen %d and missed %d of %d", i, f.seen, f.missed, events)
		}
	}
	if reset, _, err := stopped.Next(t.Context()); err != nil || reset == nil || reset.Reason != pulse.ResetNew {
		t.Errorf("the reader that stopped: %v, %v", reset, err)
	}
	reset, _, err := stopped.Next(t.Context())
	if err != nil || reset == nil || reset.Reason != pulse.ResetBehind || reset.Missed != events-pulse.DefaultSize/2 {
		t.Errorf("the reader that stopped is behind: %+v, %v", reset, err)
	}
	stopped.Close()
}

// next returns what a reader gets without waiting.
func next(t *testing.T, r *pulse.Reader) (*pulse.Reset, []*pulse.Entry) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	reset, list, err := r.Next(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return reset, list
}

// The id of another incarnation, of an event that is still to come, and what is no id at all
// are answered with a reset.
func TestReaderOfAnotherIncarnation(t *testing.T) {
	t.Parallel()
	before, ring := pulse.NewRing("here", 8), pulse.NewRing("here", 8)
	before.Publish(pulse.Event{Kind: pulse.Task}, pulse.Event{Kind: pulse.Task})
	ring.Publish(pulse.Event{Kind: pulse.Task})
	for _, last := range []string{before.ID(1), before.ID(2), ring.ID(2), "x", "-", ring.ID(1) + "x", strings.TrimSuffix(ring.ID(1), "1")} {
		r := ring.NewReader(last, pulse.Filter{})
		if reset, _ := next(t, r); reset == nil || reset.Reason != pulse.ResetIncarnation || r.ID() != ring.ID(1) {
			t.Errorf("after %q: %+v at %s", last, reset, r.ID())
		}
		r.Close()
	}
	r := ring.NewReader(ring.ID(0), pulse.Filter{})
	defer r.Close()
	if reset, list := next(t, r); reset != nil || len(list) != 1 {
		t.Errorf("after the first id: %v, %d events", reset, len(list))
	}
}

// A reader of a tenant sees its events alone, none of the host, and a user the events of one
// instance.
func TestFilter(t *testing.T) {
	t.Parallel()
	ring := pulse.NewRing("here", 64)
	ring.Publish(
		pulse.Event{Kind: pulse.Reload},
		pulse.Event{Kind: pulse.Mail, Tenant: "acme", Swarm: "hive", Instance: "user:alice", Task: "t1"},
		pulse.Event{Kind: pulse.Turn, Tenant: "acme", Swarm: "hive", Instance: "user:bob", Task: "t2"},
		pulse.Event{Kind: pulse.Mail, Tenant: "bolt", Swarm: "hive", Instance: "user:alice", Task: "t1"},
	)
	for name, c := range map[string]struct {
		filter pulse.Filter
		want   []int
	}{
		"all":      {pulse.Filter{}, []int{1, 2, 3, 4}},
		"tenant":   {pulse.Filter{Tenant: "acme"}, []int{2, 3}},
		"instance": {pulse.Filter{Tenant: "acme", Swarm: "hive", Instance: "user:alice"}, []int{2}},
		"swarm":    {pulse.Filter{Tenant: "acme", Swarm: "nest", Instance: "user:alice"}, nil},
		"task":     {pulse.Filter{Task: "t1"}, []int{2, 4}},
		"kinds":    {pulse.Filter{Kinds: []pulse.Kind{pulse.Turn, pulse.Reload}}, []int{1, 3}},
	} {
		r := ring.NewReader(ring.ID(0), c.filter)
		_, list := next(t, r)
		var got []int
		for _, e := range list {
			got = append(got, int(e.N))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		r.Close()
	}
}

// A reader that was woken for nothing looks again after a pause, not at each event, and then has
// what has come meanwhile.
func TestReaderPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring := pulse.NewRing("here", 8)
		r := ring.NewReader(ring.ID(0), pulse.Filter{Kinds: []pulse.Kind{pulse.Task}})
		defer r.Close()
		go func() {
			for range 3 {
				ring.Publish(pulse.Event{Kind: pulse.Mail})
				synctest.Wait()
			}
			ring.Publish(pulse.Event{Kind: pulse.Task})
			time.Sleep(time.Millisecond)
			ring.Publish(pulse.Event{Kind: pulse.Task})
		}()
		if reset, list, err := r.Next(t.Context()); reset != nil || len(list) != 2 || err != nil {
			t.Errorf("%v, %d events, %v; want 2 together", reset, len(list), err)
		}
		for range 2 {
			ctx, leave := context.WithCancelCause(t.Context())
			gone := errors.New("gone")
			go func() {
				ring.Publish(pulse.Event{Kind: pulse.Mail})
				synctest.Wait()
				leave(gone)
			}()
			if _, _, err := r.Next(ctx); !errors.Is(err, gone) {
				t.Errorf("a reader that leaves in the pause: %v", err)
			}
		}
	})
}

// An erased tenant leaves no event, and nobody's order or numbers change by it.
func TestDropTenant(t *testing.T) {
	t.Parallel()
	ring := pulse.NewRing("here", 8)
	ring.Publish(pulse.Event{Kind: pulse.Mail, Tenant: "acme"}, pulse.Event{Kind: pulse.Mail, Tenant: "bolt"})
	ring.DropTenant("acme")
	r := ring.NewReader(ring.ID(0), pulse.Filter{})
	defer r.Close()
	if reset, list := next(t, r); reset != nil || len(list) != 1 || list[0].N != 2 || list[0].Tenant != "bolt" {
		t.Errorf("after the erasure: %v, %v", reset, list)
	}
}
