package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// The versions of the protocol with sessions and without.
const (
	older = "2025-11-25"
	newer = "2026-07-28"
)

// versions runs a test with both.
func versions(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range []string{older, newer} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}

// host is a gateway on a runtime in memory, behind a listener.
type host struct {
	*gatewaytest.Runtime
	gateway *mcp.Gateway
	url     string
	path    string // below /mcp
}

// newHost starts a host with the agent calc of alice's and bob's tenant a, and carol's b.
func newHost(t *testing.T, opt mcp.Options, run gatewaytest.Agent) *host {
	t.Helper()
	rt := gatewaytest.New()
	h := &host{Runtime: rt, gateway: mcp.New(rt, opt)}
	server := httptest.NewServer(gatewaytest.Listener(rt, h.gateway.Mounts()))
	h.url = server.URL
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.gateway.Run(ctx)
	}()
	t.Cleanup(func() {
		rt.Close()
		stop()
		<-ended
		server.Close()
	})
	for token, c := range map[string]gateway.Caller{
		"alice": gatewaytest.User("a", "alice"), "bob": gatewaytest.User("a", "bob"), "carol": gatewaytest.User("b", "carol"),
		"acme": gatewaytest.Realm("a", "acme"),
	} {
		rt.Admit(token, c)
	}
	for _, tenant := range []string{"a", "b"} {
		rt.Expose(tenant, gateway.ExposedAgent{Swarm: "s", Name: "calc", Description: "calculates", Entrypoint: true}, run)
	}
	return h
}

// bearer sends a token with each request.
type bearer string

func (token bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

// connect opens a client of the SDK at a path.
func (h *host) connect(t *testing.T, token, path, version string, opt *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opt)
	s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: h.url + path, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// calls calls a tool, which must not be refused by the protocol.
func calls(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) *sdk.CallToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res
}

// field is a member of a result's structured content.
func field(res *sdk.CallToolResult, name string) any {
	m, _ := res.StructuredContent.(map[string]any)
	return m[name]
}

func text(res *sdk.CallToolResult) string {
	if len(res.Content) == 0 {
		return ""
	}
	c, _ := res.Content[0].(*sdk.TextContent)
	if c == nil {
		return ""
	}
	return c.Text
}

// post sends a body as it is.
func (h *host) post(t *testing.T, token, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	return h.send(t, http.MethodPost, token, body, header...)
}

func (h *host) send(t *testing.T, method, token, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.url+"/mcp"+h.path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(raw)
}

// initialize opens a session and returns its id.
func (h *host) initialize(t *testing.T, token string) string {
	t.Helper()
	status, header, body := h.post(t, token, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+older+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if status != http.StatusOK || header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize: %d %s", status, body)
	}
	return header.Get("Mcp-Session-Id")
}

// message is the JSON-RPC message of a response.
func message(t *testing.T, body string) (m struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}) {
	t.Helper()
	if _, data, ok := bytes.Cut([]byte(body), []byte("data: ")); ok {
		body = string(data)
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// hold is shorter than any agent of a test that waits for its end.
const hold = 20 * time.Millisecond

func callOf(message string) *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: "calc", Arguments: map[string]any{"message": message}}
}

// stream reads a session's own stream to its end.
func (h *host) stream(t *testing.T, token, id string, opened chan<- struct{}) {
	r, err := http.NewRequest(http.MethodGet, h.url+"/mcp", nil)
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Mcp-Session-Id", id)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	close(opened)
	_, _ = io.Copy(io.Discard, res.Body)
}

func get(h http.Handler, path string) (status int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://hive.example"+path, nil))
	return w.Code, w.Body.String()
}
