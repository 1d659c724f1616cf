package amp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
)

// newProbed is a gateway that looks at the health of agents all the time, until the test ends.
func newProbed(t *testing.T, client *http.Client) *site {
	t.Helper()
	s := newSite(t, anyAddress, func(o *amp.Options) { o.Probe, o.EndpointClient = time.Millisecond, client })
	s.admit("rival-token", gateway.Partner{Name: "rival", IDs: []string{"agent*"}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// registers registers an agent of acme with a health endpoint.
func (s *site) registers(t *testing.T, id, health string) {
	t.Helper()
	payload := registration(id)
	payload["endpoints"] = amptest.Object{"invoke": "https://agent.example.com/invoke", "health": health}
	wantStatus(t, s.control(t, "registration", payload), http.StatusOK)
}

// waitForStatus waits until discovery lists an agent with a status, or with "" not at all.
func (s *site) waitForStatus(t *testing.T, id, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		got := ""
		agents, _ := discover(t, s, amptest.Object{})["agents"].([]any)
		for _, a := range agents {
			one, _ := a.(amptest.Object)
			if who, _ := one["agent"].(amptest.Object); who["id"] == id {
				got, _ = one["status"].(string)
			}
		}
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is listed as %q, want %q", id, got, want)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestProbe (M-028, M-092, V-M22): an agent whose health endpoint refuses, calls itself unhealthy or
// is not reached leaves discovery after three looks, stays registered, and comes back when it is
// healthy. The endpoint is shown the agent's credential.
func TestProbe(t *testing.T) {
	t.Parallel()
	var answers atomic.Pointer[http.HandlerFunc]
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer the-secret-of-the-agent" {
			t.Errorf("asked by %s with %q", r.Method, r.Header.Get("Authorization"))
		}
		(*answers.Load())(w, r)
	}))
	t.Cleanup(health.Close)
	set := func(status int, body string) {
		answers.Store(new(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})))
	}
	const good = `{"status": "healthy", "protocol_version": "1.0"}`
	set(http.StatusOK, good)
	s := newProbed(t, health.Client())
	s.registers(t, "agent-7", health.URL+"/health")
	s.waitForStatus(t, "agent-7", "healthy")
	for name, bad := range map[string]struct {
		status int
		body   string
	}{
		"refused": {http.StatusServiceUnavailable, good}, "unhealthy": {http.StatusOK, `{"status": "unhealthy"}`}, "moved": {http.StatusNotFound, good},
	} {
		set(bad.status, bad.body)
		s.waitForStatus(t, "agent-7", "")
		wantStatus(t, s.control(t, "heartbeat", amptest.Object{"agent": amptest.Object{"id": "agent-7"}}), http.StatusOK)
		set(http.StatusOK, `{"status": "degraded"}`)
		s.waitForStatus(t, "agent-7", "degraded")
		set(http.StatusOK, "OK")
		s.waitForStatus(t, "agent-7", "healthy")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	set(http.StatusServiceUnavailable, "")
	s.waitForStatus(t, "agent-7", "")
	s.registers(t, "agent-7", "") // a new endpoint begins anew
	s.waitForStatus(t, "agent-7", "unknown")
}

// TestProbesOfARealm (M-028): agents whose endpoints do not answer hold up neither agents of another
// realm nor the end of the gateway.
func TestProbesOfARealm(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	health := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/hangs") {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-r.Context().Done()
		}
	}))
	t.Cleanup(health.Close)
	s := newProbed(t, health.Client())
	for _, id := range []string{"agent-1", "agent-2", "agent-3", "agent-4", "agent-5", "agent-6", "agent-7", "agent-8", "agent-9"} {
		s.registers(t, id, health.URL+"/hangs/"+id)
	}
	<-asked
	s.Client.Token = "rival-token"
	s.registers(t, "agent-7", health.URL+"/answers")
	s.waitForStatus(t, "agent-7", "healthy")
}
