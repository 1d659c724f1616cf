package swarm_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/swarm"
)

// heldStore holds the commits that match until the test lets them go on.
type heldStore struct {
	swarm.Store
	match func(swarm.Mutation) bool
	goOn  chan struct{}
	// refuses makes the store behave as during an erasure that an earlier host has begun.
	refuses atomic.Bool
}

func (s *heldStore) Commit(ctx context.Context, m swarm.Mutation) error {
	if s.refuses.Load() {
		return swarm.ErrErasing
	}
	if s.match != nil && s.match(m) {
		<-s.goOn
	}
	return s.Store.Commit(ctx, m)
}

// A step that has the task in its hand while the erasure cancels it writes nothing
// afterwards: nothing comes back.
func TestEraseWithAStepUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &heldStore{goOn: make(chan struct{})}
		s.match = func(m swarm.Mutation) bool { return m.Task.State == swarm.StateCancelled }
		h := newHive(t, func(h *hive) {
			h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
			h.forward = anyForwarder{}
			h.def.Interswarm, h.def.Agents[0].Interswarm = true, true
			h.def.Agents[0].Targets = append(h.def.Agents[0].Targets, "calc@depot")
		})
		h.mustPost(requestTo("calc@depot", "x"), task("t"))
		synctest.Wait()
		box := swarm.OutboxKey{Task: key("t"), Peer: "depot"}
		p, ok, err := h.rt.NextDelivery(t.Context(), box)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		delivered, erased := make(chan error, 1), make(chan error, 1)
		go func() { erased <- h.rt.EraseTenant(context.Background(), swarm.DefaultTenant, nil) }()
		synctest.Wait() // the task is being cancelled
		go func() { delivered <- h.rt.MarkDelivered(context.Background(), box, p.Wrapper.MessageID, "") }()
		synctest.Wait() // it waits for the task
		s.goOn <- struct{}{}
		synctest.Wait() // it writes, or would
		time.Sleep(stopPoll)
		synctest.Wait()
		close(s.goOn)
		if err := <-delivered; err != nil && !errors.Is(err, swarm.ErrErasing) {
			t.Error(err)
		}
		if err := <-erased; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		wantNothing(t, h, swarm.DefaultTenant)
		h.stop()
	})
}

// What became of a message that an erasure has removed is not noted for the message that
// has its number in the task that begins again.
func TestErasedMessageHasNoSuccessor(t *testing.T) {
	for name, mark := range map[string]func(h *hive, box swarm.OutboxKey, id string) error{
		"delivered": func(h *hive, box swarm.OutboxKey, id string) error {
			return h.rt.MarkDelivered(t.Context(), box, id, "")
		},
		"undeliverable": func(h *hive, box swarm.OutboxKey, id string) error {
			return h.rt.MarkUndeliverable(t.Context(), box, id, "no")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHive(t, func(h *hive) {
				h.forward = anyForwarder{}
				h.def.Interswarm, h.def.Agents[0].Interswarm = true, true
				h.def.Agents[0].Targets = append(h.def.Agents[0].Targets, "calc@depot")
			})
			box := swarm.OutboxKey{Task: key("t"), Peer: "depot"}
			post := func() (d swarm.Delivery) {
				h.mustPost(requestTo("calc@depot", "x"), task("t"))
				eventually(t, "the message is in the outbox", func() (ok bool) {
					d, ok, _ = h.rt.NextDelivery(t.Context(), box)
					return ok
				})
				return d
			}
			erased := post()
			if err := h.rt.EraseTenant(t.Context(), swarm.DefaultTenant, nil); err != nil {
				t.Fatal(err)
			}
			next := post()
			if err := mark(h, box, erased.Wrapper.MessageID); err != nil {
				t.Error(err)
			}
			left, ok, err := h.rt.NextDelivery(t.Context(), box)
			if err != nil || !ok || left.Wrapper.MessageID != next.Wrapper.MessageID {
				t.Errorf("the outbox has %+v, %t, %v", left, ok, err)
			}
		})
	}
}

// brokenStore fails erasures while it is broken: before they begin, or at their end.
type brokenStore struct {
	swarm.Store
	broken, late atomic.Bool
	failed       atomic.Int64
}

func (s *brokenStore) Erase(ctx context.Context, tenant string) error {
	if s.broken.Load() {
		s.failed.Add(1)
		if s.late.Load() {
			_ = s.Store.Erase(ctx, tenant) // its failure is no matter here
		}
		return errOutage
	}
	return s.Store.Erase(ctx, tenant)
}

// An erasure whose removal fails is repeated until it is done, also when its caller has
// left: the tenant is not locked out until an operator asks again. Who asks again
// meanwhile learns that it goes on, and a host that stops ends it.
func TestEraseOutlastsAStoreThatFails(t *testing.T) {
	for name, late := range map[string]bool{"before it begins": false, "at its end": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &brokenStore{}
				s.late.Store(late)
				h := newHive(t, func(h *hive) { h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s } })
				h.ask("hello", task("t"))
				erase := func(ctx context.Context) chan error {
					erased := make(chan error, 1)
					go func() { erased <- h.rt.EraseTenant(ctx, swarm.DefaultTenant, nil) }()
					synctest.Wait()
					return erased
				}
				s.broken.Store(true)
				ctx, leave := context.WithCancel(t.Context())
				erased := erase(ctx)
				leave()
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := s.failed.Load(); n < 2 {
					t.Errorf("tried %d times", n)
				}
				if _, err := h.post("hello", task("t")); !errors.Is(err, swarm.ErrErasing) {
					t.Errorf("a post meanwhile: %v", err)
				}
				if err := <-erase(t.Context()); !errors.Is(err, swarm.ErrConflict) && !errors.Is(err, swarm.ErrNotFound) {
					t.Errorf("who asks again: %v", err)
				}
				s.broken.Store(false)
				if err := <-erased; err != nil {
					t.Error(err)
				}
				wantNothing(t, h, swarm.DefaultTenant)
				if a := h.ask("again", task("t")); a.Body != "boss got [q] again" {
					t.Errorf("%+v", a)
				}
				s.broken.Store(true)
				erased = erase(t.Context())
				h.stop()
				if err := <-erased; !errors.Is(err, errOutage) || !errors.Is(err, swarm.ErrDraining) {
					t.Errorf("at the host's end: %v", err)
				}
			})
		})
	}
}

