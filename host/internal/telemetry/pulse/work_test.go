package pulse_test

import (
	"testing"

	"skep/host/internal/swarm"
	"skep/host/internal/telemetry/pulse"
)

// A question is answered where its task goes on, and withdrawn where its task ends first.
func TestQuestionStates(t *testing.T) {
	t.Parallel()
	for to, want := range map[swarm.State]string{
		swarm.StateRunning: "answered", swarm.StatePaused: "answered",
		swarm.StateCancelled: "withdrawn", swarm.StateTimedOut: "withdrawn", swarm.StateFailed: "withdrawn",
	} {
		ring := pulse.NewRing("here", 8)
		first := ring.NewReader(ring.ID(0), pulse.Filter{})
		ring.Committed(swarm.Change{From: swarm.StatePaused, To: to, Answered: []swarm.QuestionShape{{Call: "t1.c1", Agent: "boss", Action: "confirm"}}})
		_, list := next(t, first)
		if len(list) == 0 || list[0].State != want || list[0].Action != "confirm" {
			t.Errorf("a task that is %s: %+v", to, list)
		}
		first.Close()
	}
}
