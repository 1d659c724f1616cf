package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
)

// MAIL's texts of a 401, word for word.
func TestUnauthorized_R087_X15(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for _, c := range []struct{ path, header, want string }{
		{"/whoami", "", "no API key provided"},
		{"/whoami", "invalid-token", "invalid role"},
		{"/whoami", aliceToken, "invalid role"},
		{"/whoami", "Basic " + aliceToken, "invalid role"},
		{"/whoami", "Bearer ", "invalid role"},
		{"/whoami", "Bearer", "invalid role"},
		{"/whoami", "Bearer two words", "invalid role"},
		{"/whoami", "Bearer nobody", "invalid API key"},
		{"/whoami", "Bearer " + agentToken, "invalid role"},
		{"/message", "", "no API key provided"},
		{"/message", "Bearer " + agentToken, "invalid role"},
		{"/health", "", "no API key provided"},
		{"/health", "invalid-token", "invalid API key format"},
		{"/health", "Bearer ", "invalid API key format"},
		{"/health", "Bearer nobody", "invalid API key"},
		{"/health", "Bearer " + aliceToken, "invalid role"},
		{"/health", "Bearer " + agentToken, "invalid role"},
		{"/skep/v1/version", "", "no API key provided"},
		{"/skep/v1/version", "Bearer nobody", "invalid API key"},
		{"/skep/v1/version", "Bearer " + agentToken, "invalid role: this is for users, admins and operators"},
		{"/skep/v1/tokens", "Bearer " + aliceToken, "invalid role: this is for admins and operators"},
		{"/skep/v1/plan", "Bearer " + adminToken, "invalid role: this is for operators"},
	} {
		q := request{path: c.path, token: "-", header: http.Header{}}
		if c.path == "/message" || c.path == "/health" {
			q.method, q.body = "POST", "not even JSON"
		}
		if c.header != "" {
			q.header.Set("Authorization", c.header)
		}
		a := h.do(q)
		if a.status != http.StatusUnauthorized || a.body != detail(c.want) || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), `Bearer realm="skep"`) || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s with %q: %d %s %v, want %s", c.path, c.header, a.status, a.body, a.header, c.want)
		}
	}
	for _, scheme := range []string{"Bearer", "bearer", "BEARER", "Bearer "} {
		q := request{path: "/whoami", token: "-", header: http.Header{"Authorization": {scheme + " " + aliceToken}}}
		if a := h.do(q); a.status != http.StatusOK {
			t.Errorf("scheme %q: %d %s", scheme, a.status, a.body)
		}
	}
	q := request{path: "/whoami", token: "-", header: http.Header{"Authorization": {"Bearer " + aliceToken, "Bearer " + bobToken}}}
	if a := h.do(q); a.status != http.StatusUnauthorized {
		t.Errorf("two keys: %d %s", a.status, a.body)
	}
}

