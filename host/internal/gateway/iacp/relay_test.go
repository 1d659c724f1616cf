package iacp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/gateway/state"
)

// relaying gives the realm depot the right to relay.
func relaying(o *iacp.Options) { admitRealm(o.Runtime.(*gatewaytest.Runtime), "depot", token, nil) }

// admitRealm is a realm with the ids of its own agents that may do all.
func admitRealm(rt *gatewaytest.Runtime, name, token string, options map[string]any, ids ...string) gateway.Partner {
	c := gatewaytest.Realm("acme", name)
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayRelay, gateway.MayBroadcast}
	rt.Admit(token, c)
	p := gateway.Partner{Name: name, Tenant: "acme", IDs: append(ids, name+"-*"), May: c.May, Timeout: time.Minute, Options: options}
	rt.AddPartner(p)
	return p
}

// spoke is a connection on which an agent has registered.
func (s *site) spoke(t *testing.T, token, agent string, capabilities ...string) *iacptest.Conn {
	t.Helper()
	c, err := iacptest.Dial(s.addr, token, "ack")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	exchange(t, c, iacptest.New("agent_register", agent, "", map[string]any{
		"agent_info": map[string]any{"agent_id": agent, "agent_type": "specialist", "capabilities": capabilities},
	}), "agent_register_response")
	return c
}

func acknowledge(t *testing.T, c *iacptest.Conn, m iacptest.Message) {
	t.Helper()
	if err := c.Send(m.Reply("ack", map[string]any{"message_id": m.ID}).Text()); err != nil {
		t.Fatal(err)
	}
}

// TestRelay (I-028, V-I43): a question of one spoke reaches another, whole but for its hops,
// and the answer comes back; each is acknowledged when it is kept.
func TestRelay(t *testing.T) {
	t.Parallel()
	s := newSite(t, relaying)
	from, to := s.spoke(t, token, "depot-1"), s.spoke(t, token, "depot-2")
	text := `{"message_id":"7d793037-a076-4f1c-9e07-6d0c3a0ab2f1","iacp_version":"1.0","timestamp":"2026-01-01T00:00:00Z","sender":{"agent_id":"depot-1"},` +
		`"recipient":{"agent_id":"depot-2"},"message_type":"task_request","payload":{"description":"a < b","x_own":[1,{"deep":null}]},"metadata":{"hops":1,"x_more":true},"x_top":1.50}`
	if err := from.Send([]byte(text)); err != nil {
		t.Fatal(err)
	}
	read(t, from, "ack")
	got := read(t, to, "task_request")
	for _, kept := range []string{`"a < b"`, `"x_own":[1,{"deep":null}]`, `"x_more":true`, `"x_top":1.50`, `"hops":2`, `"message_id":"7d793037-a076-4f1c-9e07-6d0c3a0ab2f1"`} {
		if !strings.Contains(got.Raw, kept) {
			t.Errorf("%s is not in %s", kept, got.Raw)
		}
	}
	acknowledge(t, to, got)
	exchange(t, to, got.Reply("task_response", map[string]any{"status": "completed", "result": 17}), "ack")
	answer := read(t, from, "task_response")
	if answer.Payload["result"] != float64(17) || answer.Parent != got.ID || answer.Sender.ID != "depot-2" {
		t.Errorf("got %s", answer.Raw)
	}
	for hops, code := range map[int]string{9: "INVALID_MESSAGE_FORMAT", 0: "AGENT_NOT_FOUND"} {
		m := iacptest.New("context_share", "depot-1", map[bool]string{true: "depot-2", false: "stranger"}[hops > 0], map[string]any{})
		m.Metadata = map[string]any{"hops": hops}
		if got := exchange(t, from, m, "error_response"); got.Payload["error_code"] != code {
			t.Errorf("%d hops: %s", hops, got.Raw)
		}
	}
}

