package amp_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
)

// tells is a runtime that notes events instead of bringing them to agents.
type tells struct {
	*gatewaytest.Runtime
	mu    sync.Mutex
	got   []string // NAME@SWARM of each recipient
	fails map[string]error
}

// Ask implements [gateway.Runtime].
func (r *tells) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	if a.Kind != gateway.Tells {
		return r.Runtime.Ask(ctx, c, a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fails[a.Swarm]; err != nil {
		return gateway.Exchange{}, err
	}
	for _, agent := range a.To {
		r.got = append(r.got, agent+"@"+a.Swarm)
	}
	return gateway.Exchange{ID: a.ID}, nil
}

// take returns who was told since the last time, in order.
func (r *tells) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.got)
	got := strings.Join(r.got, " ")
	r.got = nil
	return got
}

// newTold is a site of [newShares] with agents in two swarms, whose events are noted.
func newTold(t *testing.T) (*site, *tells) {
	t.Helper()
	r := &tells{fails: map[string]error{}}
	s := newSite(t, func(o *amp.Options) {
		r.Runtime = o.Runtime.(*gatewaytest.Runtime)
		o.Runtime = r
	})
	for _, a := range []gateway.ExposedAgent{{Swarm: "farm", Name: "one"}, {Swarm: "farm", Name: "two"}, {Swarm: "mill", Name: "one"}} {
		s.rt.Expose("default", a, gatewaytest.Echo)
	}
	loud := gatewaytest.Realm("default", "acme")
	loud.May = gateway.Rights{gateway.MayTell, gateway.MayBroadcast, gateway.MayContexts}
	s.rt.Admit("loud-token", loud)
	s.Token = "loud-token"
	return s, r
}

// TestEventReaders (M-037, M-038): an event reaches the agents of all swarms, and one about a context the readers
// of all swarms. A sender that may not tell so many changes nothing.
func TestEventReaders(t *testing.T) {
	t.Parallel()
	s, told := newTold(t)
	update := func(destination string, value int, read ...string) amptest.Message {
		return amptest.New("event", "agent-1", destination, amptest.Object{"event_type": "context_update", "context": amptest.Object{
			"session_id": "s-1", "shared_memory": amptest.Object{"n": value}, "access_control": amptest.Object{"read": read},
		}})
	}
	const all = "echo@hive fails@hive late@hive one@farm one@mill slow@hive two@farm"
	for _, step := range []struct {
		event  amptest.Message
		status int
		told   string
	}{
		{amptest.New("event", "agent-1", "", amptest.Object{"event_type": "rain"}), 202, all},
		{amptest.New("event", "agent-1", "one@mill", amptest.Object{"event_type": "rain"}), 202, "one@mill"},
		{update("", 1), 202, ""},
		{update("", 2, "*@farm", "one@mill"), 202, "one@farm one@mill two@farm"},
		{update("one@mill", 3, "*@farm", "one@mill"), 202, "one@mill"},
		{update("echo@hive", 4, "*@farm"), 404, ""},
	} {
		if r := s.send(t, step.event); r.Status != step.status || told.take() != step.told {
			t.Errorf("%s: got %d %s", step.event.Text(), r.Status, r.Text)
		}
	}
	quiet := *s
	quiet.Token = token
	wantFault(t, quiet.send(t, update("", 5, "*@farm")), http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
	if r := quiet.send(t, update("", 6, "one@farm")); r.Status != http.StatusAccepted || told.take() != "one@farm" {
		t.Errorf("to one reader: %d %s", r.Status, r.Text)
	}
	wantMemory(t, "shared_memory", sessionContext(t, s)["shared_memory"], `{"n":6}`)
}

// sessionContext is the one context of acme.
func sessionContext(t *testing.T, s *site) amptest.Object {
	t.Helper()
	m := amptest.New("request", "agent-1", "context", amptest.Object{"operation": "get", "context_id": onlyContext(t, s)})
	return contextIn(t, s.send(t, m))
}

// TestContextUpdateOnce (M-037, M-060): a repeat of an event or of a request changes a context once, also after
// other changes, after a failure to tell its readers and where no agent here reads it. Other content under a
// used id is refused.
func TestContextUpdateOnce(t *testing.T) {
	t.Parallel()
	s, told := newTold(t)
	event := func(value int, read ...string) amptest.Message {
		return amptest.New("event", "agent-1", "", amptest.Object{"event_type": "context_update", "context": amptest.Object{
			"session_id": "s-1", "shared_memory": amptest.Object{"n": value}, "access_control": amptest.Object{"read": read},
		}})
	}
	take := func(m amptest.Message, status int) {
		t.Helper()
		if r := s.send(t, m); r.Status != status {
			t.Fatalf("got %d %s, want %d", r.Status, r.Text, status)
		}
	}
	first, second := event(1), event(2)
	for _, m := range []amptest.Message{first, second, first, second, first} {
		take(m, http.StatusAccepted)
	}
	wantMemory(t, "shared_memory", sessionContext(t, s)["shared_memory"], `{"n":2}`)
	told.fails["farm"] = errors.New("the disk is gone")
	third := event(3, "one@farm", "one@mill")
	take(third, http.StatusInternalServerError)
	take(event(4, "one@farm", "one@mill"), http.StatusInternalServerError)
	delete(told.fails, "farm")
	told.take()
	take(third, http.StatusAccepted)
	if got := told.take(); got != "one@farm one@mill" {
		t.Errorf("told %q", got)
	}
	now := sessionContext(t, s)
	wantMemory(t, "shared_memory", now["shared_memory"], `{"n":4}`)
	other := event(5)
	other.Message.ID = third.Message.ID
	wantFault(t, s.send(t, other), http.StatusConflict, "INVALID_SCHEMA", "CONFLICT")
	request := func(value int, version any) amptest.Message {
		return amptest.New("request", "agent-1", "context", amptest.Object{
			"operation": "update", "context_id": now["id"], "if_version": version, "context": amptest.Object{"shared_memory": amptest.Object{"n": value}},
		})
	}
	asked := request(6, now["version"])
	changed := contextIn(t, s.send(t, asked))
	contextIn(t, s.send(t, request(7, changed["version"])))
	wantMemory(t, "the answer to a repeat", contextIn(t, s.send(t, asked))["shared_memory"], `{"n":7}`)
}

// TestFirstEventsOfSession (M-037): of events that make the context of a session at once each changes it.
func TestFirstEventsOfSession(t *testing.T) {
	t.Parallel()
	s, _ := newTold(t)
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		m := amptest.New("event", "agent-1", "", amptest.Object{"event_type": "context_update", "context": amptest.Object{
			"session_id": "s-1", "shared_memory": amptest.Object{name: 1},
		}})
		all.Go(func() {
			if r, err := s.Send(m); err != nil || r.Status != http.StatusAccepted {
				t.Errorf("got %d %s, %v", r.Status, r.Text, err)
			}
		})
	}
	all.Wait()
	wantMemory(t, "shared_memory", sessionContext(t, s)["shared_memory"], `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}`)
}
