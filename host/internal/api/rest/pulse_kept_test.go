package rest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
	"skep/host/internal/telemetry/pulse"
)

// What was kept is read from its oldest event, or after the reader's last one, and ends with a
// ping that has the place from which the reader goes on. A filter holds for it.
func TestPulseKept(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, withPulse, withAcme)
	ring := h.opt.Pulse
	for n := range 1030 { // the ring has 1024
		tenant := "default"
		if n%2 == 1 {
			tenant = "acme"
		}
		ring.Publish(pulse.Event{Kind: pulse.Mail, Tenant: tenant, Task: fmt.Sprint("task-", n)})
	}
	read := func(query, last string) []sse {
		a := h.do(request{path: "/skep/v1/pulse?kept=true" + query, token: operatorToken, header: http.Header{"Last-Event-Id": {last}}})
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return events(t, a.body)
	}
	all := read("", "")
	if len(all) != 1025 || !strings.Contains(all[0].data, `"task-6"`) || all[1024].name != "ping" || all[1024].id != ring.ID(1030) {
		t.Errorf("%d events, from %v to %v", len(all), all[0], all[len(all)-1])
	}
	if got := read("", ring.ID(1029)); len(got) != 2 || got[0].id != ring.ID(1030) {
		t.Errorf("after the last but one: %v", got)
	}
	if got := read("&tenant=acme", ring.ID(1026)); len(got) != 3 || !strings.Contains(got[1].data, `"task-1029"`) {
		t.Errorf("of a tenant: %v", got)
	}
	if got := read("&tenant=nobody", ""); len(got) != 1 || got[0].name != "ping" {
		t.Errorf("of no tenant: %v", got)
	}
	refusal{"neither", operatorToken, "GET", "/skep/v1/pulse?kept=1", "", 400, "kept must be true or false"}.check(t, h.handler)
}

// movingOwner is this host when it is first asked, and another one from then on.
type movingOwner struct{ asked *atomic.Int32 }

func (o movingOwner) Owner(swarm.TaskKey) (string, bool) {
	if o.asked.Add(1) == 1 {
		return "", true
	}
	return "http://host.example", true
}

func (movingOwner) Changed() <-chan struct{} { return nil }

// A feed of one task ends when another host takes the task: there it goes on.
func TestPulseTaskMoves(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, withPulse, func(h *testHost) {
		h.opt.OtherHosts = rest.NewOtherHosts(movingOwner{new(atomic.Int32)}, []byte("a key of hosts"), time.Minute)
	})
	a := h.do(request{path: "/skep/v1/pulse?task=t1", token: aliceToken})
	if kinds := pulseKinds(t, a); !slices.Equal(kinds, []string{"reset"}) {
		t.Errorf("the feed had %v", kinds)
	}
}