// Paths are exact and nothing is redirected: a redirect would lose a body, and
// could show a token to another server.
func TestRoutes(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	const notFound, notAllowed = `{"detail":"Not Found"}`, `{"detail":"Method Not Allowed"}`
	const debugOff = -404
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nowhere", 404, ""},
		{"GET", "/whoami/", 404, ""},
		{"POST", "/MESSAGE", 404, ""},
		{"POST", "//message", 404, ""},
		{"GET", "/tasks/", 404, ""},
		{"GET", "/tasks/a/b", 404, ""},
		{"GET", "/skep", 404, ""},
		{"GET", "/skep/v1", 404, ""},
		{"GET", "/skep/v1/", 404, ""},
		{"GET", "/skep/v1/nothing", 404, ""},
		{"GET", "/skep/v1/tasks/", 404, ""},
		{"GET", "/skep/v1//tasks", 404, ""},
		{"GET", "/skep/v1/../../whoami", 404, ""},
		{"GET", "/skep/v1/tasks//events", 404, ""},
		{"GET", "/skep/v1/tasks/t/events/", 404, ""},
		{"POST", "/swarms/register/", 404, ""},
		{"POST", "/interswarm", 404, ""},
		{"POST", "/auth/login", 404, ""},
		{"POST", "/ui/config", 404, ""},
		{"GET", "/ui/task/", 404, ""},
		{"GET", "/ui/task/a/b", 404, ""},
		{"GET", "/message", 405, "POST"},
		{"HEAD", "/message", 405, "POST"},
		{"POST", "/", 405, "GET, HEAD"},
		{"DELETE", "/swarms", 405, "GET, HEAD, POST"},
		{"GET", "/swarms/register", 405, "POST"},
		{"POST", "/swarms/dump", 405, "GET, HEAD"},
		{"GET", "/interswarm/back", 405, "POST"},
		{"GET", "/interswarm/response", 405, "POST"},
		{"GET", "/responses", debugOff, ""},
		{"POST", "/ui/tasks", debugOff, ""},
		{"POST", "/ui/task/t", debugOff, ""},
		{"POST", "/openapi.json", 405, "GET, HEAD"},
		{"DELETE", "/health", 405, "GET, HEAD, POST"},
		{"OPTIONS", "/whoami", 405, "GET, HEAD"},
		{"BREW", "/tasks/x", 405, "GET, HEAD"},
		{"POST", "/skep/v1/tasks", 405, "GET, HEAD"},
		{"GET", "/skep/v1/tasks/t/cancel", 405, "POST"},
		{"OPTIONS", "/skep/v1/version", 405, "GET, HEAD"},
	} {
		a := h.do(request{method: c.method, path: c.path})
		want := notFound
		switch c.status {
		case 405:
			want = notAllowed
		case debugOff:
			c.status, want = 404, `{"detail":"Not found"}`
		}
		if c.method == "HEAD" {
			want = ""
		}
		if a.status != c.status || a.body != want || a.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d %q, Allow %q; want %d %q", c.method, c.path, a.status, a.body, a.header.Get("Allow"), c.status, c.allow)
		}
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"task_id": "t", "body": "b"})
	for _, path := range []string{"/", "/health", "/status", "/whoami", "/tasks", "/tasks/t", "/task?task_id=t", "/swarms", "/openapi.json", "/docs",
		"/skep/v1/version", "/skep/v1/tasks", "/skep/v1/tasks/t", "/skep/v1/tasks/t/events", "/skep/v1/tasks/t/history?agent=boss", "/skep/v1/tasks/t/turns"} {
		get, head := h.do(request{path: path}), h.do(request{method: "HEAD", path: path})
		if head.status != http.StatusOK || head.body != "" || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("HEAD %s: %d %q %v", path, head.status, head.body, head.header)
		}
	}
}

func TestWrongHost(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) {
		h.opt.Loopback, h.opt.Hosts, h.opt.PublicURL = true, []string{"Hive.example"}, "https://public.example:8443"
	})
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8000": 200, "localhost.": 200, "127.0.0.1": 200, "127.9.9.9:1": 200,
		"[::1]": 200, "[::1]:8000": 200, "hive.example": 200, "HIVE.example:80": 200, "public.example": 200,
		"[::ffff:127.0.0.1]": 200,
		"evil.example":       421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "10.0.0.1": 421,
		"0.0.0.0": 421, "[fe80::1]": 421, "hive.example.evil": 421,
	} {
		for _, path := range []string{"/", "/whoami", "/skep/v1/version"} {
			if a := h.do(request{path: path, host: host}); a.status != want {
				t.Errorf("Host %s: %s answers %d, want %d", host, path, a.status, want)
			}
		}
	}
	if a := h.do(request{path: "/whoami", host: "evil.example"}); !strings.Contains(a.body, "[server] hosts") {
		t.Errorf("the refusal does not say what to do: %s", a.body)
	}
	elsewhere := newTestHost(t)
	if a := elsewhere.do(request{path: "/", host: "any.example"}); a.status != http.StatusOK {
		t.Errorf("a listener bound elsewhere looks at the name: %d", a.status)
	}
}

