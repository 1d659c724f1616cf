package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/postgres"
)

// TestShares: hosts that come and go share the slots, and each slot has one host at most.
func TestShares(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a := joinHost(t, dsn)
	settle(t, a)
	wantShares(t, a)
	changed := a.Changed()
	b, c := joinHost(t, dsn), joinHost(t, dsn)
	settle(t, a, b, c)
	wantShares(t, a, b, c)
	select {
	case <-changed:
	default:
		t.Error("the first host was not told of the others")
	}
	for s := range slots {
		if at, ok := a.Owner(s); !ok || at.HID == b.opts.HID != b.works[s] || at.Address == "" {
			t.Errorf("Owner(%d) = %+v, %v; b works on it: %v", s, at, ok, b.works[s])
		}
	}
	if err := b.Leave(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if len(b.works) > 0 {
		t.Errorf("a host that has left works on %d slots", len(b.works))
	}
	settle(t, a, c)
	wantShares(t, a, c)
}

// TestSilent: a host without a sign of life loses its slots, and writes nothing any more, wherever
// in a group it was.
func TestSilent(t *testing.T) {
	t.Parallel()
	states := map[string]struct {
		before func(*testing.T, *testHost) error
		after  func(*testing.T, *testHost) error
	}{
		"idle": {
			func(*testing.T, *testHost) error { return nil },
			func(t *testing.T, h *testHost) error { return h.write(t, 2) },
		},
		"in a group that was not sent": {
			func(t *testing.T, h *testHost) error { return h.writer.BeginGroup(t.Context()) },
			func(t *testing.T, h *testHost) error {
				if err := h.add(t, 2); err != nil {
					return h.writer.RollbackGroup(t.Context(), err)
				}
				return h.writer.CommitGroup(t.Context())
			},
		},
		"in a group that the server has": {
			func(t *testing.T, h *testHost) error {
				return errors.Join(h.writer.BeginGroup(t.Context()), h.add(t, 2))
			},
			func(t *testing.T, h *testHost) error { return h.writer.CommitGroup(t.Context()) },
		},
	}
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := counter(t)
			a, b := joinHost(t, dsn), joinHost(t, dsn)
			settle(t, a, b)
			if err := b.write(t, 1); err != nil {
				t.Fatal(err)
			}
			if err := state.before(t, b); err != nil {
				t.Fatal(err)
			}
			for range int(testTTL/testBeat) - 1 {
				a.step(t)
			}
			if a.Hosts() != 2 {
				t.Fatal("a host was fenced before its time")
			}
			settle(t, a)
			wantShares(t, a)
			if n := a.Hosts(); n != 1 {
				t.Errorf("%d hosts hold the limits after one was fenced, want 1", n)
			}
			if err := state.after(t, b); !errors.Is(err, postgres.ErrFenced) {
				t.Errorf("a group of a fenced host: %v", err)
			}
			wantWritten(t, a, 1, 1)
			wantWritten(t, a, 2, 0)
			if err := b.Beat(t.Context()); !errors.Is(err, ErrFenced) {
				t.Errorf("Beat() of a fenced host = %v", err)
			}
			b.pass(testTTL)
			if b.Alive() {
				t.Error("a host that has not beaten for its TTL says that it is alive")
			}
		})
	}
}

// TestStart: a host that takes longer than its TTL from its joining to its first sign of life gets no
// part of the work until then, and is not fenced.
func TestStart(t *testing.T) {
	t.Parallel()
	dsn := counter(t)
	a, b := joinHost(t, dsn), joinHost(t, dsn)
	for range 2 * int(testTTL/testBeat) {
		a.step(t)
		wantShares(t, a)
	}
	if b.Alive() {
		t.Error("a host without a sign of life says that it is alive")
	}
	settle(t, a, b)
	wantShares(t, a, b)
	if err := b.write(t, 1); err != nil {
		t.Error(err)
	}
}