// TestRelayAway (I-027, I-028): messages for a member that is away, or does not acknowledge, wait
// in the store and come in their order, once each, when it is there.
func TestRelayAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, relaying)
	from := s.spoke(t, token, "depot-1")
	var sent []iacptest.Message
	for n := range 150 {
		m := iacptest.New("context_share", "depot-1", "depot-2", map[string]any{"n": n})
		exchange(t, from, m, "ack")
		exchange(t, from, m, "ack") // a repeat
		sent = append(sent, m)
	}
	other := sent[0]
	other.Payload = map[string]any{"n": "other"}
	if got := exchange(t, from, other, "error_response"); !strings.Contains(got.Raw, `"conflict"`) {
		t.Errorf("other content under a used id: %s", got.Raw)
	}
	next := 0
	for _, until := range []int{70, 150} {
		to := s.spoke(t, token, "depot-2")
		for next < until {
			m := read(t, to, "context_share")
			if m.ID != sent[next].ID {
				t.Fatalf("message %d is %s, want %s", next, m.Raw, sent[next].Text())
			}
			next++
			acknowledge(t, to, m)
		}
		if until < 150 { // the next one is lost with the connection, and comes again
			if m := read(t, to, "context_share"); m.ID != sent[next].ID {
				t.Fatalf("got %s", m.Raw)
			}
		}
		_ = to.Close()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		list, err := s.rt.State().List(t.Context(), state.Key{Tenant: "acme", Gateway: "iacp", Realm: "depot", Kind: "mailbox"}, state.Key{}, 10)
		if err != nil || len(list) > 0 && time.Now().After(deadline) {
			t.Fatalf("%d messages stay, %v", len(list), err)
		}
		if len(list) == 0 {
			return
		}
	}
}

// TestRelayedAnswerTooLarge (I-023, I-028, I-040): an answer that is too long for the mailbox of its asker
// is refused, and the asker gets an error in its place. A peer that acknowledges no error goes on.
func TestRelayedAnswerTooLarge(t *testing.T) {
	t.Parallel()
	s := newSite(t, relaying, func(o *iacp.Options) { o.Ack = 3 * time.Second })
	from, to := s.spoke(t, token, "depot-1"), s.spoke(t, token, "depot-2")
	m := iacptest.New("task_request", "depot-1", "depot-2", map[string]any{"description": "how many?"})
	exchange(t, from, m, "ack")
	question := read(t, to, "task_request")
	if err := to.Send(question.Reply("ack", map[string]any{"message_id": question.ID}).Text()); err != nil {
		t.Fatal(err)
	}
	long := question.Reply("task_response", map[string]any{"status": "completed", "result": strings.Repeat("7", state.MaxValue)})
	if got := exchange(t, to, long, "error_response"); got.Parent != long.ID || !strings.Contains(got.Raw, "too_large") {
		t.Errorf("the answerer gets %s", got.Raw)
	}
	if got := readSilently(t, from, "error_response"); got.Parent != m.ID || got.Sender.ID != "depot-2" || got.Recipient.ID != "depot-1" || !strings.Contains(got.Raw, "too_large") {
		t.Errorf("the asker gets %s", got.Raw)
	}
	again := iacptest.New("context_share", "depot-2", "depot-1", map[string]any{})
	exchange(t, to, again, "ack")
	if got := read(t, from, "context_share"); got.ID != again.ID {
		t.Errorf("then the asker gets %s", got.Raw)
	}
}

// TestRelayTooLarge (I-028): a message that is too long for a mailbox is refused with its size
// and the limit, and the next one goes its way.
func TestRelayTooLarge(t *testing.T) {
	t.Parallel()
	s := newSite(t, relaying)
	from, to := s.spoke(t, token, "depot-1"), s.spoke(t, token, "depot-2")
	large := iacptest.New("context_share", "depot-1", "depot-2", map[string]any{"data": strings.Repeat("x", state.MaxValue)})
	if got := exchange(t, from, large, "error_response"); got.Parent != large.ID || !strings.Contains(got.Raw, "too_large") || !strings.Contains(got.Raw, "at most 262144 bytes, and this one has 262") {
		t.Errorf("got %s", got.Raw)
	}
	small := iacptest.New("context_share", "depot-1", "depot-2", map[string]any{})
	exchange(t, from, small, "ack")
	if got := read(t, to, "context_share"); got.ID != small.ID {
		t.Errorf("got %.300s", got.Raw)
	}
}

// failing is a store that fails to remove a record, once.
type failing struct {
	state.Store
	failed atomic.Bool
}

// Delete implements [state.Store].
func (f *failing) Delete(ctx context.Context, k state.Key, version int64) error {
	if !f.failed.Swap(true) {
		return errors.New("the disk is full")
	}
	return f.Store.Delete(ctx, k, version)
}

// stored is a runtime with another store.
type stored struct {
	gateway.Runtime
	store state.Store
}

func (s stored) State() state.Store { return s.store }

// TestRelayStoreFails (I-027): a message that a failing store could not remove comes again under
// its id, and those behind it come too, without another message or connection.
func TestRelayStoreFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, relaying, func(o *iacp.Options) {
		o.FirstPause = time.Millisecond
		o.Runtime = stored{o.Runtime, &failing{Store: o.Runtime.State()}}
	})
	from := s.spoke(t, token, "depot-1")
	var ids []string
	for n := range 3 {
		m := iacptest.New("context_share", "depot-1", "depot-2", map[string]any{"n": n})
		exchange(t, from, m, "ack")
		ids = append(ids, m.ID)
	}
	to := s.spoke(t, token, "depot-2")
	for _, want := range append(ids[:1:1], ids...) {
		m := read(t, to, "context_share")
		if m.ID != want {
			t.Errorf("got %s, want %s", m.Raw, want)
		}
		acknowledge(t, to, m)
	}
}

