package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`

// A session is its principal's: for others its id is unknown, and answered by the same
// bytes. A deleted one is unknown, too.
func TestSessionsBelongToPrincipals(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, gatewaytest.Echo)
	h.Admit("alice2", gatewaytest.User("a", "alice"))
	id := h.initialize(t, "alice")
	unknown, _, text := h.post(t, "bob", list, "Mcp-Session-Id", "UNKNOWN")
	for _, token := range []string{"bob", "carol", "acme"} {
		if status, _, body := h.post(t, token, list, "Mcp-Session-Id", id); status != unknown || body != text || status != http.StatusNotFound {
			t.Errorf("%s: %d %s", token, status, body)
		}
		if status, _, _ := h.send(t, http.MethodDelete, token, "", "Mcp-Session-Id", id); status != http.StatusNotFound {
			t.Errorf("%s deleted it: %d", token, status)
		}
	}
	if status, _, body := h.post(t, "alice2", list, "Mcp-Session-Id", id); status != http.StatusOK {
		t.Errorf("another token of the principal: %d %s", status, body)
	}
	if status, _, _ := h.send(t, http.MethodDelete, "alice", "", "Mcp-Session-Id", id); status != http.StatusNoContent {
		t.Errorf("delete: %d", status)
	}
	if status, _, _ := h.post(t, "alice", list, "Mcp-Session-Id", id); status != http.StatusNotFound {
		t.Errorf("deleted: %d", status)
	}
	if n := h.gateway.Health().Sessions; n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// A principal at his limit loses his oldest session, nobody else's; one whose sessions
// are all in use gets no more. Requests that open none take no place.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	h := newHost(t, mcp.Options{Sessions: 8}, func(context.Context, *gatewaytest.Turn) gateway.Answer {
		begun <- struct{}{}
		<-end
		return gateway.Answer{}
	})
	bob := h.initialize(t, "bob")
	for range 50 {
		if status, _, _ := h.post(t, "alice", `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusOK {
			t.Fatalf("ping: %d", status)
		}
	}
	if n := h.gateway.Health().Sessions; n != 1 {
		t.Errorf("%d sessions after pings", n)
	}
	var ids []string
	for range 50 {
		ids = append(ids, h.initialize(t, "alice"))
	}
	if n := h.gateway.Health().Sessions; n != 3 {
		t.Errorf("%d sessions, want bob's and two", n)
	}
	for id, want := range map[string]int{ids[0]: http.StatusNotFound, ids[49]: http.StatusOK} {
		if status, _, _ := h.post(t, "alice", list, "Mcp-Session-Id", id); status != want {
			t.Errorf("session: %d, want %d", status, want)
		}
	}
	if status, _, _ := h.post(t, "bob", list, "Mcp-Session-Id", bob); status != http.StatusOK {
		t.Errorf("bob's session: %d", status)
	}
	ended := make(chan int, 2)
	for _, id := range ids[48:] {
		go func() {
			status, _, _ := h.post(t, "alice", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"calc","arguments":{"message":"x"}}}`, "Mcp-Session-Id", id)
			ended <- status
		}()
		<-begun
	}
	if status, header, _ := h.post(t, "alice", strings.ReplaceAll(list, "tools/list", "ping")); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("a third session beside two in use: %d", status)
	}
	close(end)
	for range 2 {
		if status := <-ended; status != http.StatusOK {
			t.Errorf("call: %d", status)
		}
	}
}

// A revoked token ends its sessions, their streams and calls; the message stays accepted.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		begun := make(chan struct{}, 1)
		h := newHost(t, mcp.Options{}, func(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
			begun <- struct{}{}
			<-ctx.Done()
			return gateway.Answer{}
		})
		s := h.connect(t, "alice", "/mcp", version, nil)
		var stream chan struct{}
		if version == older {
			id := h.initialize(t, "alice")
			opened := make(chan struct{})
			stream = make(chan struct{})
			go func() {
				defer close(stream)
				h.stream(t, "alice", id, opened)
			}()
			<-opened
		}
		failed := make(chan error)
		go func() {
			_, err := s.CallTool(t.Context(), callOf("x"))
			failed <- err
		}()
		<-begun
		h.Revoke("alice")
		if err := <-failed; err == nil {
			t.Error("the call went on")
		}
		if stream != nil {
			<-stream
		}
		if status, _, _ := h.post(t, "alice", list); status != http.StatusUnauthorized {
			t.Errorf("after it: %d", status)
		}
		exchanges, err := h.List(t.Context(), gatewaytest.User("a", "alice"), "", 10)
		if err != nil || len(exchanges) != 1 {
			t.Fatalf("exchanges %v, %v", exchanges, err)
		}
		if _, ok, _ := h.Look(t.Context(), exchanges[0]); ok {
			t.Error("the message was withdrawn")
		}
	})
}

// A listener that cuts a request off, as one whose token it looks up again, does not
// withdraw the message.
func TestCutOff(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	h := newHost(t, mcp.Options{}, func(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
		close(begun)
		<-ctx.Done()
		return gateway.Answer{}
	})
	ctx, cut := context.WithCancelCause(t.Context())
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calc","arguments":{"message":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"` +
		newer + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://host/mcp", strings.NewReader(body))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer alice",
		"Mcp-Protocol-Version": newer, "Mcp-Method": "tools/call", "Mcp-Name": "calc",
	} {
		r.Header.Set(name, value)
	}
	go func() {
		<-begun
		cut(errors.New("the token is gone"))
	}()
	h.gateway.ServeHTTP(httptest.NewRecorder(), r)
	exchanges, err := h.List(t.Context(), gatewaytest.User("a", "alice"), "", 10)
	if err != nil || len(exchanges) != 1 {
		t.Fatalf("exchanges %v, %v", exchanges, err)
	}
	if _, ok, _ := h.Look(t.Context(), exchanges[0]); ok {
		t.Error("the message was withdrawn")
	}
}

// Idle sessions end; one in use does not.
func TestIdleSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := gatewaytest.New()
		rt.Admit("alice", gatewaytest.User("a", "alice"))
		g := mcp.New(rt, mcp.Options{SessionIdle: time.Minute})
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = g.Run(ctx) }()
		send := func(body, id string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodPost, "http://host/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Authorization", "Bearer alice")
			if id != "" {
				r.Header.Set("Mcp-Session-Id", id)
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			return w
		}
		initialize := fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, older)
		used, idle := send(initialize, "").Header().Get("Mcp-Session-Id"), send(initialize, "").Header().Get("Mcp-Session-Id")
		for range 4 {
			time.Sleep(40 * time.Second)
			if w := send(list, used); w.Code != http.StatusOK {
				t.Fatalf("the used session: %d %s", w.Code, w.Body)
			}
		}
		if w := send(list, idle); w.Code != http.StatusNotFound {
			t.Errorf("the idle session: %d", w.Code)
		}
		stop()
		synctest.Wait()
		if n := g.Health().Sessions; n != 0 {
			t.Errorf("%d sessions after the end", n)
		}
		if w := send(initialize, ""); w.Code != http.StatusServiceUnavailable {
			t.Errorf("a new session after the end: %d", w.Code)
		}
	})
}
