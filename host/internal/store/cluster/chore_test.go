package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/postgres"
)

// testChores notes what a host does of chores, whose last phase is 2.
type testChores struct {
	did   []string
	left  []Chore
	part  Part
	fails error
}

func (c *testChores) note(text string, args ...any) error {
	if c.fails == nil {
		c.did = append(c.did, fmt.Sprintf(text, args...))
	}
	return c.fails
}

func (c *testChores) Begin(context.Context) ([]Chore, error) { return c.left, c.note("begin") }

func (c *testChores) TakePart(_ context.Context, of Chore, phase int) (Part, error) {
	return c.part, c.note("part %d of %s", phase, of.Tenant)
}

func (c *testChores) Drive(_ context.Context, of Chore, phase int) (bool, error) {
	return phase == 2, c.note("drive %d of %s", phase, of.Tenant)
}

func (c *testChores) End(of Chore) { _ = c.note("end of %s", of.Tenant) }

// choreHost is a host that takes part in chores.
type choreHost struct {
	*testHost
	chores *testChores
}

func joinChoreHost(t *testing.T, dsn string) choreHost {
	t.Helper()
	h := choreHost{joinHost(t, dsn), &testChores{}}
	h.ShareChores(h.chores)
	return h
}

func choreHosts(t *testing.T, n int) (dsn string, hosts []choreHost) {
	t.Helper()
	dsn = pgtest.Schema(t)
	for range n {
		hosts = append(hosts, joinChoreHost(t, dsn))
	}
	for range 3 {
		for _, h := range hosts {
			h.beatOnce(t)
		}
	}
	return dsn, hosts
}

// beatOnce lets a host beat, do its parts, and move.
func (h choreHost) beatOnce(t *testing.T) {
	t.Helper()
	h.pass(testBeat)
	if err := h.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = h.followChores(t.Context())
	if err := h.Move(t.Context(), h.testHost); err != nil {
		t.Fatal(err)
	}
}

