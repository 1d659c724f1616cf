package door

import (
	"errors"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// A task of another host is none of the host's faults: a gateway has a kind for it, with the task.
func TestErrorOfATaskElsewhere(t *testing.T) {
	moved := &swarm.Elsewhere{Task: swarm.TaskKey{Task: "job"}}
	err := foreignError(t.Context(), moved)
	if got, ok := errors.AsType[*swarm.Elsewhere](err); !errors.Is(err, gateway.ErrElsewhere) || !ok || got != moved {
		t.Errorf("a task of another host is %v", err)
	}
}
