package iacp_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// mill is a hub of another party, which the gateway calls as its partner of that name.
type mill struct {
	*site
	t   *testing.T
	hub *iacptest.Hub
}

func newMill(t *testing.T, change ...func(*iacp.Options)) *mill {
	t.Helper()
	hub, err := iacptest.Listen(t.Context(), "127.0.0.1:0", token, "ack", "progress")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	m := &mill{t: t, hub: hub}
	change = append([]func(*iacp.Options){func(o *iacp.Options) {
		rt := o.Runtime.(*gatewaytest.Runtime)
		m.partner(rt, token)
		o.FirstPause = 10 * time.Millisecond
		o.Partners = func() []gateway.Partner {
			p, _ := rt.Partner("mill")
			return []gateway.Partner{p}
		}
	}}, change...)
	m.site = newSite(t, change...)
	return m
}

// partner is the partner whose hub is called with a token.
func (m *mill) partner(rt *gatewaytest.Runtime, token string) {
	address := m.hub.Addr().String()
	rt.AddPartner(gateway.Partner{
		Name: "mill", Tenant: "acme", URL: "iacp://" + address, IDs: []string{"mill-*"}, May: gateway.Rights{gateway.MayAsk, gateway.MayTell}, Timeout: time.Minute,
		Dialer: &gateway.Dialer{
			Dial:  func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) },
			Token: func() string { return token }, APIKey: func() string { return "" },
		},
	})
}

// spoke is the next connection of the gateway, which has registered the agent echo.
func (m *mill) spoke() *iacptest.Conn {
	m.t.Helper()
	c, err := m.hub.Spoke()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = c.Close() })
	register := read(m.t, c, "agent_register")
	info, _ := register.Payload["agent_info"].(map[string]any)
	if info["agent_id"] != "echo" || register.Sender.ID != "echo" || !slices.Contains(info["capabilities"].([]any), any("repeat")) {
		m.t.Errorf("registered %s", register.Raw)
	}
	answer := register.Reply("agent_register_response", map[string]any{"status": "registered", "agents": []any{map[string]any{"agent_id": "mill-1"}}})
	if err := c.Send(answer.Text()); err != nil {
		m.t.Fatal(err)
	}
	return c
}

// TestVisit (I-028, I-054, I-057, I-059): the gateway connects to a hub, shakes hands,
// authenticates and registers its agents; then messages go both ways on the one connection.
func TestVisit(t *testing.T) {
	t.Parallel()
	m := newMill(t)
	c := m.spoke()
	asks := iacptest.New("task_request", "mill-1", "echo", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"body": "ground?"}})
	exchange(t, c, asks, "ack")
	if got := read(t, c, "task_response"); got.Payload["status"] != "accepted" {
		t.Errorf("got %s", got.Raw)
	}
	if got := read(t, c, "task_response"); got.Payload["status"] != "completed" || got.Parent != asks.ID {
		t.Errorf("got %s", got.Raw)
	}
	p, _ := m.rt.Partner("mill")
	d := delivery(uuid.NewString())
	d.Wrapper.Payload.Recipients[0].Name = "mill-1@mill"
	carried := make(chan gateway.Carried, 1)
	go func() { carried <- m.g.Carry(t.Context(), p, d) }()
	question := read(t, c, "task_request")
	for _, reply := range []iacptest.Message{
		question.Reply("ack", map[string]any{"message_id": question.ID}), question.Reply("task_response", map[string]any{"status": "completed", "result": "17"}),
	} {
		if err := c.Send(reply.Text()); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	if list, err := m.g.Discover(t.Context(), p); err != nil || len(list) != 1 || list[0].Name != "mill-1" {
		t.Errorf("the partner has %+v, %v", list, err)
	}
}

// TestVisitLarge (I-006, I-028): large frames of a hub have room as those of a peer that has called, and
// give it back: more come than have room at once, and a question and an answer are among them.
func TestVisitLarge(t *testing.T) {
	t.Parallel()
	m := newMill(t, func(o *iacp.Options) { o.MaxBody, o.Held = 70_000, 70_000 })
	c := m.spoke()
	large := strings.Repeat("x", 40_000)
	for range 3 {
		asks := iacptest.New("task_request", "mill-1", "echo", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"body": large}})
		exchange(t, c, asks, "ack")
		for _, want := range []string{"accepted", "completed"} {
			got := read(t, c, "task_response")
			if got.Payload["status"] != want {
				t.Fatalf("got %.300s", got.Raw)
			}
			if want == "completed" {
				acknowledge(t, c, got)
			}
		}
	}
	p, _ := m.rt.Partner("mill")
	for range 3 {
		d := delivery(uuid.NewString())
		d.Wrapper.Payload.Recipients[0].Name = "mill-1@mill"
		carried := make(chan gateway.Carried, 1)
		go func() { carried <- m.g.Carry(t.Context(), p, d) }()
		question := read(t, c, "task_request")
		acknowledge(t, c, question)
		exchange(t, c, question.Reply("task_response", map[string]any{"status": "completed", "result": large}), "ack")
		if got := <-carried; got.State != gateway.Taken {
			t.Fatalf("carried %+v", got)
		}
	}
}

// TestVisitAgain (I-057, I-061, V-I15): a connection that is lost, or refused, is made again,
// and a question that was not answered goes out on the next one under its id.
func TestVisitAgain(t *testing.T) {
	t.Parallel()
	m := newMill(t)
	p, _ := m.rt.Partner("mill")
	d := delivery(uuid.NewString())
	d.Wrapper.Payload.Recipients[0].Name = "mill-1@mill"
	ids := map[string]bool{}
	for range 3 {
		c := m.spoke()
		carried := make(chan gateway.Carried, 1)
		go func() { carried <- m.g.Carry(t.Context(), p, d) }()
		ids[read(t, c, "task_request").ID] = true
		_ = c.Close()
		if got := <-carried; got.State != gateway.Unanswered {
			t.Fatalf("the connection is lost: %+v", got)
		}
	}
	if len(ids) != 1 {
		t.Errorf("the attempts of one message have the ids %v", ids)
	}
}

// TestVisitRefused (I-070, I-072): a hub that does not let us in is asked again, with the
// credential that a reload has brought; ping tells its reason meanwhile.
func TestVisitRefused(t *testing.T) {
	t.Parallel()
	m := newMill(t)
	m.spoke()
	m.partner(m.rt, "another")
	if _, err := m.hub.Spoke(); err == nil {
		t.Fatal("the hub lets another token in")
	}
	p, _ := m.rt.Partner("mill")
	for {
		if _, err := m.g.Discover(t.Context(), p); err != nil && err.Error() == "the partner refuses the connection: [AUTHENTICATION_FAILED] another token is wanted" {
			break
		}
		if _, err := m.hub.Spoke(); err == nil {
			t.Fatal("the hub lets another token in")
		}
	}
	m.partner(m.rt, token)
	for {
		if c, err := m.hub.Spoke(); err == nil {
			read(t, c, "agent_register")
			return
		}
	}
}

// TestEnrollChanged (I-036): a hub is told of agents that a reload exposes and hides.
func TestEnrollChanged(t *testing.T) {
	t.Parallel()
	m := newMill(t)
	c := m.spoke()
	m.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "late"}, gatewaytest.Echo)
	if got := read(t, c, "agent_register"); got.Sender.ID != "late" {
		t.Errorf("got %s", got.Raw)
	}
	m.rt.Hide("acme", "hive", "late")
	if got := read(t, c, "agent_unregister"); got.Payload["agent_id"] != "late" {
		t.Errorf("got %s", got.Raw)
	}
}
