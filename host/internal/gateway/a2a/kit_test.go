package a2a_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	grpcv1 "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/gatewaytest"
)

// token is the credential of the user in these tests, realmToken the realm's.
const (
	token      = "user-token"
	realmToken = "realm-token"
)

// site is a gateway on a listener with TLS.
type site struct {
	rt      *gatewaytest.Runtime
	g       *a2a.Gateway
	server  *httptest.Server
	release chan struct{} // ends the turns of agent "slow"
}

func newSite(t *testing.T, change func(*a2a.Options)) *site {
	t.Helper()
	s := &site{rt: gatewaytest.New(), release: make(chan struct{})}
	s.rt.Admit(token, gatewaytest.User("acme", "ann"))
	s.rt.Admit(realmToken, gatewaytest.Realm("acme", "partner"))
	s.expose("echo", gatewaytest.Echo)
	s.expose("slow", s.slow)
	s.expose("asks", asks)
	s.expose("chunks", s.chunks)
	s.expose("fails", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Outcome: gateway.Failed, Subject: "the turn trapped"}
	})
	o := a2a.Options{Runtime: s.rt, V03: true}
	if change != nil {
		change(&o)
	}
	s.g = a2a.New(o)
	s.server = httptest.NewUnstartedServer(gatewaytest.Listener(s.rt, s.g.Mounts()))
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.rt.Close()
		s.server.Close()
	})
	return s
}

func (s *site) expose(name string, run gatewaytest.Agent) {
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: name, Description: "does " + name, Entrypoint: true, Streams: true}, run)
}

// slow answers when the test releases it.
func (s *site) slow(ctx context.Context, t *gatewaytest.Turn) gateway.Answer {
	t.Progress("begun", 0.5)
	select {
	case <-s.release:
		return gateway.Answer{Body: "done"}
	case <-ctx.Done():
		return gateway.Answer{Outcome: gateway.Cancelled}
	}
}

// chunks emits two chunks, and answers when the test releases it.
func (s *site) chunks(ctx context.Context, t *gatewaytest.Turn) gateway.Answer {
	t.Chunk("one ")
	t.Chunk("two")
	select {
	case <-s.release:
	case <-ctx.Done():
	}
	return gateway.Answer{Body: "one two"}
}

// asks asks its caller for a name.
func asks(ctx context.Context, t *gatewaytest.Turn) gateway.Answer {
	name, _, err := t.Question(ctx, gateway.Question{ID: "q-" + t.Ask.ID, Text: "What is your name?"})
	if err != nil {
		return gateway.Answer{Outcome: gateway.Cancelled}
	}
	return gateway.Answer{Subject: "greeting", Body: "hello " + name}
}

// bearer adds a token to requests.
type bearer struct {
	token string
	base  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.base.RoundTrip(r)
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// http is a client that shows a token.
func (s *site) http(token string) *http.Client {
	return &http.Client{Transport: bearer{token, s.server.Client().Transport}}
}

// a binding of the library's client.
type binding struct {
	name     string
	protocol sdk.TransportProtocol
	version  sdk.ProtocolVersion
}

// bindings are those that cards list.
var bindings = []binding{
	{"jsonrpc", sdk.TransportProtocolJSONRPC, "1.0"},
	{"rest", sdk.TransportProtocolHTTPJSON, "1.0"},
	{"grpc", sdk.TransportProtocolGRPC, "1.0"},
	{"jsonrpc 0.3", sdk.TransportProtocolJSONRPC, "0.3"},
}

// client is the library's client of an agent; over gRPC of none for "".
func (s *site) client(t *testing.T, b binding, agent, token string) *a2aclient.Client {
	t.Helper()
	at := &sdk.AgentInterface{URL: s.server.URL + "/a2a/hive/" + url.PathEscape(agent), ProtocolBinding: b.protocol, ProtocolVersion: b.version}
	if b.protocol == sdk.TransportProtocolGRPC {
		at.URL, at.Tenant = s.server.Listener.Addr().String(), "hive/"+url.PathEscape(agent)
		if agent == "" {
			at.Tenant = ""
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.server.Certificate())
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "example.com"})),
		grpc.WithPerRPCCredentials(bearer{token: token}),
	}
	client := s.http(token)
	c, err := a2aclient.NewFromEndpoints(t.Context(), []*sdk.AgentInterface{at}, a2aclient.WithDefaultsDisabled(),
		a2aclient.WithJSONRPCTransport(client), a2aclient.WithRESTTransport(client), grpcv1.WithGRPCTransport(dial...),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: client}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Destroy() })
	return c
}

func request(text string) *sdk.SendMessageRequest {
	return &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text))}
}

// send sends a message and returns its task.
func send(t *testing.T, c *a2aclient.Client, req *sdk.SendMessageRequest) *sdk.Task {
	t.Helper()
	result, err := c.SendMessage(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	task, ok := result.(*sdk.Task)
	if !ok {
		t.Fatalf("got %T, want a task", result)
	}
	return task
}

// answer is the text of a task's artifact.
func answer(t *testing.T, task *sdk.Task) string {
	t.Helper()
	if len(task.Artifacts) != 1 || len(task.Artifacts[0].Parts) != 1 {
		t.Fatalf("task %+v has no artifact of one part", task)
	}
	return task.Artifacts[0].Parts[0].Text()
}

// post sends raw bytes and returns status and body.
func (s *site) post(t *testing.T, path, token, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("A2A-Version", "1.0")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return s.do(t, s.http(token), req)
}

func (s *site) do(t *testing.T, c *http.Client, req *http.Request) (int, string) {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// callsTwice waits for two calls at once.
func callsTwice(ctx context.Context, t *gatewaytest.Turn) gateway.Answer {
	second := make(chan string, 1)
	go func() {
		text, _, _ := t.Question(ctx, gateway.Question{ID: "q2", Call: "c2", Text: "second"})
		second <- text
	}()
	text, _, err := t.Question(ctx, gateway.Question{ID: "q1", Call: "c1", Text: "first"})
	if err != nil {
		return gateway.Answer{Outcome: gateway.Cancelled}
	}
	return gateway.Answer{Body: text + " " + <-second}
}

// answersParts shows the test what it gets, and answers with data and a blob.
func answersParts(seen chan<- gateway.Ask) gatewaytest.Agent {
	return func(_ context.Context, t *gatewaytest.Turn) gateway.Answer {
		seen <- t.Ask
		return gateway.Answer{Body: `{"ok":true}`, Parts: []gateway.PartRef{t.Part("y.gif", "image/gif", []byte{1, 2})}}
	}
}
