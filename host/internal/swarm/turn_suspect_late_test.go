package swarm

import "testing"

// A task that is recovered once the suspects run is no reason to note its rows.
func TestRowsOfLateTasksAreNotNoted(t *testing.T) {
	t.Parallel()
	r := &Runtime{suspects: newSuspectGate(nil)}
	r.suspects.crashCounts = map[TurnID]int{{1}: 0}
	late := newActiveTask(TaskKey{}, &Definition{})
	late.pushRow(Row{N: 1, Agent: "boss"})
	r.noteSuspects(late)
	if len(r.suspects.seen) != 1 {
		t.Errorf("%d rows are noted before, want 1", len(r.suspects.seen))
	}
	r.suspects.open, r.suspects.seen = true, nil // as openSuspectGate leaves them
	r.noteSuspects(late)
	if len(r.suspects.seen) != 0 {
		t.Errorf("%d rows are noted after", len(r.suspects.seen))
	}
}
