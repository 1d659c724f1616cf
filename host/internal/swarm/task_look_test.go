package swarm_test

import (
	"errors"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

// TestLookBesideErase: a look at a task that is erased meanwhile is refused, and writes nothing.
func TestLookBesideErase(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.ask("hello", task("t"))
	before := h.events("t")
	err := h.rt.EraseBeforeLook(t.Context(), key("t"), func() error {
		_, err := h.rt.RecordLook(t.Context(), key("t"), "operator:op", "ticket 17", time.Now().Add(time.Hour))
		return err
	})
	if !errors.Is(err, swarm.ErrNotFound) || err.Error() != "task 't' not found" { // the store would name no task
		t.Errorf("RecordLook = %v", err)
	}
	if after := h.events("t"); len(after) != len(before) {
		t.Errorf("%d events, %d before", len(after), len(before))
	}
}
