package iacp_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

const token = "token-of-depot"

// site is a gateway on a runtime in memory, with the partner depot.
type site struct {
	rt   *gatewaytest.Runtime
	g    *iacp.Gateway
	addr string
}

func newSite(t *testing.T, change ...func(*iacp.Options)) *site {
	t.Helper()
	s := &site{rt: gatewaytest.New()}
	t.Cleanup(s.rt.Close)
	may := gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayTools}
	c := gatewaytest.Realm("acme", "depot")
	c.May = may
	s.rt.Admit(token, c)
	s.rt.AddPartner(gateway.Partner{Name: "depot", Tenant: "acme", IDs: []string{"depot-*"}, May: may, Timeout: time.Minute})
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "echo", Capabilities: []gateway.Capability{{ID: "repeat"}}}, gatewaytest.Echo)
	o := iacp.Options{
		Runtime: s.rt, Network: "hive",
		Listen: func(ctx context.Context) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		},
		Serve: func(w http.ResponseWriter, r *http.Request) {
			gatewaytest.Listener(s.rt, s.g.Mounts()).ServeHTTP(w, r)
		},
	}
	for _, f := range change {
		f(&o)
	}
	s.g = iacp.New(o)
	if err := s.g.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.g.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s.addr, _, _ = strings.Cut(strings.TrimPrefix(s.g.Health().Detail, "listens on "), ";")
	return s
}

func (s *site) dial(t *testing.T, features ...string) *iacptest.Conn {
	t.Helper()
	c, err := iacptest.Dial(s.addr, token, features...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// raw connects without a word.
func (s *site) raw(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// exchange sends a message and reads one of a type.
func exchange(t *testing.T, c *iacptest.Conn, m iacptest.Message, kind string) iacptest.Message {
	t.Helper()
	if err := c.Send(m.Text()); err != nil {
		t.Fatal(err)
	}
	return read(t, c, kind)
}

// read reads a message of a type, and acknowledges it if it is an answer.
func read(t *testing.T, c *iacptest.Conn, kind string) iacptest.Message {
	t.Helper()
	got := readSilently(t, c, kind)
	if kind == "task_response" || kind == "tool_response" {
		_ = c.Send(got.Reply("ack", map[string]any{"message_id": got.ID}).Text()) // the peer may have gone
	}
	return got
}

func readSilently(t *testing.T, c *iacptest.Conn, kind string) iacptest.Message {
	t.Helper()
	got, err := c.Read()
	if err != nil || got.Type != kind {
		t.Fatalf("got %s, %v; want a %s", got.Raw, err, kind)
	}
	return got
}

func task(text string) iacptest.Message {
	return iacptest.New("task_request", "depot-1", "echo", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"body": text}})
}

// TestConversation (I-026, I-036, I-037, I-041, I-054, I-059): over one connection a peer
// registers, finds agents, asks, and sees each message acknowledged before its answer.
func TestConversation(t *testing.T) {
	t.Parallel()
	c := newSite(t).dial(t, "ack", "progress", "unknown")
	exchange(t, c, iacptest.New("agent_register", "depot-1", "", map[string]any{"agent_info": map[string]any{"agent_id": "depot-1"}}), "agent_register_response")
	for capability, want := range map[string]float64{"repeat": 1, "sing": 0} {
		found := exchange(t, c, iacptest.New("agent_discover", "depot-1", "", map[string]any{"discovery_type": "by_capability", "criteria": map[string]any{"capabilities": []string{capability}}}), "agent_discover_response")
		if found.Payload["total"] != want {
			t.Errorf("%s: %s", capability, found.Raw)
		}
	}
	m := task("hello")
	if got := exchange(t, c, m, "ack"); got.Parent != m.ID {
		t.Errorf("got %s", got.Raw)
	}
	if got := read(t, c, "task_response"); got.Payload["status"] != "accepted" {
		t.Errorf("got %s", got.Raw)
	}
	if got := read(t, c, "task_response"); got.Payload["status"] != "completed" || got.Parent != m.ID || got.Recipient.ID != "depot-1" {
		t.Errorf("got %s", got.Raw)
	}
	exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack")
}

// exposeTool exposes an agent with an action, which answers with what it got.
func (s *site) exposeTool() {
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "tools", Capabilities: []gateway.Capability{{ID: "add", Action: true}}}, gatewaytest.Echo)
}

// TestTyped (I-034, I-035): what is more than a text reaches its agent whole, and a tool is
// answered by a tool_response.
func TestTyped(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exposeTool()
	c := s.dial(t)
	m := iacptest.New("tool_request", "depot-1", "tools", map[string]any{"tool_name": "add", "parameters": map[string]any{"a": 1}, "own": "octarine"})
	got := exchange(t, c, m, "tool_response")
	raw, err := json.Marshal(got.Payload["output"])
	if err != nil || got.Payload["status"] != "success" || !strings.Contains(string(raw), "octarine") || !strings.Contains(string(raw), "tool_request") {
		t.Errorf("got %s, %v", got.Raw, err)
	}
}

