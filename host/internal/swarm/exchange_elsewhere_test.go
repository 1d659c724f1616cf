package swarm_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
	"skep/spec/mail"
)

// sharedRealm is a realm whose host shares a store, and works on all tasks at first.
func sharedRealm(t *testing.T, change ...func(*hive)) *realm {
	t.Helper()
	expose := func(h *hive) { h.def.Agents[0].Expose, h.def.Agents[1].Expose = []string{"toy"}, []string{"toy"} }
	h, _ := (&sharedBudget{left: map[int64]swarm.Spend{}}).share(t, swarm.Spend{}, append(change, expose)...)
	return &realm{hive: h}
}

// lose gives slots to another host.
func (r *realm) lose(slots ...slot.Slot) {
	r.t.Helper()
	if err := r.rt.Losing(r.t.Context(), slots); err != nil {
		r.t.Fatal(err)
	}
}

// TestLookElsewhere: each host can tell what an exchange has, whichever works on its task.
func TestLookElsewhere(t *testing.T) {
	t.Parallel()
	for name, math := range map[string]behave{
		"answered": func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			call(turn, mail.ToolSendResponse, obj{"target": "x@acme", "subject": "s", "body": "4"})
			return swarm.Outcome{}
		},
		"paused": func(_ context.Context, turn *swarm.Turn) swarm.Outcome { return asks(turn) },
		"asked": func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			call(turn, mail.ToolSendRequest, obj{"target": "x@acme", "subject": "s", "body": "which?"})
			return swarm.Outcome{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sharedRealm(t, func(h *hive) {
				h.forward = ways{}
				h.def.Agents[1].Interswarm, h.def.Agents[1].Targets = true, []string{"*@*"}
				h.agents.by["math"] = math
			})
			in := r.wrapper("job", "math", "2+2")
			in.Brief = true
			x := r.receive(in).Exchanges[0]
			r.waitState(x)
			want := r.look(in)
			r.lose(swarm.SlotOf(x.Task))
			if got := r.look(in); !reflect.DeepEqual(got, want) {
				t.Errorf("at another host %+v, at its own %+v", got, want)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := r.rt.WaitExchange(ctx, r.find(in), nil); !errors.Is(err, swarm.ErrElsewhere) {
				t.Errorf("a wait at another host: %v", err)
			}
			if _, err := r.store.Prune(t.Context(), swarm.PruneRule{Tasks: time.Now().Add(time.Hour), Keep: func(swarm.TaskKey) bool { return false }, Gone: func() {}}); err != nil {
				t.Fatal(err)
			}
			_, err := r.rt.LookExchange(t.Context(), r.find(in), swarm.Event{})
			if ended := want.State == swarm.StateCompleted; ended != errors.Is(err, swarm.ErrNotFound) {
				t.Errorf("after the tasks that have ended were pruned: %v", err)
			}
		})
	}
}

func (r *realm) look(in swarm.Incoming) swarm.ExchangeState {
	r.t.Helper()
	s, err := r.rt.LookExchange(r.t.Context(), r.find(in), swarm.Event{})
	if err != nil {
		r.t.Fatal("LookExchange:", err)
	}
	return s
}

// TestNewTaskOfARealm: a host begins the new tasks of realms in its own slots, and sends who has
// none on.
func TestNewTaskOfARealm(t *testing.T) {
	t.Parallel()
	r := sharedRealm(t)
	sent := swarm.SlotOf(guest("hive", "acme", "any"))
	var lost, own []slot.Slot
	for n := sent % 2; n < slot.Tasks; n += 2 {
		lost, own = append(lost, n), append(own, n^1)
	}
	r.lose(lost...)
	for range 16 {
		in := r.wrapper("any", "math", "2+2")
		in.NewTask = true
		if got := r.receive(in); slices.Contains(lost, swarm.SlotOf(got.Task)) || got.Exchanges[0].Task != got.Task {
			t.Fatalf("the new task is %+v", got)
		}
	}
	r.lose(own...)
	in := r.wrapper("any", "math", "2+2")
	in.NewTask = true
	if _, err := r.rt.Receive(t.Context(), in); !errors.Is(err, swarm.ErrElsewhere) {
		t.Errorf("a host without slots: %v", err)
	}
}
