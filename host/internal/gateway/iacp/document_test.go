package iacp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
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

// tokenOfAcme is of a partner with all rights, whose agents may have any id.
const tokenOfAcme = "token-of-acme"

// dialAsAcme connects as acme. The one exposed agent is the one that the document's
// examples name.
func (s *site) dialAsAcme(t *testing.T, features ...string) *iacptest.Conn {
	t.Helper()
	may := gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayTools, gateway.MayWorkflows, gateway.MayBroadcast}
	c := gatewaytest.Realm("acme", "acme")
	c.May = may
	s.rt.Admit(tokenOfAcme, c)
	s.rt.AddPartner(gateway.Partner{Name: "acme", Tenant: "acme", IDs: []string{"*"}, May: may})
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "nlp-agent-01", Capabilities: []gateway.Capability{{ID: "nlp"}, {ID: "repeat", Action: true}}}, gatewaytest.Echo)
	s.rt.Hide("acme", "hive", "echo") // the runtime in memory has one recipient a message
	conn, err := iacptest.Dial(s.addr, tokenOfAcme, features...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestDocumentExamples (V-I17, I-001, I-025, I-030 to I-040): each block
// of JSON that the document prints is taken over a connection in the default profile, with
// its placeholders filled by each word that it lists, and is answered as its type wants. One
// that answers a message is acknowledged, though nothing waits for it.
func TestDocumentExamples(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../../spec/gateways/iacp/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct {
		Lines, Answer string
		Message       json.RawMessage
	}
	if err := json.Unmarshal(raw, &examples); err != nil || len(examples) == 0 {
		t.Fatalf("%d examples: %v", len(examples), err)
	}
	c := newSite(t).dialAsAcme(t, "ack")
	for _, x := range examples {
		if err := c.Send(x.Message); err != nil {
			t.Fatal(err)
		}
		var m iacptest.Message
		if err := json.Unmarshal(x.Message, &m); err != nil {
			t.Fatal(err)
		}
		wanted := []string{"ack", x.Answer}
		if x.Answer == "" {
			wanted = wanted[:1]
		} else if m.Type == "agent_register" || m.Type == "agent_discover" {
			wanted = wanted[1:]
		}
		for _, want := range wanted {
			got, err := c.Read()
			if err != nil || got.Type != want || got.Parent != m.ID {
				t.Fatalf("%s: %s is answered by %s, %v; want a %s", x.Lines, x.Message, got.Raw, err, want)
			}
			if want != "ack" {
				acknowledge(t, c, got)
			}
		}
	}
}

// TestRecipients (I-022, V-I26, D-I5, D-I6): a message goes to the agent that it
// names, to all, or to those with capabilities; a question to a group has one answer. Where
// there is none, its sender is told which, and may try again.
func TestRecipients(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dialAsAcme(t, "ack")
	for name, k := range map[string]struct {
		kind, to, requires string
		answers            []string
	}{
		"all":                {"event_notification", `{"broadcast":true}`, "false", []string{"ack"}},
		"a question to all":  {"task_request", `{"broadcast":true}`, "true", []string{"error_response"}},
		"all capabilities":   {"task_request", `{"group":{"capabilities":["nlp","repeat"]}}`, "true", []string{"ack", "task_response"}},
		"any capability":     {"task_request", `{"group":{"capabilities":["sing","repeat"],"match":"any"}}`, "true", []string{"ack", "task_response"}},
		"a missing one":      {"task_request", `{"group":{"capabilities":["sing","repeat"]}}`, "true", []string{"error_response"}},
		"an agent elsewhere": {"task_request", `{"agent_id":"nlp-agent-01@other"}`, "true", []string{"error_response"}},
		"an agent of ours":   {"task_request", `{"agent_id":"nlp-agent-01@hive"}`, "true", []string{"ack", "task_response"}},
		"without an answer":  {"task_request", `{"agent_id":"nlp-agent-01"}`, "false", []string{"ack"}},
	} {
		id := uuid.NewString()
		text := fmt.Sprintf(`{"iacp_version":"1.0","message_id":%q,"timestamp":"2025-09-21T10:30:00Z","sender":{"agent_id":"a"},"recipient":%s,"message_type":%q,"payload":{},"metadata":{"requires_response":%s}}`, id, k.to, k.kind, k.requires)
		if err := c.Send([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for _, want := range k.answers {
			if got := read(t, c, want); got.Parent != id || want == "error_response" && strings.Contains(name, "missing") && (got.Payload["retry_allowed"] != true || !strings.Contains(got.Raw, "sing")) {
				t.Errorf("%s: %s", name, got.Raw)
			}
		}
	}
}

// TestLifecycle (I-003, I-008, I-010, I-071, V-I20, V-I24, V-I41): what is expired is not
// delivered, what an agent of another partner would send is refused, a repeat has the answer
// of the first, and each stage of a message can be asked for. Acknowledgements and
// error_responses get no answer, and each message has its line in the log.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dial(t, "ack")
	late := task("late")
	late.Metadata = map[string]any{"expires_at": "2025-09-21T10:30:00Z"}
	if got := exchange(t, c, late, "error_response"); got.Payload["error_code"] != "TIMEOUT" || got.Payload["retry_allowed"] != false {
		t.Errorf("an expired message: %s", got.Raw)
	}
	forged := task("forged")
	forged.Sender.ID = "other-1"
	if got := exchange(t, c, forged, "error_response"); got.Payload["error_code"] != "PERMISSION_DENIED" {
		t.Errorf("a forged sender: %s", got.Raw)
	}
	fresh := task("hello")
	fresh.Metadata = map[string]any{"expires_at": "2099-09-21T10:30:00Z"}
	exchange(t, c, fresh, "ack")
	first := read(t, c, "task_response")
	exchange(t, c, fresh, "ack")
	if again := read(t, c, "task_response"); again.ID != first.ID || again.Payload["result"] != "hello" {
		t.Errorf("a repeat has %s, not %s", again.Raw, first.Raw)
	}
	for _, kind := range []string{"ack", "error_response"} {
		stray := iacptest.New(kind, "depot-1", "echo", map[string]any{"error_code": "TIMEOUT"})
		stray.Parent = uuid.NewString()
		if err := c.Send(stray.Text()); err != nil {
			t.Fatal(err)
		}
		if kind == "error_response" {
			read(t, c, "ack") // it came; nothing else is said about it
		}
	}
	asked := iacptest.New("message_status", "depot-1", "", map[string]any{"message_id": fresh.ID})
	if got := exchange(t, c, asked, "task_response"); got.ID != first.ID {
		t.Errorf("the status is %s", got.Raw)
	}
	verdicts := map[string]int{}
	for _, e := range s.rt.Events() {
		verdicts[e.Verdict]++
	}
	if want := map[string]int{"accepted": 1, "duplicate": 1, "refused": 3}; fmt.Sprint(verdicts) != fmt.Sprint(want) {
		t.Errorf("the log has %v, want %v", verdicts, want)
	}
}

// TestTrafficKeeps (I-056, V-I14): traffic of any kind keeps a connection, also when
// no heartbeat comes.
func TestTrafficKeeps(t *testing.T) {
	t.Parallel()
	const idle = 5 * time.Second // a busy machine can stand still for a while
	c := newSite(t, func(o *iacp.Options) { o.Heartbeat, o.Idle = time.Hour, idle }).dial(t)
	for began := time.Now(); time.Since(began) < idle+idle/2; time.Sleep(idle / 10) {
		exchange(t, c, task("hello"), "task_response")
	}
}

// TestResponseTimeout (I-004, V-I21, D-I8): who waits no longer than response_timeout is
// told so, and the work ends.
func TestResponseTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ended := make(chan struct{})
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "echo"}, func(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
		<-ctx.Done()
		close(ended)
		return gateway.Answer{Outcome: gateway.Cancelled}
	})
	m := task("hello")
	m.Metadata = map[string]any{"response_timeout": 0.05}
	if got := exchange(t, s.dial(t), m, "error_response"); got.Payload["error_code"] != "TIMEOUT" || got.Payload["retry_allowed"] != true || got.Parent != m.ID {
		t.Errorf("got %s", got.Raw)
	}
	<-ended
}