func TestBodyLimits_S21(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.MaxBody, h.opt.Stall = 4096, 2*time.Second })
	fits := `{"body":"` + strings.Repeat("x", 4096-len(`{"body":""}`)) + `"}`
	if a := h.do(request{method: "POST", path: "/message", body: fits}); a.status != http.StatusOK {
		t.Errorf("a body of just the limit: %d %s", a.status, a.body)
	}
	const want = "request body is larger than 4096 bytes; raise [server] max_body"
	if a := h.do(request{method: "POST", path: "/message", body: fits + " "}); a.status != http.StatusRequestEntityTooLarge || a.body != detail(want) {
		t.Errorf("one byte more: %d %s", a.status, a.body)
	}
	// Without a length, too.
	r, err := buildRequest(t.Context(), h.server.URL, request{method: "POST", path: "/message"})
	if err != nil {
		t.Fatal(err)
	}
	r.Body = io.NopCloser(strings.NewReader(fits + " "))
	rsp, err := h.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if a := read(t, rsp); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("chunked: %d %s", a.status, a.body)
	}
	// A route that takes no body ignores one.
	if a := h.do(request{path: "/whoami", body: fits}); a.status != http.StatusOK {
		t.Errorf("a body nobody asked for: %d %s", a.status, a.body)
	}
	if a := h.do(request{method: "POST", path: "/message", token: "-", body: fits}); a.status != http.StatusUnauthorized {
		t.Errorf("the body is read before the key: %d %s", a.status, a.body)
	}
}

// A body that does not come does not hold a connection.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	// The answer has as long, half of which goes by before it is written.
	h := newTestHost(t, func(h *testHost) { h.opt.Stall = 4 * time.Second })
	for token, want := range map[string]string{aliceToken: "408 ", "nobody": "401 "} {
		c, err := net.Dial("tcp", h.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "POST /message HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", token)
		raw, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(raw), "HTTP/1.1 "+want) {
			t.Errorf("%s: %q, %v", token, raw, err)
		}
	}
}

// A long wait, and a request after it on the same connection, are not hurt by
// the limits on reading and writing.
func TestDeadlinesAreTakenBack(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Stall = 2 * time.Second })
	c, err := net.Dial("tcp", h.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(c)
	for i := range 3 {
		body := fmt.Sprintf(`{"stream":%v,"body":%q}`, i == 1, calls("sleep", obj{"ms": 2500}, "task_complete", obj{"finish_message": fmt.Sprint("done ", i)}))
		fmt.Fprintf(c, "POST /message HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", aliceToken, len(body), body)
		rsp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(t, rsp); a.status != http.StatusOK || !strings.Contains(a.body, fmt.Sprint("done ", i)) {
			t.Fatalf("request %d: %d %s", i, a.status, a.body)
		}
		time.Sleep(2200 * time.Millisecond)
	}
}

