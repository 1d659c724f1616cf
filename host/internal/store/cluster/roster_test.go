package cluster

import (
	"errors"
	"testing"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm/slot"
)

// listed wants a host to list these hosts, and returns what it lists.
func (h *testHost) listed(t *testing.T, want ...*testHost) map[int64]Listed {
	t.Helper()
	list, _ := h.List()
	found := map[int64]Listed{}
	for _, l := range list {
		found[l.HID] = l
	}
	for _, w := range want {
		has := 0
		for s := range w.works {
			if s < slot.Tasks {
				has++
			}
		}
		if l, ok := found[w.opts.HID]; !ok || l.Address != w.opts.Address || l.Slots != has {
			t.Errorf("host %d lists host %d as %+v, which has %d slots", h.opts.HID, w.opts.HID, l, has)
		}
	}
	if len(list) != len(want) {
		t.Errorf("host %d lists %d hosts, want %d", h.opts.HID, len(list), len(want))
	}
	return found
}

// TestDrain: a host that is drained gives all its slots away and takes none, and the last one that takes
// slots cannot be drained. Where the others are lost a host that is drained takes slots again.
func TestDrain(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, two := joinHost(t, dsn), joinHost(t, dsn)
	settle(t, one, two)
	wantShares(t, one, two)
	if err := one.Drain(t.Context(), two.opts.HID); err != nil {
		t.Fatal(err)
	}
	settle(t, one, two)
	wantShares(t, one)
	if one.IsDraining() || !two.IsDraining() {
		t.Error("the host that is drained is another one")
	}
	if workers, hosts := one.Workers(), one.Hosts(); workers != 1 || hosts != 2 {
		t.Errorf("%d of %d hosts work, want 1 of 2", workers, hosts)
	}
	if !one.listed(t, one, two)[two.opts.HID].Draining || len(two.works) > 0 {
		t.Errorf("the host that is drained has %d slots", len(two.works))
	}
	if err := two.Drain(t.Context(), one.opts.HID); !errors.Is(err, ErrLastHost) {
		t.Errorf("the last host is drained: %v", err)
	}
	if err := two.Drain(t.Context(), 999); !errors.Is(err, ErrNoHost) {
		t.Errorf("a host that is not there is drained: %v", err)
	}
	c := two.Counts()
	if c.Given < int64(slots)/2 || c.Taken != c.Given || c.Fenced != 0 || c.LateBeats != 0 {
		t.Errorf("the host that is drained counts %+v", c)
	}
	one.pass(2 * testBeat)
	one.step(t)
	if c := one.Counts(); c.Taken < int64(slots) || c.LateBeats != 1 {
		t.Errorf("the other one counts %+v", c)
	}
	if err := one.Leave(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	settle(t, two)
	wantShares(t, two)
	if err := two.Drain(t.Context(), one.opts.HID); !errors.Is(err, ErrNoHost) {
		t.Errorf("a host that has left is drained: %v", err)
	}
}

// TestRetiringBesideDrained: the slots of a host that is drained or lost go to those that stay, while another one
// stops: it takes none any more, however long its turns take to end. With no other host they go to those that
// are drained.
func TestRetiringBesideDrained(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	stays, drained, stops := joinHost(t, dsn), joinHost(t, dsn), joinHost(t, dsn)
	settle(t, stays, drained, stops)
	wantShares(t, stays, drained, stops)
	kept := len(stops.works)
	stops.Retire()
	settle(t, stops, stays, drained)
	if !stays.listed(t, stays, drained, stops)[stops.opts.HID].Draining {
		t.Error("the host that stops is listed as one that takes slots")
	}
	if err := stays.Drain(t.Context(), drained.opts.HID); err != nil {
		t.Fatal(err)
	}
	settle(t, stops, stays, drained)
	if n := len(stays.works) + kept; n != int(slots) || len(stops.works) != kept || len(drained.works) > 0 {
		t.Errorf("%d slots are worked on, %d by the host that is drained", n, len(drained.works))
	}
	if err := stays.Drain(t.Context(), stays.opts.HID); !errors.Is(err, ErrLastHost) {
		t.Errorf("the last host that takes slots beside one that stops is drained: %v", err)
	}
	if err := stays.Leave(t.Context(), stays); err != nil {
		t.Fatal(err)
	}
	settle(t, stops, drained)
	if n := len(drained.works) + kept; n != int(slots) {
		t.Errorf("%d slots are worked on by the host that is drained and one that stops", n)
	}
	if err := stops.Leave(t.Context(), stops); err != nil {
		t.Fatal(err)
	}
	settle(t, drained)
	wantShares(t, drained)
}

// TestLevel: the feature level rises to what all hosts have, when an operator says so and not before, and
// refuses hosts that do not have it: those that start, and one that was about to.
func TestLevel(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	older, newer := joinHost(t, dsn), joinHost(t, dsn)
	newer.opts.Features = Features + 1
	change(t, dsn, "UPDATE roster SET features = features + 1 WHERE hid = (SELECT max(hid) FROM roster)")
	settle(t, older, newer)
	if level, err := newer.Finalize(t.Context()); err != nil || level != Features {
		t.Fatalf("level %d with an older host, %v", level, err)
	}
	if err := older.Leave(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	late := joinHost(t, dsn)
	if level, err := newer.Finalize(t.Context()); err != nil || level != Features+1 {
		t.Fatalf("level %d without an older host, %v", level, err)
	}
	if err := late.Beat(t.Context()); !errors.Is(err, ErrLevel) {
		t.Errorf("the first sign of life of an older host: %v", err)
	}
	if _, err := Join(t.Context(), Options{DSN: dsn, HID: 999, Address: "http://host-999", Swarm: testSwarm}); !errors.Is(err, ErrLevel) {
		t.Errorf("an older host joins: %v", err)
	}
	newer.step(t)
	if _, level := newer.List(); level != Features+1 {
		t.Errorf("the host lists the level %d", level)
	}
}
