package swarm_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/swarm"
)

// failingFootprint fails to tell what a tenant stores, as often as left has.
type failingFootprint struct {
	swarm.Store
	left *atomic.Int64
}

func (s failingFootprint) Footprint(ctx context.Context, tenant string) (swarm.Footprint, error) {
	if s.left.Add(-1) >= 0 {
		return swarm.Footprint{}, errOutage
	}
	return s.Store.Footprint(ctx, tenant)
}

// newQuotaHive has a tenant with a quota, and an agent that puts a blob while the store fails so many
// times.
func newQuotaHive(t *testing.T, failures int64, ended chan<- string) *hive {
	t.Helper()
	left := &atomic.Int64{}
	return newHive(t, withTenants(map[string]swarm.Quota{"acme": {Storage: 1 << 30}}), func(h *hive) {
		h.wrap = func(st swarm.Store) swarm.Store { return failingFootprint{st, left} }
		h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			left.Store(failures)
			id, fault := turn.PutBlob([]byte("tea"))
			text := id.String()
			if fault != nil {
				text = fault.Error()
			}
			ended <- text
			return tell(turn, text)
		}
	})
}

// A store that fails for a moment fails no turn that stores a blob under a quota.
func TestQuotaStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, failures := range []int64{1, 5} {
			h := newQuotaHive(t, failures, make(chan string, 1))
			if a := h.ask("put", of("acme")); !strings.HasSuffix(a.Body, fmt.Sprintf("%x", sha256.Sum256([]byte("tea")))) {
				t.Errorf("%d failures: %q", failures, a.Body)
			}
			h.stop()
		}
	})
}

// A turn that waits for the store ends with its task.
func TestQuotaWaitEndsWithItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan string, 1)
		h := newQuotaHive(t, 1<<40, ended)
		h.mustPost("put", task("t"), of("acme"))
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() {
			k := key("t")
			k.Tenant = "acme"
			stopped <- h.rt.CancelTask(context.Background(), k, "tester")
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if text := <-ended; !strings.Contains(text, "cannot be read") {
			t.Errorf("got %q", text)
		}
		h.stop()
	})
}