func (h choreHost) drive(t *testing.T) {
	t.Helper()
	if _, err := h.driveOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ask asks a host for a chore of a tenant, and returns when it is noted.
func (h choreHost) ask(t *testing.T, tenant string) <-chan error {
	t.Helper()
	end := make(chan error, 1)
	go func() {
		part, err := h.DoChore(t.Context(), Chore{"erase", tenant})
		end <- errors.Join(err, part.Fault)
	}()
	for {
		rows, err := h.readChores(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(rows, func(r choreRow) bool { return r.Tenant == tenant }) {
			return end
		}
	}
}

func (h choreHost) wantDone(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(h.chores.did, want) {
		t.Errorf("host %d did %q, want %q", h.opts.HID, h.chores.did, want)
	}
}

// TestChore: a phase begins once each live host has done its part of the one before. What hosts could not do is
// told to who has asked.
func TestChore(t *testing.T) {
	t.Parallel()
	_, hosts := choreHosts(t, 3)
	a, b, c := hosts[0], hosts[1], hosts[2]
	c.chores.part.Fault = errors.New("a file cannot be removed")
	end := a.ask(t, "acme")
	if _, err := b.DoChore(t.Context(), Chore{"erase", "acme"}); !errors.Is(err, ErrBusy) {
		t.Errorf("a second chore of the tenant: %v", err)
	}
	for phase := 1; phase <= 2; phase++ {
		for range 2 {
			a.drive(t)
			b.drive(t)
			a.beatOnce(t)
			b.beatOnce(t)
		}
		if slices.Contains(a.chores.did, fmt.Sprintf("drive %d of acme", phase)) {
			t.Fatalf("phase %d has ended without a host that lives", phase)
		}
		c.beatOnce(t)
		a.drive(t)
	}
	for _, h := range hosts {
		h.beatOnce(t)
	}
	if err := <-end; err == nil || !strings.Contains(err.Error(), "the host at "+c.opts.Address+": a file cannot be removed") {
		t.Errorf("the end is %v", err)
	}
	a.wantDone(t, "begin", "drive 0 of acme", "part 1 of acme", "drive 1 of acme", "part 2 of acme", "drive 2 of acme", "end of acme")
	for _, h := range hosts[1:] {
		h.wantDone(t, "begin", "part 1 of acme", "part 2 of acme", "end of acme")
	}
	end = c.ask(t, "acme")
	for range 4 {
		for _, h := range hosts {
			h.drive(t)
			h.beatOnce(t)
		}
	}
	if err := <-end; err == nil {
		t.Error("a fault is told once only")
	}
}

// TestChoreOfDead: a chore waits for no host that is dead, and another one goes on with what a dead one drives. A
// host that joins does its parts before it takes slots, again if they fail.
func TestChoreOfDead(t *testing.T) {
	t.Parallel()
	dsn, hosts := choreHosts(t, 3)
	a, b, c := hosts[0], hosts[1], hosts[2]
	_ = a.ask(t, "acme")
	a.drive(t)
	a.beatOnce(t)
	change(t, dsn, fmt.Sprintf("UPDATE hosts SET dead = true WHERE hid = %d", a.opts.HID))
	late := joinChoreHost(t, dsn)
	late.chores.fails = errors.New("the server is away")
	for range 3 {
		b.drive(t)
		b.beatOnce(t)
		c.beatOnce(t)
		late.beatOnce(t)
	}
	if len(late.works) > 0 || slices.Contains(b.chores.did, "drive 1 of acme") {
		t.Errorf("a host that has not begun works on %d slots, and is not waited for: %q", len(late.works), b.chores.did)
	}
	late.chores.fails = nil
	for range 6 {
		for _, h := range []choreHost{b, c, late} {
			h.drive(t)
			h.beatOnce(t)
		}
	}
	late.wantDone(t, "begin", "part 1 of acme", "part 2 of acme", "end of acme")
	b.wantDone(t, "begin", "part 1 of acme", "drive 1 of acme", "part 2 of acme", "drive 2 of acme", "end of acme")
	wantShares(t, b.testHost, c.testHost, late.testHost)
}

// TestChoreLeft: what was left undone is done by the hosts that begin, and one that a program asks for by them, but
// not beside a host that is too old.
func TestChoreLeft(t *testing.T) {
	t.Parallel()
	dsn, hosts := choreHosts(t, 2)
	left := joinChoreHost(t, dsn)
	left.chores.left = []Chore{{"erase", "blue"}}
	hosts = append(hosts, left)
	asked := make(chan error, 1)
	go func() { asked <- RequestChore(t.Context(), dsn, Chore{"rotate", "coal"}) }()
	for end := false; !end; {
		for _, h := range hosts {
			h.drive(t)
			h.beatOnce(t)
		}
		select {
		case err := <-asked:
			if end = true; err != nil {
				t.Error(err)
			}
		default:
		}
	}
	for _, tenant := range []string{"blue", "coal"} {
		for _, h := range hosts {
			if !slices.Contains(h.chores.did, "part 2 of "+tenant) {
				t.Errorf("host %d did %q", h.opts.HID, h.chores.did)
			}
		}
	}
	change(t, dsn, fmt.Sprintf("UPDATE roster SET features = 1 WHERE hid = %d", left.opts.HID))
	if _, err := hosts[0].DoChore(t.Context(), Chore{"erase", "acme"}); !errors.Is(err, ErrOldHost) {
		t.Errorf("beside a host that is too old: %v", err)
	}
	change(t, dsn, "UPDATE hosts SET dead = true")
	if err := RequestChore(t.Context(), dsn, Chore{"rotate", "coal"}); !errors.Is(err, ErrNoHost) {
		t.Errorf("without a host: %v", err)
	}
}

// TestChoreLeftFirst: a host does its first part of what was left undone before it takes slots.
func TestChoreLeftFirst(t *testing.T) {
	t.Parallel()
	h := joinChoreHost(t, pgtest.Schema(t))
	h.chores.left = []Chore{{"erase", "acme"}}
	h.beatOnce(t)
	if len(h.works) == 0 {
		t.Error("the host has no slots")
	}
	h.wantDone(t, "begin", "part 1 of acme")
}

// TestChoreLeftByFenced: a host that is fenced after it has read what was left undone notes nothing: the others
// may have done it, and the tenant may have begun anew.
func TestChoreLeftByFenced(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	h := joinChoreHost(t, dsn)
	h.chores.left = []Chore{{"erase", "acme"}}
	if err := h.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	change(t, dsn, fmt.Sprintf("UPDATE hosts SET dead = true WHERE hid = %d", h.opts.HID))
	if err := h.followChores(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantDone(t, "begin")
	if rows, err := h.readChores(t.Context()); err != nil || len(rows) > 0 {
		t.Errorf("a fenced host has noted %+v, %v", rows, err)
	}
}

// TestDoChoreFenced: a host that is fenced and does not know it begins no chore.
func TestDoChoreFenced(t *testing.T) {
	t.Parallel()
	dsn, hosts := choreHosts(t, 2)
	change(t, dsn, fmt.Sprintf("UPDATE hosts SET dead = true WHERE hid = %d", hosts[0].opts.HID))
	if _, err := hosts[0].DoChore(t.Context(), Chore{"erase", "acme"}); !errors.Is(err, ErrFenced) {
		t.Errorf("a fenced host: %v", err)
	}
	if rows, err := hosts[1].readChores(t.Context()); err != nil || len(rows) > 0 {
		t.Errorf("a fenced host has begun %+v, %v", rows, err)
	}
}

// TestRequestChoreAlone: beside a host that has never shared its server there is none that does a chore.
func TestRequestChoreAlone(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	connector, err := postgres.NewConnector(dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := postgres.OpenWriter(t.Context(), connector)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = alone.DB().Close() })
	if err := RequestChore(t.Context(), dsn, Chore{"rotate", "coal"}); !errors.Is(err, ErrNoHost) {
		t.Errorf("without the tables of hosts that share: %v", err)
	}
}