// TestFeatures (I-053, I-078): a handshake agrees on a version of the major one, and on the features that
// both have; it has the limits of the host and that a credential is needed.
func TestFeatures(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, c := range map[string]struct {
		versions, features, want []string
	}{
		"none":            {[]string{"1.0"}, nil, []string{}},
		"all of ours":     {[]string{"1.0"}, []string{"progress", "ack"}, []string{"ack", "progress"}},
		"one of ours":     {[]string{"2.0", "1.7"}, []string{"later", "ack"}, []string{"ack"}},
		"of another host": {[]string{"1.1"}, []string{"later"}, []string{}},
	} {
		got := exchange(t, iacptest.Begun(s.raw(t)), iacptest.New("handshake", "depot-1", "", map[string]any{"versions": c.versions, "features": c.features}), "handshake_ack")
		if fmt.Sprint(got.Payload["features"]) != fmt.Sprint(c.want) || got.Payload["version"] != "1.0" || got.Payload["auth_required"] != true || got.Payload["max_nesting"] != 10.0 {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
}

// TestRefused (I-053, I-060, I-070, I-071, V-I07, V-I11, V-I12): what is no message is refused and
// the connection goes on, until there were ten in a minute; a peer without a handshake shows
// its token in its first message.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if _, err := iacptest.Dial(s.addr, "another token"); err == nil || !strings.Contains(err.Error(), "AUTHENTICATION_FAILED") {
		t.Errorf("another token: %v", err)
	}
	if got := exchange(t, iacptest.Begun(s.raw(t)), iacptest.New("handshake", "depot-1", "", map[string]any{"versions": []string{"2.0"}}), "error_response"); got.Payload["error_code"] != "UNSUPPORTED_VERSION" || got.Payload["retry_allowed"] != false {
		t.Errorf("got %s", got.Raw)
	}
	m := task("hello")
	m.Metadata = map[string]any{"auth": map[string]any{"token": token}, "ack": true}
	plain := iacptest.Begun(s.raw(t))
	exchange(t, plain, m, "ack")
	read(t, plain, "task_response")
	c := s.dial(t)
	for n := range 10 {
		if err := c.Send([]byte(`{"iacp_version":"1.0"}`)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c, "error_response"); got.Payload["retry_allowed"] != false {
			t.Errorf("%d: %s", n, got.Raw)
		}
	}
	if got, err := c.Read(); err == nil {
		t.Errorf("after ten: %s", got.Raw)
	}
}

// TestOtherProtocols (I-062, I-063, V-I06, V-I10): HTTP on the port is told that the host
// serves, and a length beyond every limit ends the connection with its reason.
func TestOtherProtocols(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	resp, err := http.Get("http://" + s.addr + "/health")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()
	raw := s.raw(t)
	if _, err := raw.Write(binary.BigEndian.AppendUint32(nil, 1<<32-1)); err != nil {
		t.Fatal(err)
	}
	c := iacptest.Begun(raw)
	if got := read(t, c, "error_response"); got.Payload["error_code"] != "INVALID_MESSAGE_FORMAT" {
		t.Errorf("got %s", got.Raw)
	}
}

// TestRevoked (V-I13): a connection ends with its token.
func TestRevoked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dial(t)
	s.rt.Revoke(token)
	if got, err := c.Read(); err == nil {
		t.Errorf("got %s", got.Raw)
	}
}

// delivery is a question of our agent.
func delivery(id string) swarm.Delivery {
	return swarm.Delivery{Conversation: uuid.NewString(), Wrapper: mail.Interswarm{
		MessageID: id, SourceSwarm: "hive", Type: mail.Request, Timestamp: mail.FormatTime(time.Now()),
		Payload: mail.Payload{
			TaskID: "t", ID: "r", Subject: "s", Body: "how many?", Sender: mail.Address{Type: mail.Agent, Name: "echo"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: "depot-1@depot"}},
		},
	}}
}

// TestAway (I-057, I-061, V-I15, V-I23): without a connection nothing is sent; a question
// whose connection is lost before its answer has the same id on the next one.
func TestAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p, _ := s.rt.Partner("depot")
	d := delivery(uuid.NewString())
	if got := s.g.Carry(t.Context(), p, d); got.State != gateway.Later {
		t.Fatalf("without a connection: %+v", got)
	}
	var first iacptest.Message
	for n := range 2 {
		c := s.dial(t, "ack")
		carried := make(chan gateway.Carried, 1)
		go func() { carried <- s.g.Carry(t.Context(), p, d) }()
		m := read(t, c, "task_request")
		if n == 0 {
			first = m
			_ = c.Close()
			if got := <-carried; got.State != gateway.Unanswered {
				t.Fatalf("the connection is lost: %+v", got)
			}
			continue
		}
		if m.ID != first.ID || m.Raw != first.Raw {
			t.Errorf("again %s, not %s", m.Raw, first.Raw)
		}
		busy := m.Reply("error_response", map[string]any{"error_code": "TIMEOUT", "error_message": "later", "retry_allowed": true})
		if err := c.Send(busy.Text()); err != nil {
			t.Fatal(err)
		}
		if got := <-carried; got.State != gateway.Later {
			t.Errorf("a peer that is busy: %+v", got)
		}
	}
}

// TestIdle (I-055): a peer that has sent nothing for too long, not even heartbeats, is told
// why its connection ends.
func TestIdle(t *testing.T) {
	t.Parallel()
	c := newSite(t, func(o *iacp.Options) { o.Heartbeat, o.Idle = time.Hour, 50*time.Millisecond }).dial(t)
	if got := read(t, c, "connection_close"); got.Payload["reason"] != "nothing came for 50ms" {
		t.Errorf("got %s", got.Raw)
	}
	if _, err := c.Read(); err != io.EOF {
		t.Errorf("then %v", err)
	}
}

// TestLeaves (I-058, V-I16): a host that stops tells its peers.
func TestLeaves(t *testing.T) {
	t.Parallel()
	var c *iacptest.Conn
	t.Run("site", func(t *testing.T) {
		raw, err := iacptest.Dial(newSite(t).addr, token)
		if err != nil {
			t.Fatal(err)
		}
		c = raw
	})
	read(t, c, "connection_close")
	if _, err := c.Read(); err != io.EOF {
		t.Errorf("then %v", err)
	}
}