// TestProgress (I-031, V-I30): with the feature a task is accepted, shows how far it is, and
// is completed, in this order; without it there is only the end.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "echo"}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		turn.Progress("a third", 0.3)
		turn.Progress("more", 0.7)
		return gateway.Answer{Body: "all"}
	})
	for _, c := range []struct {
		features []string
		want     []string
	}{
		{[]string{"progress"}, []string{"accepted <nil>", "in_progress 0.3", "in_progress 0.7", "completed <nil>"}},
		{nil, []string{"completed <nil>"}},
	} {
		conn := s.dial(t, c.features...)
		if err := conn.Send(task("hello").Text()); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			got := read(t, conn, "task_response")
			if is := fmt.Sprint(got.Payload["status"], " ", got.Payload["progress"]); is != want {
				t.Errorf("%v: %s, want %s", c.features, is, want)
			}
		}
	}
}

// TestDiscover (I-037, V-I28): agents are found by what they can do and by their type, as a
// summary or in detail.
func TestDiscover(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.rt.Expose("acme", gateway.ExposedAgent{
		Swarm: "hive", Name: "boss", Entrypoint: true, Version: "1.2.0", Description: "leads", Capabilities: []gateway.Capability{{ID: "repeat"}, {ID: "lead"}},
	}, gatewaytest.Echo)
	c := s.dial(t)
	for payload, want := range map[string]string{
		`{"discovery_type":"all"}`:                                                                      "boss:generalist: echo:specialist:",
		`{"discovery_type":"all","response_format":"detailed"}`:                                         "boss:generalist:1.2.0 echo:specialist:",
		`{"discovery_type":"by_capability","criteria":{"capabilities":["repeat","lead"]}}`:              "boss:generalist:",
		`{"discovery_type":"by_capability","criteria":{"capabilities":["repeat"]}}`:                     "boss:generalist: echo:specialist:",
		`{"discovery_type":"by_type","criteria":{"agent_type":"specialist","capabilities":["ignore"]}}`: "echo:specialist:",
		`{"discovery_type":"by_type","criteria":{"agent_type":"coordinator"}}`:                          "",
	} {
		var given map[string]any
		if err := json.Unmarshal([]byte(payload), &given); err != nil {
			t.Fatal(err)
		}
		answer := exchange(t, c, iacptest.New("agent_discover", "depot-1", "", given), "agent_discover_response")
		list, _ := answer.Payload["agents"].([]any)
		var got []string
		for _, entry := range list {
			a, _ := entry.(map[string]any)
			version, _ := a["version"].(string)
			got = append(got, fmt.Sprint(a["agent_id"], ":", a["agent_type"], ":", version))
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s finds %v, want %s", payload, got, want)
		}
	}
}

