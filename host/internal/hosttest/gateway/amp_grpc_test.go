package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"skep/host/client"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/spec/gateways/amp/amppb"
)

const acmeToken = "the-token-of-acme-at-hive"

// overAMP is a swarm that is served over AMP, with more tables.
func overAMP(name, more string) string {
	return strings.Replace(file(name, more), `"a2a"]`, `"a2a", "amp"]`, 1)
}

// TestAMPGRPCurl (M-097, M-098, V-M35): grpcurl learns the services by reflection, with a credential. It
// asks an agent by a message in members and by the text alone, tells by Emit, and has both ways in a
// call of Connect; what is refused has its status, the document's code and the error message.
func TestAMPGRPCurl(t *testing.T) {
	t.Parallel()
	program := hosttest.SystemProgram(t, filepath.Join(guests.Root(), "bin/uampclients/grpcurl"))
	s := hosttest.NewSite(t, overAMP("hive", `[gateways.amp]
max_body = "64KiB"
[gateways.amp.partners.acme]
ids = ["agent-*"]
may = ["ask", "tell"]
[[auth.keys]]
id = "acme"
role = "agent"
key = "`+acmeToken+`"
`))
	call := func(token, message string, method ...string) (string, error) {
		t.Helper()
		args := []string{"-plaintext", "-max-time", "60", "-d", "@"}
		if token != "" {
			args = append(args, withBearer(token)...)
		}
		if token == "" || token == "another" { // no reflection
			args = append(args, "-import-path", filepath.Join(guests.Root(), "spec/gateways/amp/amppb"), "-proto", "amp.proto")
		}
		cmd := exec.CommandContext(t.Context(), program, append(append(args, strings.TrimPrefix(s.URL(), "http://")), method...)...)
		cmd.Stdin = strings.NewReader(message)
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	for _, c := range []struct {
		method []string
		want   string
	}{
		{[]string{"list"}, "aip.v1.AgentMesh\namp.v1.AgentMesh\ngrpc.health.v1.Health\n"},
		{[]string{"describe", "aip.v1.AgentMesh"}, "rpc Connect ( stream .amp.v1.Message ) returns ( stream .amp.v1.Message );"},
		{[]string{"describe", "amp.v1.Message"}, "bytes raw_json = 1;"},
		{[]string{"grpc.health.v1.Health/Check"}, `"status": "SERVING"`},
	} {
		if text, err := call(acmeToken, "", c.method...); err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%v: %v: %s", c.method, err, text)
		}
	}
	text, err := call(acmeToken, `{"id":"m-1","type":"request","source":{"agent_id":"agent-1"},"destination":{"agent_id":"boss"},"payload":{"capability":"mail.message","parameters":{"body":"in members"}}}`, "aip.v1.AgentMesh/Invoke")
	var reply struct {
		Protocol string
		Headers  struct{ CorrelationID string }
		Payload  struct {
			Status string
			Result map[string]string
		}
	}
	if err != nil || json.Unmarshal([]byte(text), &reply) != nil || reply.Protocol != "AIP/1.0" || reply.Headers.CorrelationID != "m-1" || reply.Payload.Status != "success" || !strings.Contains(reply.Payload.Result["text"], "in members") {
		t.Errorf("%v: %s", err, text)
	}
	raw := func(text string) string {
		return fmt.Sprintf(`{"raw_json":%q}`, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	q := amptest.Mail("agent-1", "boss", "as a text")
	text, err = call(acmeToken, raw(q.Text()), "amp.v1.AgentMesh/Invoke")
	first := rawTexts(text)
	if err != nil || len(first) != 1 || strings.Contains(text, `"payload"`) || !strings.Contains(first[0], `"correlation_id":"`+q.Message.ID+`"`) {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := call(acmeToken, raw(amptest.New("event", "agent-1", "boss", amptest.Object{"event_type": "mail.message", "body": "news"}).Text()), "amp.v1.AgentMesh/Emit"); err != nil || !strings.Contains(text, `"id": "msg-`) {
		t.Errorf("an event: %v: %s", err, text)
	}
	other := amptest.Mail("agent-2", "boss", "in a call")
	text, err = call(acmeToken, raw(q.Text())+raw(other.Text())+raw(amptest.Mail("agent-1", "none", "x").Text()), "amp.v1.AgentMesh/Connect")
	both := strings.Join(rawTexts(text), "\n")
	if err != nil || len(first) != 1 || !strings.Contains(both, first[0]) || !strings.Contains(both, `"correlation_id":"`+other.Message.ID+`"`) || !strings.Contains(both, "AGENT_NOT_FOUND") {
		t.Errorf("a call: %v: %s", err, both)
	}
	for name, c := range map[string]struct{ token, message, status, code string }{
		"no credential": {"", raw(q.Text()), "Unauthenticated", "AUTHENTICATION_FAILED"},
		"another token": {"another", raw(q.Text()), "Unauthenticated", "AUTHENTICATION_FAILED"},
		"a foreign id":  {acmeToken, raw(amptest.Mail("mallory", "boss", "x").Text()), "PermissionDenied", "AUTHENTICATION_FAILED"},
		"no JSON":       {acmeToken, raw("{"), "InvalidArgument", "INVALID_SCHEMA"},
		"too large":     {acmeToken, raw(strings.Repeat(" ", 70<<10)), "ResourceExhausted", "INVALID_SCHEMA"},
		"no agent":      {acmeToken, raw(amptest.Mail("agent-1", "none", "x").Text()), "NotFound", "AGENT_NOT_FOUND"},
	} {
		text, err := call(c.token, c.message, "amp.v1.AgentMesh/Invoke")
		if err == nil || !strings.Contains(text, "Code: "+c.status) || !strings.Contains(text, "Message: "+c.code+": ") || !strings.Contains(text, `"type": "error"`) {
			t.Errorf("%s: %v: %s", name, err, text)
		}
	}
	list := exec.CommandContext(t.Context(), program, "-plaintext", strings.TrimPrefix(s.URL(), "http://"), "list")
	if text, err := list.CombinedOutput(); err == nil || strings.Contains(string(text), "AgentMesh") {
		t.Errorf("without a credential the services are %s", text)
	}
}

// rawTexts are the texts of the messages that grpcurl prints.
func rawTexts(text string) (list []string) {
	for _, m := range messagesOf(text) {
		encoded, _ := m["rawJson"].(string)
		if raw, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			list = append(list, string(raw))
		}
	}
	return list
}

// TestHostsOverAMPGRPC (M-026, M-091, M-097): a host asks another one over gRPC, joins its mesh over it,
// and looks at it by ping, which says what fails.
func TestHostsOverAMPGRPC(t *testing.T) {
	t.Parallel()
	depot := hosttest.NewSite(t, overAMP("depot", `[gateways.amp]
[gateways.amp.partners.hive]
ids = ["boss@hive", "agent-1"]
may = ["ask", "register"]
[[auth.keys]]
id = "hive"
role = "agent"
key = "the-token-of-hive-at-depot"
`))
	text := overAMP("hive", fmt.Sprintf(`[server]
public_url = "https://hive.example"
[gateways.amp]
[gateways.amp.partners.depot]
url = %q
binding = "grpc"
ids = ["*@depot", "boss"]
auth_token = "the-token-of-hive-at-depot"
allow_private = true
join = true
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
`, depot.URL()))
	hive := hosttest.NewSite(t, text)
	got, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Task: "t", Body: hosttest.RequestOf("boss@depot", "how many?")})
	if err != nil || !strings.Contains(got.Body, "how many?") || strings.Contains(got.Body, "[") && strings.Contains(got.Body, "FAILED]") {
		t.Fatalf("answer %+v, %v", got, err)
	}
	hosttest.Eventually(t, "the agent of hive is registered with its gRPC address", func() bool {
		r := ampControl(t, depot, "the-token-of-hive-at-depot", "discovery", amptest.Object{"query": amptest.Object{}})
		return strings.Contains(r.Text, `"grpc":"https://hive.example"`)
	})
	if p, err := hive.As("a-key-of-the-operator").PingPartner(t.Context(), "depot"); err != nil || !p.Active || len(p.Agents) == 0 {
		t.Errorf("ping %+v, %v", p, err)
	}
	away := hosttest.NewSite(t, strings.Replace(text, depot.URL(), "http://127.0.0.1:1", 1))
	if p, err := away.As("a-key-of-the-operator").PingPartner(t.Context(), "depot"); err != nil || p.Active || p.Error == "" {
		t.Errorf("ping of what is away %+v, %v", p, err)
	}
}