// TestGroups (I-021, I-022, I-037, V-I25, V-I26, V-I28): a broadcast reaches all agents but its
// sender, a group those with its capabilities, a list those that it names; discovery has the
// members that have registered.
func TestGroups(t *testing.T) {
	t.Parallel()
	s := newSite(t, relaying)
	from := s.spoke(t, token, "depot-1", "lift")
	members := map[string]*iacptest.Conn{"depot-2": s.spoke(t, token, "depot-2", "lift", "weigh"), "depot-3": s.spoke(t, token, "depot-3", "weigh")}
	for name, c := range map[string]struct {
		to   string
		want []string
	}{
		"all":              {`{"broadcast":true}`, []string{"depot-2", "depot-3"}},
		"a capability":     {`{"group":{"capabilities":["weigh"]}}`, []string{"depot-2", "depot-3"}},
		"two capabilities": {`{"group":{"capabilities":["weigh","lift"]}}`, []string{"depot-2"}},
		"any of two":       {`{"group":{"capabilities":["lift","paint"],"match":"any"}}`, []string{"depot-2"}},
		"a type":           {`{"group":{"agent_types":["specialist"]}}`, []string{"depot-2", "depot-3"}},
		"a list":           {`{"agent_ids":["depot-3","depot-2"]}`, []string{"depot-2", "depot-3"}},
	} {
		m := iacptest.New("event_notification", "depot-1", "", map[string]any{"event_type": name, "event_data": map[string]any{}})
		if err := from.Send([]byte(strings.Replace(string(m.Text()), `"message_type"`, `"recipient":`+c.to+`,"message_type"`, 1))); err != nil {
			t.Fatal(err)
		}
		read(t, from, "ack")
		for _, id := range c.want {
			got := read(t, members[id], "event_notification")
			if got.ID != m.ID || got.Payload["event_type"] != name {
				t.Errorf("%s: %s got %s", name, id, got.Raw)
			}
			acknowledge(t, members[id], got)
		}
	}
	for member, load := range map[string]float64{"depot-2": 0.9, "depot-3": 0.2} {
		exchange(t, members[member], iacptest.New("heartbeat", member, "", map[string]any{"load": load}), "heartbeat_ack")
	}
	busy := exchange(t, from, iacptest.New("agent_discover", "depot-1", "", map[string]any{"discovery_type": "all", "criteria": map[string]any{"load_threshold": 0.5}}), "agent_discover_response")
	if strings.Contains(busy.Raw, "depot-2") || !strings.Contains(busy.Raw, "depot-3") {
		t.Errorf("less than 0.5: %s", busy.Raw)
	}
	question := iacptest.New("task_request", "depot-1", "", map[string]any{"description": "weigh"})
	if err := from.Send([]byte(strings.Replace(string(question.Text()), `"message_type"`, `"recipient":{"group":{"capabilities":["weigh"]}},"message_type"`, 1))); err != nil {
		t.Fatal(err)
	}
	read(t, from, "ack")
	acknowledge(t, members["depot-3"], read(t, members["depot-3"], "task_request"))
	unknown := iacptest.New("event_notification", "depot-1", "", map[string]any{})
	if err := from.Send([]byte(strings.Replace(string(unknown.Text()), `"message_type"`, `"recipient":{"agent_ids":["depot-2","none"]},"message_type"`, 1))); err != nil {
		t.Fatal(err)
	}
	if got := read(t, from, "error_response"); got.Payload["error_code"] != "AGENT_NOT_FOUND" || !strings.Contains(got.Raw, "none") {
		t.Errorf("got %s", got.Raw)
	}
	checkDiscovered(t, from)
}

// checkDiscovered counts what a member of TestGroups finds.
func checkDiscovered(t *testing.T, from *iacptest.Conn) {
	t.Helper()
	for criteria, want := range map[string]float64{
		`{"discovery_type":"all"}`: 4, `{"discovery_type":"by_capability","criteria":{"capabilities":["weigh"]}}`: 2,
		`{"discovery_type":"by_type","criteria":{"agent_type":"generalist"}}`: 0, `{"discovery_type":"all","criteria":{"load_threshold":0.5},"response_format":"detailed"}`: 3,
	} {
		m := iacptest.New("agent_discover", "depot-1", "", nil)
		if err := from.Send([]byte(strings.Replace(string(m.Text()), `"payload":null`, `"payload":`+criteria, 1))); err != nil {
			t.Fatal(err)
		}
		if got := read(t, from, "agent_discover_response"); got.Payload["total"] != want {
			t.Errorf("%s: %s", criteria, got.Raw)
		}
	}
}