func TestRateLimit_S21(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	h := newTestHost(t, func(h *testHost) {
		h.opt.Rate, h.opt.Now = auth.Rate{Requests: 3, Per: time.Minute}, func() time.Time { return now }
	})
	expect := func(q request, statuses ...int) {
		t.Helper()
		for i, want := range statuses {
			a := h.do(q)
			if a.status != want {
				t.Errorf("%s %s as %q, call %d: %d %s, want %d", q.method, q.path, q.token, i, a.status, a.body, want)
			}
			if want == http.StatusTooManyRequests && (a.header.Get("Retry-After") != "20" || a.body != detail("too many requests")) {
				t.Errorf("Retry-After %q, %s", a.header.Get("Retry-After"), a.body)
			}
		}
	}
	expect(request{path: "/whoami"}, 200, 200, 200, 429, 429)
	expect(request{path: "/whoami", token: bobToken}, 200, 200, 200, 429)
	expect(request{path: "/health", token: "-"}, 200)
	expect(request{path: "/whoami", token: "guess"}, 401)
	expect(request{path: "/nowhere", token: "-"}, 404)
	expect(request{path: "/nowhere", token: "-"}, 429)
	expect(request{path: "/whoami", token: "guess"}, 429)
	expect(request{method: "PUT", path: "/whoami", token: "-"}, 429)
	// Valid callers at an attacker's address keep their own limit.
	expect(request{path: "/whoami", token: adminToken}, 200, 200, 200, 429)
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.1:5": "192.0.2.1", "[::ffff:192.0.2.1]:5": "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:5": "2001:db8:1:2::/64", "[fe80::1%eth0]:5": "fe80::/64",
		"[64:ff9b::c000:201]:5": "192.0.2.1", "[64:ff9b::c000:202]:5": "192.0.2.2", "[64:ff9b:1::c000:202]:5": "64:ff9b:1::/64", "pipe": "pipe", "@:1": "@",
	} {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": {"198.51.100.9"}}}
		if got := rest.Address(r); got != want {
			t.Errorf("the caller from %q is %q, want %q", remote, got, want)
		}
	}
}

// Only a trusted proxy's X-Forwarded-For counts.
func TestAddressBehindProxies(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, c := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"10.0.0.1:5", []string{"192.0.2.7"}, "192.0.2.7"},
		{"[::1]:5", []string{"2001:db8:1:2:3::9"}, "2001:db8:1:2::/64"},
		{"10.0.0.1:5", []string{"192.0.2.7:4711"}, "192.0.2.7"},
		{"10.0.0.1:5", []string{"[2001:db8:1:2:3::9]:4711"}, "2001:db8:1:2::/64"},
		{"10.0.0.1:5", []string{"[2001:db8:1:2:3::9]"}, "2001:db8:1:2::/64"},
		{"10.0.0.1:5", []string{"192.0.2.9, [::1]"}, "192.0.2.9"},
		{"10.0.0.1:5", []string{"[::ffff:192.0.2.7]"}, "192.0.2.7"},
		{"10.0.0.1:5", []string{"[192.0.2.7]"}, "10.0.0.1"},
		{"10.0.0.1:5", []string{"[2001:db8::1"}, "10.0.0.1"},
		{"10.0.0.1:5", []string{"[]"}, "10.0.0.1"},
		{"10.0.0.1:5", []string{"64:ff9b::192.0.2.7"}, "192.0.2.7"},
		{"10.0.0.1:5", []string{"198.51.100.1, 192.0.2.7 , 10.9.9.9"}, "192.0.2.7"},
		{"10.0.0.1:5", []string{"198.51.100.1", "192.0.2.7"}, "192.0.2.7"},
		{"10.0.0.1:5", []string{"198.51.100.1, nonsense, 10.2.2.2"}, "10.2.2.2"},
		{"10.0.0.1:5", []string{"unknown"}, "10.0.0.1"},
		{"10.0.0.1:5", nil, "10.0.0.1"},
		{"10.0.0.1:5", []string{"10.0.0.2"}, "10.0.0.2"},
		{"192.0.2.1:5", []string{"198.51.100.9"}, "192.0.2.1"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if got := rest.Address(r, trusted...); got != c.want {
			t.Errorf("the caller from %s for %q is %q, want %q", c.remote, c.forwarded, got, c.want)
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	const origin = "http://localhost:3000"
	h := newTestHost(t, func(h *testHost) { h.opt.Origins = []string{origin} })
	a := h.do(request{path: "/whoami", header: http.Header{"Origin": {origin}}})
	if a.status != http.StatusOK || a.header.Get("Access-Control-Allow-Origin") != origin || a.header.Get("Access-Control-Allow-Credentials") != "true" || a.header.Get("Vary") != "Origin" {
		t.Errorf("%d %v", a.status, a.header)
	}
	preflight := request{method: "OPTIONS", path: "/message", token: "-", header: http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"POST"}}}
	if a := h.do(preflight); a.status != http.StatusNoContent || !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: %d %v", a.status, a.header)
	}
	preflight.header.Set("Origin", "http://evil.example")
	if a := h.do(preflight); a.status != http.StatusMethodNotAllowed || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of a stranger: %d %v", a.status, a.header)
	}
	if a := newTestHost(t).do(request{path: "/whoami", header: http.Header{"Origin": {origin}}}); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without origins: %v", a.header)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for sent, taken := range map[string]bool{"abc-1.2_X": true, "": false, "a b": false, "a\"b": false, strings.Repeat("x", 65): false} {
		q := request{path: "/", header: http.Header{"X-Request-Id": {sent}}}
		if got := h.do(q).header.Get("X-Request-Id"); got == "" || (got == sent) != taken {
			t.Errorf("sent %q, got %q", sent, got)
		}
	}
}