// TestSignOfLife: a host that beats in the last moment is not fenced.
func TestSignOfLife(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b := joinHost(t, dsn), joinHost(t, dsn)
	settle(t, a, b)
	for range int(testTTL/testBeat) + 1 { // the first shows b's last sign of life
		a.pass(testBeat)
		if err := a.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	silent := a.silent()
	seen, ok := silent[b.opts.HID]
	if !ok || len(silent) != 1 {
		t.Fatalf("silent are %v", silent)
	}
	if err := errors.Join(b.Beat(t.Context()), a.Beat(t.Context())); err != nil {
		t.Fatal(err)
	}
	if fenced, err := a.Fence(t.Context(), b.opts.HID, seen); fenced || err != nil {
		t.Errorf("Fence() = %v, %v", fenced, err)
	}
	settle(t, a, b)
	wantShares(t, a, b)
}

// TestOutage: a server that nobody reaches makes no host silent, however long that lasts; nor does
// a time for which all hosts were stopped.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	a, b := joinHost(t, s.DSN()), joinHost(t, s.DSN())
	settle(t, a, b)
	s.Kill(t)
	for range 2 * int(testTTL/testBeat) {
		for _, h := range []*testHost{a, b} {
			h.pass(testBeat)
			if err := h.Beat(t.Context()); err == nil {
				t.Fatal("a beat without a server succeeded")
			}
		}
	}
	s.Start(t)
	for _, h := range []*testHost{a, b} {
		if err := h.Move(t.Context(), h); err == nil {
			t.Error("a move over a session that is gone succeeded")
		}
	}
	settle(t, a, b)
	wantShares(t, a, b)
	a.step(t) // shows b's last sign of life
	a.pass(10 * testTTL)
	a.step(t)
	settle(t, a, b)
	wantShares(t, a, b)
}

// TestUnservedSlots: slots that are the host's without its knowing, as when the answer to their
// taking was lost, are taken up.
func TestUnservedSlots(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a := joinHost(t, dsn)
	change(t, dsn, "UPDATE slots SET hid = (SELECT max(hid) FROM hosts) WHERE slot < 100")
	settle(t, a)
	wantShares(t, a)
}

// TestEndsWhileWriteHangs: a host whose membership ends for an error ends its work before it waits for what is under
// way, as a write on a connection that loses all packets, which ends with the work alone.
func TestEndsWhileWriteHangs(t *testing.T) {
	t.Parallel()
	const otherFile = `UPDATE inforce SET generation = 1000, config = replace(config, '"1"', '"2"')`
	for name, one := range map[string]struct {
		change string
		want   error
	}{
		"fenced":     {"UPDATE hosts SET dead = true", ErrFenced},
		"level":      {"UPDATE feature_level SET level = 1000", ErrLevel},
		"other file": {otherFile, errConfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Schema(t)
			a := joinConfigHost(t, dsn, "1")
			a.opts.Now, a.opts.TTL = time.Now, testBeat // after which it follows no longer
			a.hangs, a.endedWork = make(chan struct{}), make(chan struct{})
			ended := make(chan error, 1)
			go func() { ended <- a.Run(t.Context(), a) }()
			<-a.hangs
			change(t, dsn, one.change)
			select {
			case err := <-ended:
				if !errors.Is(err, one.want) {
					t.Errorf("Run() = %v", err)
				}
			case <-time.After(2 * time.Minute):
				t.Error("a host whose membership has ended waits for a write that hangs")
				close(a.endedWork)
				<-ended
			}
		})
	}
}

// TestSameAddress: a host says once that another one that is alive has its address. The life before it is none, whose last
// sign of life is older.
func TestSameAddress(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b := joinHost(t, dsn), joinHost(t, dsn)
	var log strings.Builder
	a.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	b.opts.Address = a.opts.Address
	b.step(t)
	a.step(t)
	a.step(t)
	if log.Len() > 0 {
		t.Errorf("of one that gives no sign of life: %s", log.String())
	}
	for range 3 {
		b.step(t)
		a.step(t)
	}
	if n := strings.Count(log.String(), "[cluster] advertise"); n != 1 {
		t.Errorf("it is said %d times: %s", n, log.String())
	}
}