// TestLeastLoaded (I-076, D-I13, V-I40): a question to a group goes to one agent, and those with one
// load take turns.
func TestLeastLoaded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for n := range 3 {
		name := fmt.Sprint("scale-", n)
		s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: name, Capabilities: []gateway.Capability{{ID: "weigh"}}},
			func(context.Context, *gatewaytest.Turn) gateway.Answer {
				return gateway.Answer{Body: name}
			})
	}
	c := s.dial(t)
	answers := map[any]int{}
	for range 60 {
		m := iacptest.New("task_request", "depot-1", "", map[string]any{"description": "weigh"})
		if err := c.Send([]byte(strings.Replace(string(m.Text()), `"message_type"`, `"recipient":{"group":{"capabilities":["weigh"]}},"message_type"`, 1))); err != nil {
			t.Fatal(err)
		}
		answers[read(t, c, "task_response").Payload["result"]]++
	}
	for name, n := range answers {
		if n < 16 || n > 24 || len(answers) != 3 {
			t.Errorf("%v has %d of 60 among %v", name, n, answers)
		}
	}
}

// TestTwoHubs (I-028, V-I43): a hub that calls another registers its spokes there: spokes of the
// two reach each other, and an agent that neither hub has is told to be unknown.
func TestTwoHubs(t *testing.T) {
	t.Parallel()
	const eastToken, westToken = "token-of-the-east", "token-of-the-west"
	hub := map[string]any{"hub": true}
	west := newSite(t, func(o *iacp.Options) {
		rt := o.Runtime.(*gatewaytest.Runtime)
		partners := []gateway.Partner{admitRealm(rt, "spokes", westToken, nil, "west-*"), admitRealm(rt, "east", eastToken, hub)}
		o.Network, o.Partners = "west", func() []gateway.Partner { return partners }
	})
	east := newSite(t, func(o *iacp.Options) {
		rt := o.Runtime.(*gatewaytest.Runtime)
		partners := []gateway.Partner{admitRealm(rt, "spokes", eastToken, nil, "east-*"), admitRealm(rt, "west", westToken, hub)}
		partners[1].URL = "iacp://" + west.addr
		partners[1].Dialer = &gateway.Dialer{
			Dial:  func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", west.addr) },
			Token: func() string { return eastToken }, APIKey: func() string { return "" },
		}
		rt.AddPartner(partners[1])
		o.Network, o.Partners = "east", func() []gateway.Partner { return partners }
	})
	spokes := map[string]*iacptest.Conn{}
	for _, name := range []string{"1", "2"} {
		spokes["east-"+name], spokes["west-"+name] = east.spoke(t, eastToken, "east-"+name), west.spoke(t, westToken, "west-"+name)
	}
	for _, way := range [][2]string{{"east-1", "west-2"}, {"west-1", "east-2"}, {"east-1", "east-2"}} {
		from, to := spokes[way[0]], spokes[way[1]]
		m := iacptest.New("task_request", way[0], way[1], map[string]any{"description": "hello"})
		exchange(t, from, m, "ack")
		got := read(t, to, "task_request")
		acknowledge(t, to, got)
		exchange(t, to, got.Reply("task_response", map[string]any{"status": "completed", "result": "from " + way[1]}), "ack")
		answer := read(t, from, "task_response")
		if got.ID != m.ID || answer.Payload["result"] != "from "+way[1] || answer.Parent != m.ID {
			t.Errorf("%v: %s, %s", way, got.Raw, answer.Raw)
		}
	}
	lost := iacptest.New("task_request", "east-1", "west-9", map[string]any{"description": "hello"})
	exchange(t, spokes["east-1"], lost, "ack") // its hub cannot know, and the other keeps it
	far := iacptest.New("task_request", "east-1", "nowhere", map[string]any{"description": "hello"})
	if got := exchange(t, spokes["east-1"], far, "error_response"); got.Payload["error_code"] != "AGENT_NOT_FOUND" {
		t.Errorf("got %s", got.Raw)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		found := exchange(t, spokes["west-1"], iacptest.New("agent_discover", "west-1", "", map[string]any{"discovery_type": "all"}), "agent_discover_response")
		if strings.Contains(found.Raw, `"east-1"`) && strings.Contains(found.Raw, `"east-2"`) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the spokes of the other hub are not found: %s", found.Raw)
		}
	}
}