// failingRuntime is a runtime in which everything goes wrong.
type failingRuntime struct {
	rest.Runtime
	err   error
	panic bool
}

func (b failingRuntime) fail() error {
	if b.panic {
		panic("secret of the host: " + b.err.Error())
	}
	return b.err
}

func (b failingRuntime) Started() time.Time { return time.Unix(1e9, 0) }

func (b failingRuntime) Definition(string, string) (*swarm.Definition, bool) {
	_ = b.fail()
	return nil, false
}

func (b failingRuntime) Status(context.Context, swarm.InstanceKey) (swarm.Status, error) {
	return swarm.Status{}, b.fail()
}

func (b failingRuntime) Submit(context.Context, swarm.Post) (*swarm.Receipt, error) {
	return nil, b.fail()
}

func (b failingRuntime) RecordLook(context.Context, swarm.TaskKey, string, string, time.Time) (time.Time, error) {
	return time.Time{}, b.fail()
}
func (b failingRuntime) CancelTask(context.Context, swarm.TaskKey, string) error { return b.fail() }

func (b failingRuntime) Follow(context.Context, swarm.TaskKey, int64) (*swarm.Feed, error) {
	return nil, b.fail()
}

func (b failingRuntime) Task(context.Context, swarm.TaskKey) (swarm.Snapshot, error) {
	return swarm.Snapshot{}, b.fail()
}

func (b failingRuntime) Tasks(context.Context, swarm.InstanceKey, time.Time, int) ([]swarm.Task, error) {
	return nil, b.fail()
}

func (b failingRuntime) Questions(context.Context, swarm.InstanceKey, string, int) ([]swarm.Question, string, error) {
	return nil, "", b.fail()
}

func (b failingRuntime) AnswerQuestion(context.Context, swarm.TaskKey, string, string) error {
	return b.fail()
}

func (b failingRuntime) Events(context.Context, swarm.TaskKey, int64, int) ([]swarm.Event, error) {
	return nil, b.fail()
}

func (b failingRuntime) History(context.Context, swarm.TaskKey, string, int64, int) ([]abi.HistoryEntry, error) {
	return nil, b.fail()
}

