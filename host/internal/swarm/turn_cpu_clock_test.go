package swarm

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/swarm/scheduler"
)

// A jump of the host's clock while a guest computes is not charged to its tenant: of the tenants that wait, the
// one that has computed less by the monotonic clock comes first.
func TestClockJumpChargesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		r, err := New(t.Context(), newLegacy(), completer{}, NoForwarder{}, noTools{}, manyDefinitions(1), Options{
			Tokens: 1, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		})
		if err != nil {
			t.Fatal(err)
		}
		var order []string // the holder of the token has it
		var all sync.WaitGroup
		compute := func(tenant string, during func()) {
			all.Go(func() {
				owner := scheduler.Owner{Tenant: tenant, Instance: "i"}
				if err := r.cpu.Acquire(t.Context(), owner); err != nil {
					t.Error(err)
					return
				}
				order = append(order, tenant)
				during()
				r.cpu.Release(owner)
			})
			synctest.Wait()
		}
		compute("short", func() {
			time.Sleep(time.Second)
			ahead.Store(int64(time.Hour))
		})
		compute("long", func() { time.Sleep(time.Minute) })
		compute("short", func() {})
		compute("long", func() {})
		all.Wait()
		if want := []string{"short", "long", "short", "long"}; !slices.Equal(order, want) {
			t.Errorf("the tenants compute in the order %v, want %v: the jump is charged to the one that held the token", order, want)
		}
	})
}
