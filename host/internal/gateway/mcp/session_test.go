package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// hold opens sessions that are in use, up to n or to the first refusal, and returns how
// many there are.
func (h *host) hold(t *testing.T, token string, n int) (held int) {
	t.Helper()
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + older + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for range n {
		status, header, _ := h.post(t, token, initialize)
		if status != http.StatusOK {
			return held
		}
		opened := make(chan struct{})
		go h.stream(t, token, header.Get("Mcp-Session-Id"), opened)
		<-opened
		held++
	}
	return held
}

// Principals that hold all sessions that they get leave some for the next one, and
// tenants for the next tenant.
func TestSessionsAreShared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shared bool
		held   []int
	}{{false, []int{4, 4, 4, 2, 1}}, {true, []int{4, 4, 0, 0, 0}}} {
		h := newHost(t, mcp.Options{Sessions: 16, Shared: c.shared}, gatewaytest.Echo)
		for i, want := range c.held {
			token := fmt.Sprintf("p%d", i)
			h.Admit(token, gatewaytest.User("a", token))
			if held := h.hold(t, token, 16); held != want {
				t.Errorf("shared %v: principal %d holds %d sessions, want %d", c.shared, i, held, want)
			}
		}
		if held := h.hold(t, "carol", 1); held != 1 {
			t.Errorf("shared %v: the next tenant got no session", c.shared)
		}
	}
}

// Where all sessions are taken, an unused one ends, though others have as many.
func TestUnusedSessionsEnd(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{Sessions: 4}, gatewaytest.Echo)
	h.hold(t, "acme", 1)
	h.hold(t, "alice", 1)
	bob := h.initialize(t, "bob")
	h.hold(t, "carol", 1)
	h.Admit("dave", gatewaytest.User("a", "dave"))
	if held := h.hold(t, "dave", 1); held != 1 {
		t.Error("no session for one more principal")
	}
	if status, _, _ := h.post(t, "bob", list, "Mcp-Session-Id", bob); status != http.StatusNotFound {
		t.Errorf("the unused session: %d", status)
	}
}

// Calls whose clients have left go on, and count: a session has so many at once.
func TestCallsOfASessionAreBounded(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	h := newHost(t, mcp.Options{Sessions: 4}, func(context.Context, *gatewaytest.Turn) gateway.Answer {
		begun <- struct{}{}
		<-end
		return gateway.Answer{Body: "done"}
	})
	defer close(end)
	id := h.initialize(t, "alice")
	call := func(ctx context.Context, n int) (*http.Response, error) {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"calc","arguments":{"message":"x"}}}`, n)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Error(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer alice", "Mcp-Session-Id": id,
		} {
			r.Header.Set(name, value)
		}
		return http.DefaultClient.Do(r)
	}
	for n := range 32 {
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			if res, err := call(ctx, n+1); err == nil {
				_ = res.Body.Close()
			}
		}()
		<-begun
		leave()
		<-left
	}
	res, err := call(t.Context(), 33)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(text), "32 calls run in this session") || !strings.Contains(string(text), `"_meta":{"skep/again":true}`) {
		t.Errorf("one more call: %s %v", text, err)
	}
	if status, _, _ := h.post(t, "alice", strings.ReplaceAll(list, "tools/list", "ping")); status != http.StatusServiceUnavailable {
		t.Errorf("a second session in place of the one that works: %d", status)
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

// quiet is a gateway without sockets, for tests in fake time.
type quiet struct {
	*gatewaytest.Runtime
	g    *mcp.Gateway
	stop func()
}

func newQuiet(opt mcp.Options) *quiet {
	q := &quiet{Runtime: gatewaytest.New()}
	q.g = mcp.New(q, opt)
	q.Admit("alice", gatewaytest.User("a", "alice"))
	ctx, stop := context.WithCancel(context.Background())
	go func() { _ = q.g.Run(ctx) }()
	q.stop = stop
	return q
}

func (q *quiet) send(token, body, id string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://host/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token)
	if id != "" {
		r.Header.Set("Mcp-Session-Id", id)
	}
	w := httptest.NewRecorder()
	q.g.ServeHTTP(w, r)
	return w
}

// initialize opens a session; w has its id.
func (q *quiet) initialize() (w *httptest.ResponseRecorder, id string) {
	w = q.send("alice", fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, older), "")
	return w, w.Header().Get("Mcp-Session-Id")
}

// Idle sessions end; one in use does not.
func TestIdleSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(mcp.Options{SessionIdle: time.Minute})
		_, used := q.initialize()
		_, idle := q.initialize()
		for range 4 {
			time.Sleep(40 * time.Second)
			if w := q.send("alice", list, used); w.Code != http.StatusOK {
				t.Fatalf("the used session: %d %s", w.Code, w.Body)
			}
		}
		if w := q.send("alice", list, idle); w.Code != http.StatusNotFound {
			t.Errorf("the idle session: %d", w.Code)
		}
		q.stop()
		synctest.Wait()
		if n := q.g.Health().Sessions; n != 0 {
			t.Errorf("%d sessions after the end", n)
		}
		if w, _ := q.initialize(); w.Code != http.StatusServiceUnavailable {
			t.Errorf("a new session after the end: %d", w.Code)
		}
	})
}

// A session that nobody uses ends with its credential, within a ping; one whose client
// has shown another since goes on with that.
func TestSessionsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(mcp.Options{})
		defer q.stop()
		q.Admit("renewed", gatewaytest.User("a", "alice"))
		q.initialize()
		_, kept := q.initialize()
		if w := q.send("renewed", list, kept); w.Code != http.StatusOK {
			t.Fatalf("another token: %d", w.Code)
		}
		q.Revoke("alice")
		time.Sleep(16 * time.Second)
		if n := q.g.Health().Sessions; n != 1 {
			t.Errorf("%d sessions, want the one with the newer token", n)
		}
		if w := q.send("renewed", list, kept); w.Code != http.StatusOK {
			t.Errorf("the kept session: %d", w.Code)
		}
		q.Revoke("renewed")
		time.Sleep(16 * time.Second)
		if n := q.g.Health().Sessions; n != 0 {
			t.Errorf("%d sessions without a credential", n)
		}
	})
}
