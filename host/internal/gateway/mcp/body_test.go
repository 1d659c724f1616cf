package mcp_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// What is too large, too deep, ambiguous or no message is refused before the runtime
// gets it, and has a line in the log (G-058).
func TestBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{MaxBody: 10_000, MaxDepth: 8}, gatewaytest.Echo)
	id := h.initialize(t, "alice")
	n := len(h.Events())
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calc","arguments":` + arguments + `}}`
	}
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"size":           {call(`{"message":"` + strings.Repeat("x", 10_000) + `"}`), http.StatusRequestEntityTooLarge},
		"depth":          {call(`{"message":` + strings.Repeat("[", 8) + strings.Repeat("]", 8) + `}`), http.StatusBadRequest},
		"twice":          {call(`{"message":"a","message":"b"}`), http.StatusBadRequest},
		"twice, escaped": {call(`{"message":"a","messag\u0065":"b"}`), http.StatusBadRequest},
		"UTF-8":          {call("{\"message\":\"\xff\"}"), http.StatusBadRequest},
		"two values":     {call(`{"message":"a"}`) + `{}`, http.StatusBadRequest},
		"batch":          {`[` + call(`{"message":"a"}`) + `]`, http.StatusBadRequest},
		"cut":            {call(`{"message":"a"}`)[:50], http.StatusBadRequest},
		"empty":          {"", http.StatusBadRequest},
		"text":           {`"hello"`, http.StatusBadRequest},
		"no method":      {`{"jsonrpc":"2.0","id":1,"method":"tools/eat"}`, http.StatusBadRequest},
		"no version":     {`{"id":1,"method":"tools/list"}`, http.StatusBadRequest},
		"large id":       {strings.Replace(call(`{"message":"a"}`), `"id":1`, `"id":9007199254740993`, 1), http.StatusBadRequest},
		"huge id":        {strings.Replace(call(`{"message":"a"}`), `"id":1`, `"id":1e400`, 1), http.StatusBadRequest},
		"broken id":      {strings.Replace(call(`{"message":"a"}`), `"id":1`, `"id":1.5`, 1), http.StatusBadRequest},
		"id of none":     {strings.Replace(call(`{"message":"a"}`), `"id":1`, `"id":{}`, 1), http.StatusBadRequest},
		"long id":        {strings.Replace(call(`{"message":"a"}`), `"id":1`, `"id":"`+strings.Repeat("i", 200)+`"`, 1), http.StatusBadRequest},
	} {
		if status, _, body := h.post(t, "alice", test.body, "Mcp-Session-Id", id); status != test.status || !strings.HasPrefix(name, "no ") && message(t, body).Error == nil {
			t.Errorf("%s: %d %s", name, status, body)
		}
		events := h.Events()[n:]
		if n += len(events); len(events) != 1 || events[0].Verdict != "refused" || events[0].Reason == "" {
			t.Errorf("%s: recorded %+v", name, events)
		}
	}
}

// Every request leaves a line in the log, those that call no tool too.
func TestRequestsAreLogged(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, gatewaytest.Echo)
	id := h.initialize(t, "alice")
	h.post(t, "alice", list, "Mcp-Session-Id", id)
	h.post(t, "alice", `{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"none"}}`, "Mcp-Session-Id", id)
	got := ""
	for _, e := range h.Events() {
		got += e.Type + " " + e.Verdict + ", "
		if len(e.Text) == 0 || e.Caller.Principal.ID != "alice" {
			t.Errorf("%+v", e)
		}
	}
	if want := "initialize accepted, tools/list accepted, prompts/get refused, "; got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// Another site's page cannot use the person's host, by its own origin or by a name that
// leads to this address.
func TestOrigins(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{Origins: []string{"https://app.example"}}, gatewaytest.Echo)
	id := h.initialize(t, "alice")
	for origin, want := range map[string]int{
		"https://evil.example": http.StatusForbidden, "null": http.StatusForbidden, "https://app.example": http.StatusOK, h.url: http.StatusOK,
	} {
		if status, _, body := h.post(t, "alice", list, "Mcp-Session-Id", id, "Origin", origin); status != want {
			t.Errorf("%s: %d %s", origin, status, body)
		}
	}
}

// the document names the resource and who issues tokens for it; without issuers
// there is none.
func TestMetadata(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	g := mcp.New(rt, mcp.Options{PublicURL: "https://hive.example/", AuthorizationServers: []string{"https://id.example"}})
	for path, want := range map[string]string{
		"/.well-known/oauth-protected-resource":         `"resource":"https://hive.example/mcp"`,
		"/.well-known/oauth-protected-resource/mcp/s":   `"resource":"https://hive.example/mcp/s"`,
		"/.well-known/oauth-protected-resource/message": "404",
	} {
		status, body := get(gatewaytest.Listener(rt, g.Mounts()), path)
		if want == "404" {
			if status != http.StatusNotFound {
				t.Errorf("%s: %d", path, status)
			}
			continue
		}
		if status != http.StatusOK || !strings.Contains(body, want) || !strings.Contains(body, `"authorization_servers":["https://id.example"]`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, m := range g.Mounts() {
		if m.Proof == gateway.Bearer && m.Metadata != "https://hive.example/.well-known/oauth-protected-resource" {
			t.Errorf("refusals of %s name %q", m.Pattern, m.Metadata)
		}
	}
	if status, _ := get(gatewaytest.Listener(rt, mcp.New(rt, mcp.Options{PublicURL: "https://hive.example"}).Mounts()), "/.well-known/oauth-protected-resource"); status != http.StatusNotFound {
		t.Errorf("without issuers: %d", status)
	}
}

// A path below a swarm's is none.
func TestPaths(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, gatewaytest.Echo)
	h.path = "/s/calc"
	if status, _, _ := h.post(t, "alice", list); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
}
