package sqlite

import (
	"testing"

	"skep/host/internal/swarm"
)

// Two turns never share a journal: neither when the entries of the last one are gone, as
// after a pruning that was cut short, nor when it has none yet.
func TestJournalNumbersAfterReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	entries := []swarm.Entry{{N: 1, Kind: swarm.EntryCall, Call: "1"}}
	turn := func(task string, w swarm.JournalWrite) {
		t.Helper()
		s := openTest(t, dir)
		key := testStep(task, 1).Task.Key
		mustDo(t, s.Commit(t.Context(), testStep(task, 1)))
		w.Header = &swarm.TurnHeader{Agent: "a"}
		_, err := s.Journal(t.Context(), key, 1, w)
		mustDo(t, err)
		mustDo(t, s.Close())
	}
	turn("pruned", swarm.JournalWrite{Entries: entries})
	exec(t, openRaw(t, dir), "DELETE FROM journal")
	turn("begun", swarm.JournalWrite{})
	turn("last", swarm.JournalWrite{Entries: entries})
	s := openTest(t, dir)
	for _, task := range []string{"pruned", "begun"} {
		r, err := s.Record(t.Context(), testStep(task, 1).Task.Key, 1)
		if err != nil || len(r.Entries) > 0 {
			t.Errorf("the turn of task %s has %d entries of another, %v", task, len(r.Entries), err)
		}
	}
}