// stopPoll is longer than the pause after which an erasure looks for tasks again.
const stopPoll = 100 * time.Millisecond

// A write that the store refuses, because an erasure of an earlier host goes on, is not
// tried until the erasure is over. The task is gone, and a later post begins a new one.
func TestErasureOfAnEarlierHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &heldStore{}
		h := newHive(t, func(h *hive) {
			h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
			h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
				s.refuses.Store(incoming(turn).Payload.Body == "first")
				return script(ctx, turn)
			}
		})
		first := h.mustPost("first", task("t"))
		synctest.Wait()
		s.refuses.Store(false)
		if err := h.store.Erase(t.Context(), swarm.DefaultTenant); err != nil {
			t.Fatal(err)
		}
		if a, err := h.rt.Wait(t.Context(), first); err == nil {
			t.Errorf("the erased post has the answer %+v", a)
		}
		wantNothing(t, h, swarm.DefaultTenant)
		if a := h.ask("again", task("t")); a.Body != "boss got [q] again" {
			t.Errorf("%+v", a)
		}
		h.stop()
	})
}

// A turn that runs when its task is dropped writes nothing at its end, not even its usage:
// there is no task that it could count for.
func TestTurnOfADroppedTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun, stay := &heldStore{}, make(chan struct{}), make(chan struct{})
		var late atomic.Int64
		s.match = func(swarm.Mutation) bool { late.Add(1); return false }
		h := newHive(t, func(h *hive) {
			h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
			h.agents.by["math"] = func(context.Context, *swarm.Turn) swarm.Outcome {
				close(begun)
				<-stay
				return swarm.Outcome{}
			}
			h.agents.by["text"] = func(context.Context, *swarm.Turn) swarm.Outcome {
				<-begun
				s.refuses.Store(true)
				return swarm.Outcome{}
			}
		})
		h.mustPost(twoRequests, task("t"))
		synctest.Wait() // the end of text's turn was refused, and the task is dropped
		s.refuses.Store(false)
		if err := h.store.Erase(t.Context(), swarm.DefaultTenant); err != nil {
			t.Fatal(err)
		}
		late.Store(0)
		close(stay)
		synctest.Wait()
		if n := late.Load(); n != 0 {
			t.Errorf("the turn of the dropped task writes %d times", n)
		}
		wantNothing(t, h, swarm.DefaultTenant)
		h.stop()
	})
}

// slowReader holds the readers of submissions until the test lets them go on.
type slowReader struct {
	swarm.Store
	goOn chan struct{}
}

func (s *slowReader) Submission(ctx context.Context, key swarm.InstanceKey, door, id string) (swarm.Submission, error) {
	<-s.goOn
	return s.Store.Submission(ctx, key, door, id)
}

// Who waits for the answer of a task, by the key of an earlier post, and reads it only when
// its tenant is being erased or was erased, learns that the task was cancelled.
func TestWaitBesideAnErasure(t *testing.T) {
	for name, during := range map[string]bool{"while it goes on": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads, broken := &slowReader{goOn: make(chan struct{}, 10)}, &brokenStore{}
				broken.broken.Store(during)
				h := newHive(t, func(h *hive) {
					h.wrap = func(st swarm.Store) swarm.Store { broken.Store = st; reads.Store = broken; return reads }
					h.agents.by["boss"] = func(ctx context.Context, _ *swarm.Turn) swarm.Outcome { <-ctx.Done(); return swarm.Outcome{} }
				})
				post := func(p *swarm.Post) { p.Key, p.Digest = "a key", []byte("digest") }
				reads.goOn <- struct{}{}
				h.mustPost("hello", task("t"), post)
				reads.goOn <- struct{}{}
				repeat := h.mustPost("hello", task("t"), post)
				told := make(chan error, 1)
				go func() {
					_, err := h.rt.Wait(t.Context(), repeat)
					told <- err
				}()
				synctest.Wait()
				erased := make(chan error, 1)
				go func() { erased <- h.rt.EraseTenant(context.Background(), swarm.DefaultTenant, nil) }()
				time.Sleep(stopPoll)
				synctest.Wait()
				close(reads.goOn)
				if err := <-told; !errors.Is(err, swarm.ErrNotFound) || !strings.Contains(err.Error(), "cancelled") {
					t.Errorf("who waits learns %v", err)
				}
				broken.broken.Store(false)
				if err := <-erased; err != nil {
					t.Error(err)
				}
				h.stop()
			})
		})
	}
}

// anyForwarder takes messages for every swarm and delivers none.
type anyForwarder struct{}

func (anyForwarder) Check(context.Context, swarm.InstanceKey, string) error { return nil }
func (anyForwarder) Wake(swarm.OutboxKey)                                   {}
