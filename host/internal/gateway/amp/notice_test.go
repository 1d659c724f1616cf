package amp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/spec/mail"
)

// group is a gateway that runs, at which three agents of acme have registered.
type group struct {
	*out
	// came has the path and the message of each event that an agent took.
	came  chan string
	mu    sync.Mutex
	fails map[string]int // attempts that a path fails
}

func newGroup(t *testing.T) *group {
	t.Helper()
	k := &group{came: make(chan string, 100), fails: map[string]int{}}
	k.out = newOut(t, func(opt *amp.Options) { opt.Partners = func() []gateway.Partner { return []gateway.Partner{k.p} } })
	k.does(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, err := amptest.Parse(text)
		if err != nil || m.Message.Headers["authentication"] != nil {
			t.Errorf("got %s, %v", text, err)
		}
		k.mu.Lock()
		k.fails[r.URL.Path]--
		fails := k.fails[r.URL.Path] >= 0
		k.mu.Unlock()
		if fails {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		k.came <- fmt.Sprintf("%s %s to %s from %s: %v", r.URL.Path, m.Message.Payload["event_type"], m.Message.Destination.AgentID, m.Message.Source.AgentID, m.Message.Headers["routing_hints"])
	})
	k.p.GiveUp = time.Minute
	k.rt.AddPartner(k.p)
	loud := gatewaytest.Realm("default", "acme")
	loud.May = gateway.Rights{gateway.MayTell, gateway.MayBroadcast, gateway.MayContexts, gateway.MayRegister}
	k.site.rt.Admit("loud-token", loud)
	k.Token = "loud-token"
	for _, id := range []string{"agent-1", "agent-2", "agent-3"} {
		r := k.send(t, registered(id, strings.TrimSuffix(k.p.URL, "invoke")+id))
		if r.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", id, r.Status, r.Text)
		}
	}
	return k
}

// registered is a message by which an agent registers with an endpoint.
func registered(id, invoke string) amptest.Message {
	m := amptest.New("request", id, "registry", amptest.Object{"agent": amptest.Object{"id": id}, "endpoints": amptest.Object{"invoke": invoke}})
	m.Message.Destination.Capability = "registration"
	return m
}

// run runs the gateway until the end of the test, or of its return value's call.
func (k *group) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = k.g.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(stop)
	return stop
}

// take returns the next n events that agents took, in order of their paths.
func (k *group) take(n int) (got []string) {
	for range n {
		got = append(got, <-k.came)
	}
	slices.Sort(got)
	return got
}

// TestEventToAll (M-038, V-M39): an event to all reaches the agents of ours and those that have
// registered, but for its source; one to a registered agent reaches that. One that an agent does not
// take is sent again, and also where it waited while the host was stopped.
func TestEventToAll(t *testing.T) {
	t.Parallel()
	k := newGroup(t)
	k.fails["/agent-2"] = 2
	event := amptest.New("event", "agent-1", "", amptest.Object{"event_type": "rain"})
	event.Message.Headers["authentication"] = amptest.Object{"type": "bearer", "token": "loud-token"}
	for range 2 { // the second one changes nothing before the first one was sent
		if r := k.send(t, event); r.Status != http.StatusAccepted {
			t.Fatalf("got %d %s", r.Status, r.Text)
		}
	}
	k.run(t)
	if got, want := k.take(2), []string{"/agent-2 rain to agent-2 from agent-1: map[hops:1]", "/agent-3 rain to agent-3 from agent-1: map[hops:1]"}; !slices.Equal(got, want) {
		t.Errorf("took %q, want %q", got, want)
	}
	if r := k.send(t, amptest.New("event", "agent-1", "agent-3", amptest.Object{"event_type": "sun"})); r.Status != http.StatusAccepted {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	if got := k.take(1); !strings.HasPrefix(got[0], "/agent-3 sun to agent-3") {
		t.Errorf("took %q", got)
	}
	if r := k.send(t, amptest.New("event", "agent-3", "agent-3", amptest.Object{"event_type": "x"})); r.Status != http.StatusNotFound {
		t.Errorf("to itself: %d %s", r.Status, r.Text)
	}
	quiet := *k.site
	quiet.Token = token
	wantFault(t, quiet.send(t, amptest.New("event", "agent-1", "", amptest.Object{"event_type": "x"})), 403, "AUTHENTICATION_FAILED", "FORBIDDEN")
	far := amptest.New("event", "agent-1", "agent-2", amptest.Object{"event_type": "x"})
	far.Message.Headers["routing_hints"] = amptest.Object{"hops": 64}
	wantFault(t, k.send(t, far), 400, "INVALID_SCHEMA", "MALFORMED")
	wantFault(t, k.send(t, amptest.New("event", "agent-1", "agent-2", amptest.Object{"event_type": "x", "long": strings.Repeat("x", 128<<10)})), 413, "INVALID_SCHEMA", "TOO_LARGE")
	if len(k.came) > 0 {
		t.Errorf("more events: %s", <-k.came)
	}
}

// TestContextReadersRegistered (M-037): an event about a context reaches the registered agents that may
// read it.
func TestContextReadersRegistered(t *testing.T) {
	t.Parallel()
	k := newGroup(t)
	k.run(t)
	m := amptest.New("event", "agent-1", "", amptest.Object{"event_type": "context_update", "context": amptest.Object{
		"session_id": "s-1", "shared_memory": amptest.Object{"n": 1}, "access_control": amptest.Object{"read": []string{"agent-3"}},
	}})
	if r := k.send(t, m); r.Status != http.StatusAccepted {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	if got := k.take(1); !strings.HasPrefix(got[0], "/agent-3 context_update") || len(k.came) > 0 {
		t.Errorf("took %q", got)
	}
}

// TestTellsRegistered (M-038): an event of ours to all reaches each agent of the partner that has
// registered.
func TestTellsRegistered(t *testing.T) {
	t.Parallel()
	k := newGroup(t)
	k.run(t)
	if got := k.g.Carry(t.Context(), k.p, writtenBy("m1", mail.Broadcast, `"type":"event_to_all","event_type":"stock.low"`)); got.State != gateway.Taken {
		t.Fatalf("carried %+v", got)
	}
	for i, got := range k.take(3) {
		if want := fmt.Sprintf("/agent-%d stock.low to agent-%d from boss@hive", i+1, i+1); !strings.HasPrefix(got, want) {
			t.Errorf("took %q, want %q", got, want)
		}
	}
}

// TestNoticesAreBounded: an agent that takes no events keeps at most 64, and holds up no other; what is
// dropped is recorded.
func TestNoticesAreBounded(t *testing.T) {
	t.Parallel()
	k := newGroup(t)
	k.fails["/agent-2"] = 1_000_000
	for range 65 {
		if r := k.send(t, amptest.New("event", "agent-1", "agent-2", amptest.Object{"event_type": "x"})); r.Status != http.StatusAccepted {
			t.Fatalf("got %d %s", r.Status, r.Text)
		}
	}
	dropped := 0
	for _, e := range k.site.rt.Events() {
		if e.Out && e.Verdict == "failed" && strings.Contains(e.Reason, "64 events wait") {
			dropped++
		}
	}
	if dropped != 1 {
		t.Errorf("%d were dropped", dropped)
	}
	k.run(t)
	if r := k.send(t, amptest.New("event", "agent-1", "agent-3", amptest.Object{"event_type": "y"})); r.Status != http.StatusAccepted {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	if got := k.take(1); !strings.HasPrefix(got[0], "/agent-3 y") {
		t.Errorf("took %q", got)
	}
}
