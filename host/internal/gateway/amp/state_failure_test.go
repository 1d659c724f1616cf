package amp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
)

// flakyState is a runtime whose records cannot be written at times.
type flakyState struct {
	*gatewaytest.Runtime
	fault atomic.Pointer[error]
	// waits holds up the lists of a realm.
	waits atomic.Pointer[heldRealm]
}

// heldRealm holds up what a realm does with its records.
type heldRealm struct {
	realm            string
	arrived, release chan struct{}
}

// List implements [state.Store].
func (s flakyStore) List(ctx context.Context, of, after state.Key, limit int) ([]state.Record, error) {
	if held := s.of.waits.Load(); held != nil && held.realm == of.Realm {
		held.arrived <- struct{}{}
		<-held.release
	}
	return s.Store.List(ctx, of, after, limit)
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

// TestStateIsSlow (M-027): while the records of a realm are waited for, another realm registers agents, and a caller of
// the same realm may leave.
func TestStateIsSlow(t *testing.T) {
	t.Parallel()
	var flaky *flakyState
	s := newSite(t, anyAddress, func(o *amp.Options) {
		flaky = &flakyState{Runtime: o.Runtime.(*gatewaytest.Runtime)}
		o.Runtime = flaky
	})
	s.admit("rival-token", gateway.Partner{Name: "rival", IDs: []string{"agent*"}})
	held := &heldRealm{"acme", make(chan struct{}, 10), make(chan struct{})}
	flaky.waits.Store(held)
	register := func(ctx context.Context, token, agent string) chan int {
		m := amptest.New("request", "agent-1", "registry", registration(agent))
		m.Message.Destination.Capability = "registration"
		status := make(chan int, 1)
		go func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(m.Text()))
			if err != nil {
				t.Error(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				status <- 0
				return
			}
			_ = resp.Body.Close()
			status <- resp.StatusCode
		}()
		return status
	}
	first := register(t.Context(), token, "agent-1")
	<-held.arrived
	leaving, leave := context.WithCancel(t.Context())
	second := register(leaving, token, "agent-2")
	select {
	case status := <-register(t.Context(), "rival-token", "agent-1"):
		if status != http.StatusOK {
			t.Errorf("another realm got %d", status)
		}
	case <-time.After(time.Minute):
		t.Error("another realm waits")
	}
	leave()
	<-second
	close(held.release)
	if status := <-first; status != http.StatusOK {
		t.Errorf("the realm got %d", status)
	}
	flaky.waits.Store(nil)
	if status := <-register(t.Context(), token, "agent-2"); status != http.StatusOK {
		t.Errorf("after all: %d", status)
	}
}
