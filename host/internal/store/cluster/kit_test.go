package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that tests set.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

// testHost is a host with its writer, whose work is a set of slots.
type testHost struct {
	*Member
	*clock
	writer *postgres.Conn
	db     *sql.DB
	on     *sql.Conn
	works  map[Slot]bool
	// gainFails is what Gained returns.
	gainFails error
	// ended is work that is not to be done any more.
	ended []ID
	// hangs, unless it is nil, is closed once Gained has begun, which then returns when endedWork is closed.
	hangs, endedWork chan struct{}
}

func (h *testHost) Ended(error) {
	if h.endedWork != nil {
		close(h.endedWork)
	}
}

func (h *testHost) Undone(_ context.Context, work []ID) ([]ID, error) {
	return slices.DeleteFunc(slices.Clone(work), func(id ID) bool { return slices.Contains(h.ended, id) }), nil
}

func (h *testHost) Gained(_ context.Context, list []Slot) error {
	if h.gainFails != nil {
		return h.gainFails
	}
	if h.hangs != nil {
		close(h.hangs)
		<-h.endedWork
		return ErrFenced
	}
	for _, s := range list {
		if h.works[s] {
			return fmt.Errorf("slot %d was gained twice", s)
		}
		h.works[s] = true
	}
	return nil
}

func (h *testHost) Losing(_ context.Context, list []Slot) error {
	for _, s := range list {
		if !h.works[s] {
			return fmt.Errorf("slot %d was lost without having been gained", s)
		}
		delete(h.works, s)
	}
	return nil
}

const (
	testBeat = time.Second
	testTTL  = 6 * time.Second

	testSwarm = "hive"
)

// joinHost starts a host on a database.
func joinHost(t *testing.T, dsn string) *testHost {
	t.Helper()
	return joinLife(t, dsn, "", "")
}

// joinLife is joinHost of a start with a name, and the name of the one before it.
func joinLife(t *testing.T, dsn, life, prior string) *testHost {
	t.Helper()
	return joinAt(t, dsn, time.Unix(1000, 0), life, prior)
}

// joinAt is joinLife at a time of the host's own clock.
func joinAt(t *testing.T, dsn string, own time.Time, life, prior string) *testHost {
	t.Helper()
	connector, err := postgres.NewConnector(dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	connector.Shared = true
	h := &testHost{clock: &clock{own}, works: map[Slot]bool{}}
	if h.writer, err = postgres.OpenWriter(t.Context(), connector); err != nil {
		t.Fatal(err)
	}
	h.db = h.writer.DB()
	if h.on, err = h.db.Conn(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Member, err = Join(t.Context(), Options{
		DSN: dsn, HID: h.writer.HID(), Address: fmt.Sprint("http://host-", h.writer.HID()), Beat: testBeat, TTL: testTTL, Swarm: testSwarm,
		Now: func() time.Time { return h.clock.now }, Life: life, Prior: prior,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.writer.StopWaiting()
		_ = errors.Join(h.on.Close(), h.db.Close(), h.Member.Close()) // a killed server ends them, too
	})
	return h
}

// step lets a beat's time pass, beats and moves.
func (h *testHost) step(t *testing.T) {
	t.Helper()
	h.pass(testBeat)
	if err := h.Beat(t.Context()); err != nil {
		t.Fatalf("host %d: %v", h.opts.HID, err)
	}
	if err := h.Move(t.Context(), h); err != nil {
		t.Fatalf("host %d: %v", h.opts.HID, err)
	}
}

// settle lets hosts step until nothing moves any more.
func settle(t *testing.T, hosts ...*testHost) {
	t.Helper()
	for range 3 {
		for _, h := range hosts {
			h.step(t)
		}
	}
}

// wantShares wants each slot to be worked on by one of the hosts, and even shares.
func wantShares(t *testing.T, hosts ...*testHost) {
	t.Helper()
	share := (int(slots) + len(hosts) - 1) / len(hosts)
	var total int
	for s := range slots {
		var workers []int64
		for _, h := range hosts {
			if h.works[s] {
				workers = append(workers, h.opts.HID)
			}
			if h.works[s] != h.Serves(s) {
				t.Errorf("host %d works on slot %d: %v, and says %v", h.opts.HID, s, h.works[s], h.Serves(s))
			}
		}
		if len(workers) > 1 {
			t.Errorf("slot %d is worked on by hosts %v", s, workers)
		}
		total += len(workers)
	}
	for _, h := range hosts {
		if n := len(h.works); n > share {
			t.Errorf("host %d has %d slots, its share is %d", h.opts.HID, n, share)
		}
	}
	if total != int(slots) {
		t.Errorf("%d of %d slots are worked on", total, slots)
	}
}

// change runs a statement as a program beside the hosts.
func change(t *testing.T, dsn, text string) {
	t.Helper()
	s := session{dsn: dsn}
	if err := errors.Join(s.exec(t.Context(), text), s.close()); err != nil {
		t.Fatal(err)
	}
}

// counter is a table that hosts write.
func counter(t *testing.T) (dsn string) {
	t.Helper()
	dsn = pgtest.Schema(t)
	change(t, dsn, "CREATE TABLE written (n BIGINT PRIMARY KEY)")
	return dsn
}

func (h *testHost) write(t *testing.T, n int) error {
	t.Helper()
	if err := h.writer.BeginGroup(t.Context()); err != nil {
		return err
	}
	if err := h.add(t, n); err != nil {
		return h.writer.RollbackGroup(t.Context(), err)
	}
	return h.writer.CommitGroup(t.Context())
}

// add adds a row in the group that has begun, and waits for the server's answer.
func (h *testHost) add(t *testing.T, n int) error {
	t.Helper()
	r, err := h.on.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO written VALUES (%d)", n))
	if err == nil {
		_, err = r.RowsAffected()
	}
	return err
}

func wantWritten(t *testing.T, h *testHost, n, want int) {
	t.Helper()
	var have int
	if err := h.on.QueryRowContext(t.Context(), fmt.Sprintf("SELECT count(*) FROM written WHERE n = %d", n)).Scan(&have); err != nil {
		t.Fatal(err)
	}
	if have != want {
		t.Errorf("row %d is there %d times, want %d", n, have, want)
	}
}