// serve answers one request without a socket.
func serve(t *testing.T, h http.Handler, q request) answer {
	t.Helper()
	r, err := buildRequest(context.Background(), "http://127.0.0.1", q)
	if err != nil {
		t.Fatal(err)
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.RemoteAddr = "192.0.2.1:5"
	if r.Host == "" {
		r.Host = "127.0.0.1"
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// What goes wrong in the host is 500 with an id, and the log has the rest
// . Neither ever shows a key or a message.
func TestInternalErrors_R089(t *testing.T) {
	t.Parallel()
	for _, panics := range []bool{false, true} {
		var log bytes.Buffer
		h := rest.New(failingRuntime{err: errors.New("disk on fire at /data"), panic: panics}, newKeys(t), rest.Options{
			Swarm: "hive", Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		for _, q := range []request{
			{method: "POST", path: "/message", body: `{"body":"my private words"}`},
			{path: "/tasks"}, {path: "/task?task_id=t"}, {path: "/tasks/t"}, {path: "/skep/v1/tasks"},
			{path: "/skep/v1/tasks/t"}, {path: "/skep/v1/tasks/t/events"}, {path: "/skep/v1/tasks/t/history?agent=a"}, {path: "/skep/v1/tasks/t/turns"},
			{method: "POST", path: "/skep/v1/tasks/t/cancel"},
		} {
			log.Reset()
			a := serve(t, h, q)
			id := a.header.Get("X-Request-Id")
			if want := detail("internal error, see request " + id + " in the host's log"); a.status != http.StatusInternalServerError || a.body != want {
				t.Errorf("%s (panics: %v): %d %s, want 500 %s", q.path, panics, a.status, a.body, want)
			}
			if !strings.Contains(log.String(), "disk on fire") || !strings.Contains(log.String(), id) {
				t.Errorf("%s: the log does not tell: %s", q.path, log.String())
			}
			for _, secret := range []string{aliceToken, "my private words"} {
				if strings.Contains(log.String(), secret) {
					t.Errorf("%s: the log tells %q: %s", q.path, secret, log.String())
				}
			}
		}
	}
}

// Every kind of refusal has its status, whatever it is wrapped in.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for kind, want := range map[error]int{
		swarm.ErrInvalid: 400, swarm.ErrNotFound: 404, swarm.ErrConflict: 409, swarm.ErrLimit: 429,
		swarm.ErrDraining: 503, swarm.ErrFenced: 503, swarm.ErrUnavailable: 503, io.ErrUnexpectedEOF: 500,
	} {
		err := fmt.Errorf("somewhere: %w", &swarm.Refusal{Kind: kind, Text: "in words for the caller"})
		h := rest.New(definitionRuntime{failingRuntime{err: err}, &swarm.Definition{}}, newKeys(t), rest.Options{Swarm: "hive"})
		a := serve(t, h, request{method: "POST", path: "/message", body: `{"body":"b"}`})
		if a.status != want || (a.body == detail("in words for the caller")) != (want != 500) {
			t.Errorf("%v: %d %s, want %d", kind, a.status, a.body, want)
		}
		bare := rest.New(definitionRuntime{failingRuntime{err: kind}, &swarm.Definition{}}, newKeys(t), rest.Options{Swarm: "hive"})
		if a := serve(t, bare, request{method: "POST", path: "/message", body: `{"body":"b"}`}); a.status != want || a.body == detail("") {
			t.Errorf("%v alone: %d %s, want %d", kind, a.status, a.body, want)
		}
		if retry := a.header.Get("Retry-After") != ""; retry != (want == 503 || want == 429) {
			t.Errorf("%v: Retry-After %q", kind, a.header.Get("Retry-After"))
		}
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := rest.Server(http.NotFoundHandler(), false)
	if s.ReadHeaderTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 || s.WriteTimeout != 0 {
		t.Errorf("%+v", s)
	}
	h := newTestHost(t)
	a := h.do(request{path: "/", header: http.Header{"X-Long": {strings.Repeat("x", 64<<10)}}})
	if a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of header: %d", a.status)
	}
}

// TestPlainHTTP2: HTTP/2 without TLS is taken on loopback listeners alone.
func TestPlainHTTP2(t *testing.T) {
	t.Parallel()
	for _, loopback := range []bool{true, false} {
		srv := httptest.NewUnstartedServer(nil)
		srv.Config = rest.Server(http.NotFoundHandler(), loopback)
		srv.Start()
		t.Cleanup(srv.Close)
		var plain http.Protocols
		plain.SetUnencryptedHTTP2(true)
		tr := &http.Transport{Protocols: &plain}
		t.Cleanup(tr.CloseIdleConnections)
		rsp, err := (&http.Client{Transport: tr}).Get(srv.URL)
		if (err == nil) != loopback {
			t.Errorf("loopback %t: %v", loopback, err)
		}
		if err == nil {
			rsp.Body.Close()
		}
	}
}
