package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/turn/mcp"
)

const webToken = "hunter2-hunter2"

// reach serves h on loopback and makes a client for it.
func reach(t *testing.T, h http.Handler, set ...func(*mcp.Spec)) *world {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	spec := mcp.Spec{Name: "notes", URL: server.URL + "/mcp", Token: webToken, Private: true, Timeout: 20 * time.Second, IdleTimeout: time.Hour, MaxResult: 1 << 20}
	for _, f := range set {
		f(&spec)
	}
	return serve(t, spec)
}

// official is a server of the official library that requires the token.
func official(s *sdk.Server, o *sdk.StreamableHTTPOptions) http.Handler {
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+webToken {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func TestWeb(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*sdk.StreamableHTTPOptions{"sessions": nil, "stateless": {Stateless: true}, "json": {JSONResponse: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := reach(t, official(notes(), o))
			if got := w.call("echo", "hello"); got != `"hello"` {
				t.Error(got)
			}
			if got := w.call("fail", "it is "+webToken); got != `UPSTREAM: tool "fail" of MCP server "notes": no: it is [secret mcp.notes.auth_token]` {
				t.Error(got)
			}
			if got := w.callAs(t.Context(), mcp.Call{Tenant: "default", Tool: "echo", Pin: "0"}, ""); !strings.HasPrefix(got, "DENIED") {
				t.Error(got)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			c := mcp.Call{Tenant: "default", Tool: "slow", Pin: w.pin("slow")}
			// A stateless server of the library cannot be told that the caller is gone.
			if name != "stateless" {
				if got := w.callAs(ctx, c, t.TempDir()+"/told"); !strings.HasPrefix(got, "DEADLINE") {
					t.Error(got)
				}
			}
			if got := w.call("echo", strings.Repeat("x", 2<<20)); !strings.HasPrefix(got, "LIMIT") {
				t.Errorf("%.200s", got)
			}
			if got := w.call("echo", "again"); got != `"again"` {
				t.Error(got)
			}
		})
	}
}

// Tenants have separate sessions, requests carry the negotiated version, and a session
// ends with a DELETE.
func TestWebSessions(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ids, deleted, unversioned := map[string]bool{}, map[string]bool{}, 0
	h := official(notes(), nil)
	w := reach(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if id := r.Header.Get("Mcp-Session-Id"); id != "" {
			ids[id] = true
			deleted[id] = r.Method == http.MethodDelete
			if r.Header.Get("Mcp-Protocol-Version") == "" {
				unversioned++
			}
		}
		mu.Unlock()
		h.ServeHTTP(rw, r)
	}))
	pin := w.pin("echo")
	for _, tenant := range []string{"one", "two", "one"} {
		if got := w.callAs(t.Context(), mcp.Call{Tenant: tenant, Tool: "echo", Pin: pin}, "x"); got != `"x"` {
			t.Error(got)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ids) != 3 || unversioned > 0 { // one is of the tenant that looked at the tools
		t.Errorf("%d sessions, %d requests without a version", len(ids), unversioned)
	}
	for id, gone := range deleted {
		if !gone {
			t.Errorf("session %s was not ended", id)
		}
	}
}

// If a server has lost the session, the call is repeated in a new one: the server did not
// get it in the old one.
func TestWebSessionLost(t *testing.T) {
	t.Parallel()
	var lose atomic.Bool
	server := notes()
	t.Cleanup(func() { // nobody ends the one that is lost
		for ses := range server.Sessions() {
			_ = ses.Close()
		}
	})
	h := official(server, nil)
	w := reach(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Session-Id") != "" && lose.CompareAndSwap(true, false) {
			http.Error(rw, "no such session", http.StatusNotFound)
			return
		}
		h.ServeHTTP(rw, r)
	}))
	pin := w.pin("echo")
	lose.Store(true)
	if got := w.callAs(t.Context(), mcp.Call{Tenant: "default", Tool: "echo", Pin: pin}, "x"); got != `"x"` {
		t.Error(got)
	}
	if lose.Load() {
		t.Error("no session was lost")
	}
}