// publicMesh is an agent at a public name that serves gRPC.
type publicMesh struct {
	amppb.UnimplementedAgentMeshServer
	shown chan metadata.MD
}

// Invoke implements [amppb.AgentMeshServer].
func (m publicMesh) Invoke(ctx context.Context, in *amppb.Message) (*amppb.Message, error) {
	shown, _ := metadata.FromIncomingContext(ctx)
	m.shown <- shown
	q, err := amptest.Parse(in.GetRawJson())
	if err != nil {
		return nil, err
	}
	return &amppb.Message{RawJson: []byte(q.Reply("response", amptest.Result(amptest.Object{"text": "called"})).Text())}, nil
}

// TestAMPGRPCEndpoint (M-028, M-029, M-097): a question to an agent that has registered a gRPC address at
// a public name goes there by HTTP/2 over TLS, with its own credential.
func TestAMPGRPCEndpoint(t *testing.T) {
	t.Parallel()
	mesh := publicMesh{shown: make(chan metadata.MD, 1)}
	service := grpc.NewServer()
	amppb.RegisterAgentMeshServer(service, mesh)
	endpoint := httptest.NewUnstartedServer(http.HandlerFunc(service.ServeHTTP))
	endpoint.EnableHTTP2 = true
	endpoint.StartTLS()
	t.Cleanup(endpoint.Close)
	s := hosttest.NewSite(t, overAMP("hive", `[gateways.amp]
[gateways.amp.partners.mesh]
ids = ["agent-*"]
may = ["register"]
[[auth.keys]]
id = "mesh"
role = "agent"
key = "the-token-of-mesh-at-hive"
`), publicly(endpoint))
	r := ampControl(t, s, "the-token-of-mesh-at-hive", "registration", amptest.Object{
		"agent":          amptest.Object{"id": "agent-7"},
		"endpoints":      amptest.Object{"grpc": "https://example.com"},
		"authentication": amptest.Object{"type": "bearer", "credentials": "the-secret-of-agent-7"},
	})
	if r.Status != http.StatusOK {
		t.Fatalf("registered: %d %s", r.Status, r.Text)
	}
	got := s.Do(hosttest.AliceKey, "t-1", hosttest.Step{"send_request", hosttest.Args{"target": "agent-7@mesh", "subject": "s", "body": "hello"}}, hosttest.Step{"await_message", hosttest.Args{}})
	if shown := <-mesh.shown; !strings.Contains(got, "called") || strings.Join(shown.Get("authorization"), "") != "Bearer the-secret-of-agent-7" || strings.Join(shown.Get(":authority"), "") != "example.com" {
		t.Errorf("the answer is %.300s, and it is shown %v", got, shown)
	}
}
