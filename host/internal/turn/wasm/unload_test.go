package wasm

import (
	"context"
	"errors"
	"skep/host/internal/turn"
	"testing"
)

// A module that nothing runs on goes with all that is kept for it, and comes back.
func TestUnload(t *testing.T) {
	t.Parallel()
	e := engineWith(t, Options{})
	wasm := asking(1)
	m, other := loadInto(t, e, wasm), loadInto(t, e, asking(2))
	idle(t, m, 3, turn.Limits{})
	idle(t, other, 1, turn.Limits{})
	before := e.Pool()
	if before.Idle != 4 {
		t.Fatalf("%+v", before)
	}
	if ok, err := e.Unload(t.Context(), m.Digest()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if after := e.Pool(); after.Idle != 1 || after.Resident >= before.Resident || after.Images > before.Images {
		t.Errorf("%+v, before %+v", after, before)
	}
	if r := m.Turn(t.Context(), turn.Turn{}); r.Exit == nil || !errors.Is(r.Exit.Cause, errUnloaded) {
		t.Errorf("a turn on what is gone: %+v", r.Exit)
	}
	if again := loadInto(t, e, wasm); again == m {
		t.Error("it is the one that is gone")
	} else {
		idle(t, again, 1, turn.Limits{})
	}
	if ok, err := e.Unload(t.Context(), "unknown"); !ok || err != nil {
		t.Error(ok, err)
	}
}

// What runs stays.
func TestUnloadBusy(t *testing.T) {
	t.Parallel()
	e := engineWith(t, Options{})
	m := loadInto(t, e, asking(1))
	play(t, m, turn.Turn{Ops: opsFunc(func() {
		if ok, err := e.Unload(context.Background(), m.Digest()); ok || err != nil {
			t.Error(ok, err)
		}
	})})
	idle(t, m, 1, turn.Limits{})
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Unload(t.Context(), m.Digest()); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}