// rpc answers initialize and tools/list itself, and calls with f.
func rpc(f func(w http.ResponseWriter, r *http.Request, id string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, rest, _ := bytes.Cut(body, []byte(`"id":`))
		id, _, _ := bytes.Cut(rest, []byte(","))
		answer := func(result string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
		}
		switch {
		case bytes.Contains(body, []byte(`"initialize"`)):
			answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
		case bytes.Contains(body, []byte(`"tools/list"`)):
			answer(`{"tools":[` + echoTool + `]}`)
		case bytes.Contains(body, []byte(`"tools/call"`)):
			f(w, r, string(id))
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

func TestWebMisbehaving(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request went elsewhere: %s %s", r.Method, r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	stream := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
		w.(http.Flusher).Flush()
	}
	for name, c := range map[string]struct {
		call func(w http.ResponseWriter, r *http.Request, id string)
		want string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, `it redirects, which is not followed`},
		"error": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			http.Error(w, webToken, http.StatusInternalServerError)
		}, `UNAVAILABLE: tool "echo" of MCP server "notes"`},
		"busy":   {func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusServiceUnavailable) }, `Service Unavailable`},
		"denied": {func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusUnauthorized) }, `it refuses the token with 401 Unauthorized: set auth_token in [mcp.notes]`},
		"html":   {func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = io.WriteString(w, "<html>") }, `unsupported content type`},
		"no answer": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			stream(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")
		}, `request terminated without response`},
		"garbage": {func(w http.ResponseWriter, _ *http.Request, _ string) { stream(w, "data: {{{\n\n") }, `UNAVAILABLE: tool "echo"`},
		"cut": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			panic(http.ErrAbortHandler)
		}, `UNAVAILABLE: tool "echo"`},
		"endless": {func(w http.ResponseWriter, r *http.Request, _ string) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
					return
				}
			}
		}, `LIMIT: tool "echo"`},
		"drip": {func(w http.ResponseWriter, r *http.Request, _ string) {
			for r.Context().Err() == nil {
				stream(w, ": still here\n\n")
				time.Sleep(10 * time.Millisecond)
			}
		}, `DEADLINE: tool "echo"`},
		"flood": {func(w http.ResponseWriter, r *http.Request, _ string) {
			for r.Context().Err() == nil {
				stream(w, strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n", 500))
			}
		}, `it sends too much that it was not asked for`},
		"hang": {func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() }, `DEADLINE: tool "echo"`},
		"good": {func(w http.ResponseWriter, _ *http.Request, id string) {
			stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"sampling/createMessage\",\"params\":{}}\n\n"+
				"data: {\"jsonrpc\":\"2.0\",\"id\":"+id+",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}}\n\n")
		}, `"ok"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := reach(t, rpc(c.call))
			if len(w.tools()) != 1 {
				t.Fatal("no tools")
			}
			most := patience
			if strings.HasPrefix(c.want, "DEADLINE") {
				most = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			got := w.callAs(ctx, mcp.Call{Tenant: "default", Tool: "echo", Pin: echoPin(t)}, "x")
			if !strings.Contains(got, c.want) || strings.Contains(got+w.log.String(), webToken) {
				t.Errorf("%s\nwant %s\n%s", got, c.want, w.log)
			}
		})
	}
}

// The address of a server decides whether it is reachable.
func TestWebAddresses(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*mcp.Spec){
		"private":    func(s *mcp.Spec) { s.Private = false },
		"nobody":     func(s *mcp.Spec) { s.URL = "http://127.0.0.1:1/mcp" },
		"wrong name": func(s *mcp.Spec) { s.URL = "https://nowhere.invalid/mcp" },
		"no token":   func(s *mcp.Spec) { s.Token = "" },
	} {
		w := reach(t, official(notes(), nil), set)
		if _, fault := w.Tools(t.Context(), "default"); fault == nil || !strings.HasPrefix(fault.Message, `MCP server "notes": `) {
			t.Errorf("%s: %v", name, fault)
		}
	}
}

// A server without the initialize handshake gets the newest protocol version.
func TestNewestProtocol(t *testing.T) {
	t.Parallel()
	h := official(notes(), &sdk.StreamableHTTPOptions{Stateless: true})
	var modern atomic.Int64
	w := reach(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"method":"initialize"`)) {
			rw.Header().Set("Content-Type", "application/json")
			_, rest, _ := bytes.Cut(body, []byte(`"id":`))
			id, _, _ := bytes.Cut(rest, []byte(","))
			_, _ = io.WriteString(rw, `{"jsonrpc":"2.0","id":`+string(id)+`,"error":{"code":-32601,"message":"no such method"}}`)
			return
		}
		if r.Header.Get("Mcp-Protocol-Version") == "2026-07-28" {
			modern.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(rw, r)
	}))
	if got := w.call("echo", "hello"); got != `"hello"` {
		t.Error(got)
	}
	if modern.Load() == 0 {
		t.Error("it was greeted as an old one")
	}
}
