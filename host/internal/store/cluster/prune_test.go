package cluster

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"skep/host/internal/store/pgtest"
)

// countRows counts rows of a table.
func (h *testHost) countRows(t *testing.T, table string) (n int) {
	t.Helper()
	if err := h.moves.query(t.Context(), "SELECT count(*) FROM "+table, nil, func(r pgx.Rows) error { return r.Scan(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPruneHosts: what is kept of hosts that are dead has a bound. Those that are alive, that have slots, or
// that may not know yet that they are dead are kept, however old they are.
func TestPruneHosts(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	oldest := joinHost(t, dsn)
	settle(t, oldest)
	starting := joinHost(t, dsn) // it has given no sign of life yet
	const dead, unborn = 1500, 3
	change(t, dsn, fmt.Sprintf(`WITH d AS (INSERT INTO hosts (seq, dead, pid) SELECT 1, true, 1 FROM generate_series(1, %d) RETURNING hid),
		r AS (INSERT INTO roster SELECT hid, 'v', 1 FROM d), v AS (INSERT INTO votes SELECT hid, 1, '' FROM d)
		INSERT INTO beats SELECT hid, 1, 'http://gone' FROM d`, dead))
	change(t, dsn, fmt.Sprintf("INSERT INTO hosts (seq, dead, pid) SELECT 1, false, 0 FROM generate_series(1, %d)", unborn))
	// One that is dead has slots that nobody has taken up yet.
	change(t, dsn, "UPDATE slots SET hid = (SELECT min(hid) FROM hosts WHERE dead) WHERE slot = 0")
	for range 2 {
		if err := oldest.pruneHosts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	highest := dead + unborn + 2
	for table, want := range map[string]int{
		"beats": 1 + highest - (highest - keptHosts) - unborn, "votes": keptHosts - unborn, "roster": 2 + keptHosts - unborn,
		"hosts": 3 + keptHosts,
	} {
		if n := oldest.countRows(t, table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	change(t, dsn, "UPDATE slots SET hid = (SELECT min(hid) FROM hosts) WHERE slot = 0")
	oldest.step(t)
	starting.step(t)
	settle(t, oldest, starting)
	wantShares(t, oldest, starting)
	newest := joinHost(t, dsn)
	change(t, dsn, fmt.Sprintf("INSERT INTO hosts (seq, dead, pid) SELECT 1, true, 1 FROM generate_series(1, %d)", keptHosts))
	settle(t, oldest, starting, newest) // hosts that take slots prune
	if n := newest.countRows(t, "hosts"); n > keptHosts+3 {
		t.Errorf("%d hosts are kept", n)
	}
}