// TestUnacknowledged (I-026, I-027, V-I23): a message that is not acknowledged in time is
// sent again under its id.
func TestUnacknowledged(t *testing.T) {
	t.Parallel()
	d := delivery(uuid.NewString())
	var first iacptest.Message
	for n, wait := range []time.Duration{50 * time.Millisecond, time.Minute} {
		s := newSite(t, func(o *iacp.Options) { o.Ack = wait })
		p, _ := s.rt.Partner("depot")
		c := s.dial(t, "ack")
		carried := make(chan gateway.Carried, 1)
		go func() { carried <- s.g.Carry(t.Context(), p, d) }()
		m := read(t, c, "task_request")
		if n == 0 {
			first = m
			if got := <-carried; got.State != gateway.Unanswered || !strings.Contains(got.Reason, "no acknowledgement within 0.05 s") {
				t.Errorf("without an acknowledgement: %+v", got)
			}
			continue
		}
		if m.ID != first.ID {
			t.Errorf("again %s, not %s", m.ID, first.ID)
		}
		for _, reply := range []iacptest.Message{m.Reply("ack", map[string]any{}), m.Reply("task_response", map[string]any{"status": "completed", "result": 7})} {
			if err := c.Send(reply.Text()); err != nil {
				t.Fatal(err)
			}
		}
		if got := <-carried; got.State != gateway.Taken {
			t.Errorf("with its answer: %+v", got)
		}
	}
}

// TestUnknownAgent (I-070, I-071): a refusal names the agent that there is not, the nearest one
// that its sender may see, and allows no retry.
func TestUnknownAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.rt.Expose("other", gateway.ExposedAgent{Swarm: "hive", Name: "echos"}, gatewaytest.Echo)
	c := s.dial(t)
	for name, want := range map[string]string{
		"eco":       `there is no agent "eco": the message went to none; did you mean "echo"?`,
		"echo@hiwe": `there is no agent "echo@hiwe": the message went to none; did you mean "echo@hive"?`,
		"echos":     `there is no agent "echos": the message went to none; did you mean "echo"?`,
		"painter":   `there is no agent "painter": the message went to none`,
	} {
		got := exchange(t, c, iacptest.New("task_request", "depot-1", name, map[string]any{}), "error_response")
		if got.Payload["error_code"] != "AGENT_NOT_FOUND" || got.Payload["error_message"] != want || got.Payload["retry_allowed"] != false {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
}
