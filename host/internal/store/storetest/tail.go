package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
)

var tailCases = cases{
	"both bounds hold":          tailBounds,
	"one entry is too large":    tailTooLarge,
	"it is one agent's":         tailOneAgent,
	"the newest come, in order": tailOrder,
}

// grown writes n entries, the i-th with a note of i bytes, and returns them.
func grown(t *testing.T, s Store, st *taskBuilder, agent string, n int) []abi.HistoryEntry {
	t.Helper()
	var all []abi.HistoryEntry
	for i := range n {
		note := st.note(agent, strings.Repeat("x", i+1))
		step := st.mutation()
		step.History = []swarm.AgentEntry{note}
		mustCommit(t, s, step)
		all = append(all, note.Entry)
	}
	return all
}

// size is what an entry counts: the length of its JSON.
func size(t *testing.T, entries []abi.HistoryEntry) (n int) {
	t.Helper()
	for _, e := range entries {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		n += len(b)
	}
	return n
}

func tailBounds(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	all := grown(t, s, st, "a", 20)
	four := size(t, all[16:])
	for _, c := range []struct{ entries, bytes, want int }{
		{50, 1 << 20, 20},
		{20, 1 << 20, 20},
		{3, 1 << 20, 3},
		{50, four, 4},
		{50, four - 1, 3},
		{4, four, 4},
		{2, four, 2},
		{0, 1 << 20, 0},
		{-1, 1 << 20, 0},
		{50, 0, 0},
	} {
		got, err := s.HistoryTail(t.Context(), st.key(), "a", c.entries, c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("tail of %d entries, %d bytes", c.entries, c.bytes), got, all[20-c.want:])
	}
}

// The bound holds without gaps: an entry that does not fit hides older ones
// that would.
func tailTooLarge(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	small := grown(t, s, st, "a", 1)
	step := st.mutation()
	step.History = []swarm.AgentEntry{st.note("a", strings.Repeat("x", 1000))}
	mustCommit(t, s, step)
	got, err := s.HistoryTail(t.Context(), st.key(), "a", 10, size(t, small))
	same(t, "tail", []any{len(got), err}, []any{0, nil})
}

func tailOneAgent(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	grown(t, s, st, "a", 3)
	want := grown(t, s, st, "b", 2)
	grown(t, s, st, "c", 3)
	got, err := s.HistoryTail(t.Context(), st.key(), "b", 10, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "tail", got, want)
}

func tailOrder(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step := st.mutation()
	for range 10 {
		// One step may bring many entries, and not in their order.
		step.History = append([]swarm.AgentEntry{st.note("a", "x")}, step.History...)
	}
	mustCommit(t, s, step)
	got, err := s.HistoryTail(t.Context(), st.key(), "a", 4, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "tail", entrySeqs(got), upTo(7, 10))
}
