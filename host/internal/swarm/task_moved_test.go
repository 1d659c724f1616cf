package swarm_test

import (
	"context"
	"errors"
	"testing"

	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
)

// movingStore gives the slots of a runtime away before a submission is read.
type movingStore struct {
	swarm.Store
	move func()
}

func (s *movingStore) Submission(ctx context.Context, in swarm.InstanceKey, door, key string) (swarm.Submission, error) {
	if s.move != nil {
		s.move()
	}
	return s.Store.Submission(ctx, in, door, key)
}

// TestMovedWhileItsAnswerIsRead: who waits for an answer that is there already is sent to the host
// that the task moves to meanwhile. Nothing is said to be erased or pruned.
func TestMovedWhileItsAnswerIsRead(t *testing.T) {
	t.Parallel()
	s := &movingStore{}
	h, _ := (&sharedBudget{left: map[int64]swarm.Spend{}}).share(t, swarm.Spend{}, func(h *hive) {
		h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
	})
	post := func(p *swarm.Post) { p.Task, p.Key = "t", "key" }
	want := h.answer(h.mustPost("hello", post))
	again := h.mustPost("hello", post)
	s.move = func() {
		if err := h.rt.Losing(t.Context(), []slot.Slot{swarm.SlotOf(again.Task)}); err != nil {
			t.Error(err)
		}
	}
	if a, err := h.rt.Wait(t.Context(), again); !errors.Is(err, swarm.ErrElsewhere) {
		t.Errorf("%+v, %v; the answer was %+v", a, err, want)
	}
}
