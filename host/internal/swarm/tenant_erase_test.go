package swarm_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// stubborn is an agent whose turn for a body "stay" ends on a signal of the test, and
// not when it is killed.
type stubborn struct {
	begun, killed, leave chan struct{}
}

func newStubborn(h *hive) *stubborn {
	s := &stubborn{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
		if incoming(t).Payload.Body != "stay" {
			return script(ctx, t)
		}
		close(s.begun)
		<-ctx.Done()
		close(s.killed)
		<-s.leave
		return failed(context.Cause(ctx))
	}
	return s
}

func ofTenant(tenant string) func(*swarm.Post) {
	return func(p *swarm.Post) { p.Principal.Tenant = tenant }
}

func wantNothing(t *testing.T, h *hive, tenant string) {
	t.Helper()
	var out bytes.Buffer
	if err := h.store.Export(t.Context(), tenant, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("the export has %d lines, want the first and the last:\n%s", n, &out)
	}
	if f, err := h.store.Footprint(t.Context(), tenant); f != (swarm.Footprint{}) || err != nil {
		t.Errorf("footprint %+v, %v", f, err)
	}
}

// A tenant is erased while a turn of it runs and a task of it waits; another one
// notices nothing, and it begins anew itself.
func TestErase(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) { h.also = []string{"acme"} })
	s := newStubborn(h)
	h.ask("hello", task("ended"))
	stays := h.mustPost("stay", task("t"))
	<-s.begun
	feed, err := h.rt.Follow(t.Context(), key("t"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()

	erased := make(chan error, 1)
	go func() { erased <- h.rt.EraseTenant(t.Context(), swarm.DefaultTenant, nil) }()
	<-s.killed
	if a := h.answer(stays); a.State != swarm.StateCancelled || !strings.Contains(a.Body, "an operator has all erased") {
		t.Errorf("%+v", a)
	}
	for _, id := range []string{"t", "ended", "new"} {
		if _, err := h.post("hello", task(id)); !errors.Is(err, swarm.ErrErasing) {
			t.Errorf("a post to %s is answered with %v", id, err)
		}
	}
	if err := h.rt.EraseTenant(t.Context(), swarm.DefaultTenant, nil); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("a second erasure is answered with %v", err)
	}
	if a := h.ask("hello", ofTenant("acme")); a.Body != "boss got [q] hello" {
		t.Errorf("%+v", a)
	}
	close(s.leave)
	if err := <-erased; err != nil {
		t.Fatal(err)
	}
	wantNothing(t, h, swarm.DefaultTenant)
	for err == nil {
		_, err = feed.Next(t.Context())
	}
	if err != io.EOF {
		t.Errorf("the feed of an erased task ends with %v", err)
	}
	wantReborn(t, h)
	if err := h.rt.EraseTenant(t.Context(), "nobody", nil); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("Erase of nobody = %v", err)
	}
}

// wantReborn posts to tasks whose names were used before the erasure.
func wantReborn(t *testing.T, h *hive) {
	t.Helper()
	for _, id := range []string{"t", "ended"} {
		if a := h.ask("again", task(id)); a.Body != "boss got [q] again" {
			t.Errorf("%+v", a)
		}
		if snap := h.record(id); snap.Task.Rows != 1 {
			t.Errorf("the new task %s has %d rows", id, snap.Task.Rows)
		}
	}
	st, err := h.rt.Status(t.Context(), alice().Instance("hive"))
	if err != nil || st.Running || !st.Ready || st.Users != 1 {
		t.Errorf("status %+v, %v", st, err)
	}
}

// Tasks that only wait, and those that an earlier host left, are erased as well.
func TestEraseParked(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
		if incoming(t).Payload.Body == "wait" {
			if _, fault := t.SetTimer(time.Hour, "later"); fault != nil {
				return failed(fault)
			}
			call(t, "await_message", obj{})
			return swarm.Outcome{}
		}
		return script(ctx, t)
	}
	waits := func(id string) {
		h.mustPost("wait", task(id))
		eventually(t, "the task waits for its timer", func() bool {
			snap, err := h.rt.Task(t.Context(), key(id))
			return err == nil && len(snap.Rows) == 1 && !snap.Rows[0].NotBefore.IsZero()
		})
	}
	waits("t")
	h.restart()
	waits("ended")
	if err := h.rt.EraseTenant(t.Context(), swarm.DefaultTenant, nil); err != nil {
		t.Fatal(err)
	}
	wantNothing(t, h, swarm.DefaultTenant)
	wantReborn(t, h)
}

// An operator who leaves before the turns have stopped has erased nothing, and
// the tenant goes on.
func TestEraseGivenUp(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	s := newStubborn(h)
	stays := h.mustPost("stay", task("t"))
	<-s.begun
	ctx, cancel := context.WithCancelCause(t.Context())
	erased := make(chan error, 1)
	go func() { erased <- h.rt.EraseTenant(ctx, swarm.DefaultTenant, nil) }()
	<-s.killed
	cancel(errGone)
	if err := <-erased; !errors.Is(err, errGone) {
		t.Errorf("Erase() = %v", err)
	}
	close(s.leave)
	if a := h.answer(stays); a.State != swarm.StateCancelled {
		t.Errorf("%+v", a)
	}
	if a := h.ask("hello", task("other")); a.State != swarm.StateCompleted {
		t.Errorf("%+v", a)
	}
}

// What an erased tenant has spent today is forgotten with it.
func TestEraseForgetsWhatWasSpent(t *testing.T) {
	t.Parallel()
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {SpendPerDay: swarm.Spend{Tokens: 10}}}))
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "", swarm.Spend{Tokens: 10}); fault != nil {
			return tell(turn, string(fault.Reason))
		}
		return tell(turn, "spent")
	}
	for _, want := range []string{"spent", "tokens"} {
		if a := h.ask("a", of("acme")); a.Body != want {
			t.Errorf("before: %+v, want %s", a, want)
		}
	}
	if err := h.rt.EraseTenant(t.Context(), "acme", nil); err != nil {
		t.Fatal(err)
	}
	if a := h.ask("a", of("acme")); a.Body != "spent" {
		t.Errorf("after: %+v", a)
	}
}
