package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"skep/host/internal/store/pgtest"
)

// loadedHost is a host that shows what it has.
func loadedHost(t *testing.T, dsn string) (h *testHost, has map[string]int64) {
	t.Helper()
	h, has = joinHost(t, dsn), map[string]int64{}
	h.ShareLoads(func() map[string]int64 { return maps.Clone(has) })
	return h, has
}

func wantOthersLoad(t *testing.T, h *testHost, name string, want int64) {
	t.Helper()
	if n := h.OthersLoad(name); n != want {
		t.Errorf("host %d sees that others have %d of %q, want %d", h.opts.HID, n, name, want)
	}
}

// TestLoads: each host sees with its beats what the others have, and nothing of one that was fenced or has left. A
// host without others shows nothing.
func TestLoads(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, ofA := loadedHost(t, dsn)
	ofA["x"] = 5
	settle(t, a)
	if n := a.countRows(t, "loads"); n > 0 {
		t.Errorf("a host without others shows %d numbers", n)
	}
	b, ofB := loadedHost(t, dsn)
	c, _ := loadedHost(t, dsn)
	ofB["x"], ofB["y"] = 2, 1
	settle(t, a, b, c)
	wantOthersLoad(t, a, "x", 2)
	wantOthersLoad(t, b, "x", 5)
	wantOthersLoad(t, c, "x", 7)
	wantOthersLoad(t, c, "y", 1)
	ofA["x"] = 6
	delete(ofB, "y")
	settle(t, a, b, c)
	wantOthersLoad(t, c, "x", 8)
	wantOthersLoad(t, c, "y", 0)
	if n := a.countRows(t, "loads"); n != 2 {
		t.Errorf("%d numbers are shown, want 2", n)
	}
	for range int(testTTL/testBeat) + 1 {
		a.step(t)
		c.step(t)
	}
	settle(t, a, c) // b was fenced
	wantOthersLoad(t, c, "x", 6)
	if n := a.countRows(t, "loads"); n != 1 {
		t.Errorf("%d numbers are shown after a host was fenced, want 1", n)
	}
	if err := a.Leave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	c.step(t)
	wantOthersLoad(t, c, "x", 0)
	if n := c.countRows(t, "loads"); n != 0 {
		t.Errorf("%d numbers are shown of hosts that are gone", n)
	}
}

// TestLoadsFail: a host that cannot show what it has gives its sign of life nevertheless, keeps what it has seen of the
// others, and shows all it has when it can again.
func TestLoadsFail(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, ofA := loadedHost(t, dsn)
	b, ofB := loadedHost(t, dsn)
	ofA["x"], ofB["x"] = 1, 2
	settle(t, a, b)
	change(t, dsn, "ALTER TABLE loads RENAME TO away")
	ofA["x"], ofB["x"] = 3, 4
	a.step(t)
	b.step(t)
	wantOthersLoad(t, a, "x", 2)
	change(t, dsn, "ALTER TABLE away RENAME TO loads; UPDATE loads SET n = 9; INSERT INTO loads SELECT hid, 'old', 1 FROM loads")
	settle(t, a, b)
	wantOthersLoad(t, a, "x", 4)
	wantOthersLoad(t, b, "x", 3)
	wantOthersLoad(t, b, "old", 0)
}

// TestLoadsDifference: a host that shows many names sends the others those that have changed.
func TestLoadsDifference(t *testing.T) {
	t.Parallel()
	const many = 30_000
	shown := map[string]int64{"gone": 1}
	for n := range int64(many) {
		shown[fmt.Sprint(n)] = n
	}
	own := maps.Clone(shown)
	own["7"] = 8
	delete(own, "gone")
	names, numbers, gone := loadChanges(own, shown)
	if len(names) != 1 || string(names[0]) != "7" || !slices.Equal(numbers, []int64{8}) || len(gone) != 1 || string(gone[0]) != "gone" {
		t.Errorf("sent are %d names, %d numbers and %d names that are gone", len(names), len(numbers), len(gone))
	}
	if names, numbers, gone := loadChanges(own, nil); len(names) != many || len(numbers) != many || len(gone) != 0 {
		t.Errorf("where nothing is known, %d names, %d numbers and %d that are gone are sent", len(names), len(numbers), len(gone))
	}
}
