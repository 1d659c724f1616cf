package amp_test

import (
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/amptest"
	"skep/spec/mail"
)

// TestCarryOverSocket (M-091, M-094, M-098, V-M36): what our agents write to an agent with a WebSocket
// goes there, and its answer comes there, whatever its partner's url is. A question whose socket is
// lost before the answer is sent again under its id, to the next one. The registration outlives the
// socket.
func TestCarryOverSocket(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	c := o.dial(t, token)
	registration := amptest.New("request", "", "registry", amptest.Object{
		"agent": amptest.Object{"id": "agent-1"}, "capabilities": []any{amptest.Object{"id": "translation"}}, "endpoints": amptest.Object{},
	})
	registration.Message.Destination.Capability = "registration"
	if m := exchange(t, c, registration.Text()); m.Result()["registered"] != true {
		t.Fatalf("got %s", m.Text())
	}
	carried := make(chan gateway.Carried, 1)
	carry := func(id string, kind mail.Type, p gateway.Partner) {
		go func() { carried <- o.g.Carry(t.Context(), p, outgoing(id, kind, "2+2")) }()
	}
	carry("m1", mail.Request, o.p)
	q := next(t, c)
	if q.Message.ID != "m1" || q.Message.Type != "request" || q.Message.Destination.AgentID != "agent-1" || q.Message.Headers["routing_hints"].(amptest.Object)["hops"] != 1.0 {
		t.Errorf("got %s", q.Text())
	}
	interim := q.Reply("response", amptest.Object{"status": "partial", "result": amptest.Object{}, "metadata": amptest.Object{"final": false}})
	write(t, c, interim.Text(), q.Reply("response", amptest.Result("4")).Text())
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Body != "4" || !asked[0].Sent {
		t.Errorf("delivered %+v", asked)
	}
	carry("m2", mail.Broadcast, o.p)
	if m := next(t, c); m.Message.Type != "event" || m.Message.ID != "m2" {
		t.Errorf("got %s", m.Text())
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	carry("m3", mail.Request, o.p)
	next(t, c)
	c.Close()
	if got := <-carried; got.State != gateway.Unanswered {
		t.Errorf("without its socket %+v", got)
	}
	for o.g.Health().Connections > 0 {
		gateway.Pause(t.Context(), time.Millisecond)
	}
	away := o.p
	away.URL = ""
	if got := o.g.Carry(t.Context(), away, outgoing("m3", mail.Request, "2+2")); got.State != gateway.Later || !strings.Contains(got.Reason, "no WebSocket open") {
		t.Errorf("while it is away %+v", got)
	}
	again := o.dial(t, token)
	heartbeat := amptest.New("request", "agent-1", "registry", amptest.Object{"agent": amptest.Object{"id": "agent-1"}})
	heartbeat.Message.Destination.Capability = "heartbeat"
	if m := exchange(t, again, heartbeat.Text()); m.Result()["lease_seconds"] == nil {
		t.Errorf("the heartbeat got %s", m.Text())
	}
	carry("m3", mail.Request, away)
	write(t, again, next(t, again).Reply("error", amptest.Error("CAPABILITY_NOT_FOUND", "no")).Text())
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Subject != "[CAPABILITY_NOT_FOUND]" {
		t.Errorf("delivered %+v", asked)
	}
	if found, err := o.g.Discover(t.Context(), away); err != nil || len(found) != 1 || found[0].Name != "agent-1" || len(found[0].Capabilities) != 1 {
		t.Errorf("discovered %+v, %v", found, err)
	}
	if len(o.came()) != 0 {
		t.Errorf("posted %s", o.came())
	}
}
