package amp_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
)

// flakyState is a runtime whose records cannot be written at times.
type flakyState struct {
	*gatewaytest.Runtime
	fault atomic.Pointer[error]
}

func (f *flakyState) State() state.Store { return flakyStore{f.Runtime.State(), f} }

type flakyStore struct {
	state.Store
	of *flakyState
}

func (s flakyStore) Put(ctx context.Context, r state.Record) (int64, error) {
	if fault := s.of.fault.Load(); fault != nil {
		return 0, *fault
	}
	return s.Store.Put(ctx, r)
}

// TestStateFails (M-027, M-060): what cannot be written is refused as what it is, keeps what was
// there, and succeeds when it is sent again.
func TestStateFails(t *testing.T) {
	t.Parallel()
	var flaky *flakyState
	s := newSite(t, anyAddress, func(o *amp.Options) {
		flaky = &flakyState{Runtime: o.Runtime.(*gatewaytest.Runtime)}
		o.Runtime = flaky
	})
	broken, full := errors.New("the disk is gone"), state.ErrFull
	manage := func(operation string, payload amptest.Object) amptest.Reply {
		t.Helper()
		payload["operation"] = operation
		m := amptest.New("request", "agent-1", "context", payload)
		return s.send(t, m)
	}
	wantStatus(t, s.control(t, "registration", registration("agent-7")), http.StatusOK)
	made := contextIn(t, manage("create", amptest.Object{"context": amptest.Object{"shared_memory": amptest.Object{"a": 1}}}))
	change := func() amptest.Reply {
		return manage("update", amptest.Object{"context_id": made["id"], "if_version": made["version"], "context": amptest.Object{"shared_memory": amptest.Object{"a": 2}}})
	}
	replaced := registration("agent-7")
	replaced["capabilities"] = []amptest.Object{{"id": "summarization"}}
	for _, c := range []struct {
		fault  error
		status int
		reason string
	}{{broken, http.StatusInternalServerError, "INTERNAL"}, {full, http.StatusServiceUnavailable, "FULL"}} {
		flaky.fault.Store(&c.fault)
		wantFault(t, change(), c.status, "INSUFFICIENT_RESOURCES", c.reason)
		wantFault(t, s.control(t, "registration", replaced), c.status, "INSUFFICIENT_RESOURCES", c.reason)
		flaky.fault.Store(nil)
		wantMemory(t, "shared_memory", contextIn(t, manage("get", amptest.Object{"context_id": made["id"]}))["shared_memory"], `{"a":1}`)
		if found := discover(t, s, amptest.Object{"capabilities": []string{"translation"}}); names(found["agents"]) != "agent-7" {
			t.Errorf("a registration that failed has left %v", found)
		}
	}
	contextIn(t, change())
	wantStatus(t, s.control(t, "registration", replaced), http.StatusOK)
}
