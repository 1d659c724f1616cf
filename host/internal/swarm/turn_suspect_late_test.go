package swarm

import (
	"testing"

	"skep/host/internal/swarm/slot"
)

// A task that is recovered once the suspects run is no reason to note its rows.
func TestRowsOfLateTasksAreNotNoted(t *testing.T) {
	t.Parallel()
	r := &Runtime{suspects: newSuspectGate(nil)}
	r.suspects.deaths = map[TurnID]Deaths{{1}: {Here: 1}}
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

// TestDeathsConvict: a turn is not run again once it has taken down this host and another one, or a
// host four times.
func TestDeathsConvict(t *testing.T) {
	t.Parallel()
	for d, want := range map[Deaths]bool{
		{Here: 1}: false, {Here: 3}: false, {Here: 4}: true,
		{Elsewhere: 1}: false, {Elsewhere: 3}: false, {Elsewhere: 4}: true,
		{Here: 1, Elsewhere: 1}: true,
	} {
		if d.convict() != want {
			t.Errorf("%+v: convict() = %v", d, !want)
		}
	}
}

// TestSuspectsThatMove: a suspect whose task goes to another host does not keep those that stay from
// being run.
func TestSuspectsThatMove(t *testing.T) {
	t.Parallel()
	moves, stays := TaskKey{Task: "moves"}, TaskKey{Task: "stays"}
	if SlotOf(moves) == SlotOf(stays) {
		t.Fatal("both tasks have one slot")
	}
	r := &Runtime{suspects: newSuspectGate(nil)}
	gate := r.suspects
	gate.active = &suspect{id: TurnID{1}, task: moves}
	gate.waiting[TurnID{2}] = suspect{id: TurnID{2}, task: moves}
	gate.waiting[TurnID{3}] = suspect{id: TurnID{3}, task: stays}
	r.leaveSuspects(map[slot.Slot]bool{SlotOf(moves): true})
	if _, ok := gate.waiting[TurnID{2}]; ok || gate.active != nil {
		t.Errorf("a suspect that moved waits: %v, active %v", ok, gate.active)
	}
	gate.open = true
	if one, ok := gate.activateNext(); !ok || one.task != stays {
		t.Errorf("%v, %v runs next", one, ok)
	}
}
