package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// queueStore has the queue of each task but of those that are being erased.
type queueStore struct {
	*legacy
	erasing map[TaskKey]bool
	fails   error
}

func (s *queueStore) LoadQueue(_ context.Context, key TaskKey) (Snapshot, error) {
	if s.erasing[key] {
		return Snapshot{}, ErrErasing
	}
	return s.tasks[key], s.fails
}

// A turn is to be run as long as its row is in the store.
func TestUndone(t *testing.T) {
	t.Parallel()
	left, other, erased := taskOf("a", "u", "left"), taskOf("a", "u", "other"), taskOf("b", "u", "erased")
	store := &queueStore{legacy: newLegacy(left, other, erased), erasing: map[TaskKey]bool{erased: true}}
	r, err := New(t.Context(), store, completer{}, NoForwarder{}, noTools{}, manyDefinitions(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	idOf := func(key TaskKey, row int64) TurnID { return r.turnID(store.tasks[key].Task, row) }
	undone := []TurnID{idOf(left, 1), idOf(other, 1)}
	got, err := r.Undone(t.Context(), []TurnID{idOf(left, 1), idOf(left, 2), idOf(other, 1), idOf(erased, 1), {}})
	if err != nil || !slices.Equal(got, undone) {
		t.Errorf("Undone() = %x, %v, want %x", got, err, undone)
	}
	store.fails = errors.New("damaged")
	if got, err := r.Undone(t.Context(), undone); len(got) > 0 || err != nil {
		t.Errorf("Undone() = %x, %v of tasks that cannot be read", got, err)
	}
	store.fails = fmt.Errorf("%w: the server is away", ErrUnavailable)
	if _, err := r.Undone(t.Context(), undone); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v, want that the store is away", err)
	}
}