// TestWorkFails: a host that cannot take up work ends its membership, and another takes it up.
func TestWorkFails(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b := joinHost(t, dsn), joinHost(t, dsn)
	// What a part of the work was cancelled by is no end of the host's.
	a.gainFails, a.endedWork = fmt.Errorf("a disk that is full: %w", context.Canceled), make(chan struct{})
	if err := a.Run(t.Context(), a); !errors.Is(err, a.gainFails) {
		t.Fatalf("Run() = %v", err)
	}
	select {
	case <-a.endedWork:
	default:
		t.Error("its other work was not ended")
	}
	a.gainFails = nil
	change(t, dsn, "UPDATE hosts SET dead = true WHERE hid = 1")
	settle(t, b)
	wantShares(t, b)
}

// TestOtherSlots: a server whose work is cut in another way is refused.
func TestOtherSlots(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a := joinHost(t, dsn)
	change(t, dsn, "INSERT INTO slots VALUES (5000)")
	if _, err := Join(t.Context(), Options{DSN: dsn, HID: 17}); err == nil {
		t.Error("Join() succeeded")
	}
	settle(t, a)
}

// TestOneHostPerSlot: whatever hosts do, and in whatever order, no slot is worked on by two that
// can write.
func TestOneHostPerSlot(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
	var hosts []*testHost
	for range 150 {
		switch n := rnd.IntN(20); {
		case len(hosts) == 0 || n == 0 && len(hosts) < 4:
			h := joinHost(t, dsn)
			if err := h.Beat(t.Context()); err != nil { // as each host does before its first move
				t.Fatal(err)
			}
			hosts = append(hosts, h)
		case n == 1: // it is silent from now on
			gone := hosts[rnd.IntN(len(hosts))]
			hosts = slices.DeleteFunc(hosts, func(h *testHost) bool { return h == gone })
		case n == 2:
			gone := hosts[rnd.IntN(len(hosts))]
			if err := gone.Leave(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			hosts = slices.DeleteFunc(hosts, func(h *testHost) bool { return h == gone })
		default:
			hosts[rnd.IntN(len(hosts))].random(t, rnd)
		}
		wantNoDouble(t, hosts)
	}
	if len(hosts) == 0 {
		hosts = append(hosts, joinHost(t, dsn))
	}
	for range 2 * int(testTTL/testBeat) { // the silent ones are fenced
		settle(t, hosts...)
	}
	wantShares(t, hosts...)
}

// random beats or moves. The clock stands often, so that what is read is old.
func (h *testHost) random(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	if rnd.IntN(2) == 0 {
		h.pass(testBeat / 4)
	}
	if rnd.IntN(2) == 0 {
		if err := h.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := h.Move(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

func wantNoDouble(t *testing.T, hosts []*testHost) {
	t.Helper()
	worker := map[Slot]int64{}
	for _, h := range hosts {
		for s := range h.works {
			if worker[s] != 0 {
				t.Fatalf("slot %d is worked on by hosts %d and %d", s, worker[s], h.opts.HID)
			}
			worker[s] = h.opts.HID
		}
	}
}

// TestTakenAtOnce: of hosts that take free slots at the same moment, each slot has one.
func TestTakenAtOnce(t *testing.T) {
	t.Parallel()
	const hosts, rounds = 4, 40
	dsn := pgtest.Schema(t)
	list := make([]*testHost, hosts)
	for i := range list {
		list[i] = joinHost(t, dsn)
	}
	for range rounds {
		change(t, dsn, "UPDATE slots SET hid = NULL")
		taken := make([][]Slot, hosts)
		var all sync.WaitGroup
		for i, h := range list {
			all.Go(func() {
				var err error
				if taken[i], err = h.slots(t.Context(), takeFree, h.opts.HID, int(slots)/hosts+1); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		owners := map[Slot]int{}
		for _, slots := range taken {
			for _, s := range slots {
				if owners[s]++; owners[s] == 2 {
					t.Fatalf("slot %d has two hosts", s)
				}
			}
		}
	}
}
