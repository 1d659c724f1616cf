package cluster

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
)

// loadTables are what each host has of limits that all hosts hold together. A dead host's rows do not count.
const loadTables = `
CREATE TABLE IF NOT EXISTS loads (
	hid  BIGINT NOT NULL,
	name BYTEA NOT NULL,
	n    BIGINT NOT NULL,
	PRIMARY KEY (hid, name)
) WITH (fillfactor = 50);`

// sharedLoads are numbers that hosts show each other with each beat. The caller defines what they count.
type sharedLoads struct {
	own func() map[string]int64
	// shown is what the server has of this host, nil for not known.
	shown map[string]int64
	// others are the sums of the other hosts; Member.mu guards them. The map is never changed.
	others map[string]int64
}

// ShareLoads makes the other hosts see with each beat what own returns, by names. Numbers of 0 need not be there. It is
// called before Run.
func (m *Member) ShareLoads(own func() map[string]int64) { m.loads.own = own }

// OthersLoad is the sum that the other hosts had of a name when they gave their last sign of life.
func (m *Member) OthersLoad(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads.others[name]
}

// showLoads shows the other hosts what this one has, and reads what they have. Where there are no others nothing is
// asked of the server.
func (m *Member) showLoads(ctx context.Context) error {
	if m.loads.own == nil {
		return nil
	}
	if m.Hosts() < 2 {
		m.setOthersLoads(nil)
		return nil
	}
	if err := m.writeLoads(ctx); err != nil {
		m.loads.shown = nil
		return fmt.Errorf("show what this host has: %w", err)
	}
	others := map[string]int64{}
	const text = "SELECT l.name, sum(l.n)::bigint FROM loads l JOIN hosts h USING (hid) WHERE NOT h.dead AND l.hid <> $1 GROUP BY l.name"
	err := m.beats.query(ctx, text, []any{m.opts.HID}, func(r pgx.Rows) error {
		var name []byte
		var n int64
		err := r.Scan(&name, &n)
		others[string(name)] = n
		return err
	})
	if err != nil {
		return fmt.Errorf("read what other hosts have: %w", err)
	}
	m.setOthersLoads(others)
	return nil
}

func (m *Member) setOthersLoads(others map[string]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loads.others = others
}

// addLoads is a host's numbers that are there. Rows that have not changed are not written.
const addLoads = `INSERT INTO loads SELECT $1, * FROM unnest($2::bytea[], $3::bigint[])
	ON CONFLICT (hid, name) DO UPDATE SET n = excluded.n WHERE loads.n <> excluded.n`

// replaceLoads replaces all of a host's numbers, changeLoads those that have changed. Names are never searched one by
// one in a list: there may be tens of thousands.
const (
	replaceLoads = `WITH gone AS (DELETE FROM loads WHERE hid = $1 AND NOT EXISTS
		(SELECT FROM unnest($2::bytea[]) AS own (name) WHERE own.name = loads.name)) ` + addLoads
	changeLoads = `WITH gone AS (DELETE FROM loads WHERE hid = $1 AND name = ANY($4::bytea[])) ` + addLoads
)

// writeLoads writes this host's numbers if they have changed, all at once: the others see none of them missing.
func (m *Member) writeLoads(ctx context.Context) error {
	own := m.loads.own()
	if m.loads.shown != nil && maps.Equal(own, m.loads.shown) {
		return nil
	}
	names, numbers, gone := loadChanges(own, m.loads.shown)
	text, args := replaceLoads, []any{m.opts.HID, names, numbers}
	if m.loads.shown != nil {
		text, args = changeLoads, append(args, gone)
	}
	if err := m.beats.exec(ctx, text, args...); err != nil {
		return err
	}
	m.loads.shown = own
	return nil
}

// loadChanges returns the names that are new in own or have other numbers than shown, and those that are gone.
func loadChanges(own, shown map[string]int64) (names [][]byte, numbers []int64, gone [][]byte) {
	names, numbers, gone = [][]byte{}, []int64{}, [][]byte{} // nil would be NULL
	for name, n := range own {
		if before, ok := shown[name]; !ok || before != n {
			names, numbers = append(names, []byte(name)), append(numbers, n)
		}
	}
	for name := range shown {
		if _, ok := own[name]; !ok {
			gone = append(gone, []byte(name))
		}
	}
	return names, numbers, gone
}
