package rest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
)

// mountedHandler is a handler of a mount that counts its calls.
type mountedHandler struct {
	calls atomic.Int64
	serve http.HandlerFunc // nil answers with the caller
}

func (m *mountedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.calls.Add(1)
	if m.serve != nil {
		m.serve(w, r)
		return
	}
	who, _ := auth.PrincipalOf(r.Context())
	fmt.Fprintf(w, "%s %s", who, r.PathValue("name"))
}

// mounted returns a handler with one mount, at /toy/:name for all methods.
func mounted(t *testing.T, opt rest.Options, m rest.Mount) *rest.Handler {
	t.Helper()
	opt.Swarm = "hive"
	h := rest.New(failingRuntime{}, newKeys(t), opt)
	if m.Pattern == "" {
		m.Pattern = "/toy/:name"
	}
	if err := h.Mount(m); err != nil {
		t.Fatal(err)
	}
	return h
}

// Every gate is in front of every mount (G-056, G-057).
func TestMountGates(t *testing.T) {
	t.Parallel()
	one := auth.Rate{Requests: 1, Per: time.Hour}
	valid := request{path: "/toy/a", token: aliceToken}
	for name, c := range map[string]struct {
		opt    rest.Options
		mount  rest.Mount
		ask    []request
		status []int
		calls  int64
	}{
		"a foreign host name": {
			opt: rest.Options{Loopback: true}, ask: []request{{path: "/toy/a", host: "evil.example"}}, status: []int{421},
		},
		"the rate of an address": {
			opt: rest.Options{Rate: one}, ask: []request{{path: "/toy/a"}, {path: "/toy/a"}}, status: []int{200, 429}, calls: 1,
		},
		"no credentials": {
			mount: rest.Mount{Proof: rest.BearerProof}, ask: []request{{path: "/toy/a", token: "-"}}, status: []int{401},
		},
		"a wrong token": {
			mount: rest.Mount{Proof: rest.BearerProof}, ask: []request{{path: "/toy/a", token: "guess-0000000000"}}, status: []int{401},
		},
		"too many without credentials": {
			opt: rest.Options{Rate: one}, mount: rest.Mount{Proof: rest.BearerProof},
			ask: []request{{path: "/toy/a", token: "-"}, {path: "/toy/a", token: "-"}, valid}, status: []int{401, 429, 200}, calls: 1,
		},
		"too many wrong tokens": {
			opt: rest.Options{AuthFailures: one}, mount: rest.Mount{Proof: rest.BearerProof},
			ask: []request{{path: "/toy/a", token: "guess-1"}, {path: "/toy/a", token: "guess-2"}}, status: []int{401, 429},
		},
		"the rate of a caller": {
			opt: rest.Options{Rate: one}, mount: rest.Mount{Proof: rest.BearerProof}, ask: []request{valid, valid}, status: []int{200, 429}, calls: 1,
		},
		"the rate of a tenant": {
			opt: rest.Options{TenantRate: one}, mount: rest.Mount{Proof: rest.BearerProof},
			ask: []request{valid, {path: "/toy/a", token: bobToken}}, status: []int{200, 429}, calls: 1,
		},
		"a proof that the handler refuses counts for the address": {
			opt: rest.Options{Rate: one}, ask: []request{{path: "/toy/a"}, {path: "/toy/a"}}, status: []int{401, 429}, calls: 1,
			mount: rest.Mount{Proof: rest.HandlerProof, Handler: &mountedHandler{serve: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(401)
			}}},
		},
		"a caller whom the handler does not identify counts for the address": {
			opt: rest.Options{Rate: one}, mount: rest.Mount{Proof: rest.HandlerProof},
			ask: []request{{path: "/toy/a"}, {path: "/toy/a"}}, status: []int{200, 429}, calls: 1,
		},
		"a body beyond the mount's bound": {
			mount: rest.Mount{MaxBody: 4}, ask: []request{{method: "POST", path: "/toy/a", body: "12345"}, {method: "POST", path: "/toy/a", body: "1234"}},
			status: []int{413, 200}, calls: 1,
		},
		"a body beyond the bound of a mount whose handler has the proof": {
			opt: rest.Options{}, ask: []request{{method: "POST", path: "/toy/a", body: "12345"}}, status: []int{418}, calls: 1,
			mount: rest.Mount{Proof: rest.HandlerProof, MaxBody: 4, Handler: &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
				if n, err := io.Copy(io.Discard, r.Body); n == 4 && errors.As(err, new(*http.MaxBytesError)) {
					w.WriteHeader(http.StatusTeapot)
				}
			}}},
		},
		"a body beyond the bound that the handler does not refuse": {
			ask: []request{{method: "POST", path: "/toy/a", body: "12345"}}, status: []int{413}, calls: 1,
			mount: rest.Mount{Proof: rest.HandlerProof, MaxBody: 4, Handler: &mountedHandler{serve: func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
			}}},
		},
		"a body beyond the listener's bound": {
			opt: rest.Options{MaxBody: 4}, ask: []request{{method: "POST", path: "/toy/a", body: "12345"}}, status: []int{413},
		},
		"a bound above the listener's": {
			opt: rest.Options{MaxBody: 4}, mount: rest.Mount{MaxBody: 5}, ask: []request{{method: "POST", path: "/toy/a", body: "12345"}},
			status: []int{200}, calls: 1,
		},
		"drain": {
			opt: rest.Options{Draining: func() bool { return true }}, ask: []request{{path: "/toy/a"}}, status: []int{503},
		},
		"another method": {
			mount: rest.Mount{Method: "GET"}, ask: []request{{method: "POST", path: "/toy/a"}, {method: "HEAD", path: "/toy/a"}},
			status: []int{405, 200}, calls: 1,
		},
		"another path": {ask: []request{{path: "/toy/a/b"}}, status: []int{404}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, ok := c.mount.Handler.(*mountedHandler)
			if !ok {
				m = &mountedHandler{}
				c.mount.Handler = m
			}
			h := mounted(t, c.opt, c.mount)
			var got []int
			for _, q := range c.ask {
				a := serve(t, h, q)
				got = append(got, a.status)
				if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("X-Request-Id") == "" {
					t.Errorf("%d has the headers %v", a.status, a.header)
				}
			}
			if !slices.Equal(got, c.status) || m.calls.Load() != c.calls {
				t.Errorf("answers %v after %d calls, want %v and %d", got, m.calls.Load(), c.status, c.calls)
			}
		})
	}
}

// A refusal names the document about who issues tokens for the resource, where there is one
// (https://www.rfc-editor.org/rfc/rfc9728#section-5.1).
func TestMountMetadata(t *testing.T) {
	t.Parallel()
	const base = "https://hive.example/.well-known/oauth-protected-resource"
	for metadata, want := range map[string]string{"": "", base: `, resource_metadata="` + base + `/toy/a%22b"`} {
		h := mounted(t, rest.Options{}, rest.Mount{Proof: rest.BearerProof, Metadata: metadata, Handler: &mountedHandler{}})
		for token, begin := range map[string]string{"-": `Bearer realm="skep"`, "guess-0000000000": `Bearer realm="skep", error="invalid_token"`} {
			a := serve(t, h, request{path: "/toy/a%22b", token: token})
			if got := a.header.Get("WWW-Authenticate"); a.status != 401 || got != begin+want {
				t.Errorf("%d %s, want %s", a.status, got, begin+want)
			}
		}
	}
}

// The handler has the caller and the parts of the path.
func TestMountPrincipal(t *testing.T) {
	t.Parallel()
	h := mounted(t, rest.Options{}, rest.Mount{Proof: rest.BearerProof, Handler: &mountedHandler{}})
	if a := serve(t, h, request{path: "/toy/a", token: bobToken}); a.body != "default/user:bob a" {
		t.Errorf("the handler saw %q", a.body)
	}
}

// A handler with a proof of its own may still ask for the caller's token.
func TestMountIdentify(t *testing.T) {
	t.Parallel()
	var h *rest.Handler
	h = mounted(t, rest.Options{}, rest.Mount{Proof: rest.HandlerProof, Handler: &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
		who, err := h.Identify(r)
		if err != nil {
			status, _ := rest.Status(err)
			http.Error(w, err.Error(), status)
			return
		}
		again, err := h.Identify(r)
		fmt.Fprint(w, who.Principal, again.Principal == who.Principal, err)
	}}})
	if a := serve(t, h, request{path: "/toy/a", token: bobToken}); a.body != "default/user:bob true <nil>" {
		t.Errorf("identified %q", a.body)
	}
	if a := serve(t, h, request{path: "/toy/a", token: "guess-0000000000"}); a.status != 401 || a.body != "invalid API key\n" {
		t.Errorf("a wrong token: %d %q", a.status, a.body)
	}
	if _, err := h.Identify(httptest.NewRequest("GET", "/toy/a", nil)); err == nil {
		t.Error("a request that passed no gate was identified")
	}
}

// identifying is a handler with a proof of its own that asks for the caller's token.
func identifying(t *testing.T, opt rest.Options, streams bool, next http.HandlerFunc) *rest.Handler {
	var h *rest.Handler
	h = mounted(t, opt, rest.Mount{Proof: rest.HandlerProof, Streams: streams, Handler: &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
		if _, err := h.Identify(r); err != nil {
			status, _ := rest.Status(err)
			w.WriteHeader(status)
			return
		}
		next(w, r)
	}}})
	return h
}

// A wrong token costs the address one call, a right one none: its caller has a rate.
func TestMountIdentifyRate(t *testing.T) {
	t.Parallel()
	h := identifying(t, rest.Options{Rate: auth.Rate{Requests: 2, Per: time.Hour}}, false, func(http.ResponseWriter, *http.Request) {})
	var got []int
	for _, token := range []string{aliceToken, "guess-1", bobToken, "guess-2", "guess-3", aliceToken, aliceToken} {
		got = append(got, serve(t, h, request{path: "/toy/a", token: token}).status)
	}
	if want := []int{200, 401, 200, 401, 429, 200, 429}; !slices.Equal(got, want) {
		t.Errorf("answers %v, want %v", got, want)
	}
}

// A stream whose caller the handler identifies counts for the caller: others at the same
// address have their own.
func TestMountIdentifiedStreams(t *testing.T) {
	t.Parallel()
	opened, end := make(chan struct{}), make(chan struct{})
	h := identifying(t, rest.Options{MaxStreamsPerPrincipal: 1}, true, func(http.ResponseWriter, *http.Request) {
		opened <- struct{}{}
		<-end
	})
	done := make(chan int)
	for _, token := range []string{aliceToken, bobToken} {
		go func() { done <- serve(t, h, request{path: "/toy/a", token: token}).status }()
		<-opened
	}
	if a := serve(t, h, request{path: "/toy/a", token: aliceToken}); a.status != http.StatusTooManyRequests {
		t.Errorf("a second stream: %d", a.status)
	}
	close(end)
	for range 2 {
		if status := <-done; status != 200 {
			t.Errorf("a stream: %d", status)
		}
	}
}

// A collision is an error at start, whatever the order.
func TestMountCollides(t *testing.T) {
	t.Parallel()
	for _, c := range [][]rest.Mount{
		{{Method: "GET", Pattern: "/message"}},
		{{Pattern: "/tasks/:id"}},
		{{Pattern: "/ui/agents"}},
		{{Pattern: "/skep/v1/gateways"}},
		{{Pattern: "/*all"}},
		{{Pattern: "no/slash"}},
		{{Pattern: "/a"}, {Method: "GET", Pattern: "/a"}},
		{{Pattern: "/a/:x"}, {Pattern: "/a/*rest"}},
		{{Pattern: "/a", MaxBody: -1}},
	} {
		h := rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive"})
		err := h.Mount(c...)
		if last := c[len(c)-1].Pattern; err == nil || !strings.Contains(err.Error(), last) {
			t.Errorf("Mount(%v) = %v", c, err)
		}
	}
}

// Bodies that do not fit beside the others are refused, of routes and of mounts alike;
// what was read, or left unread, gives its room back.
func TestHeldBodies(t *testing.T) {
	t.Parallel()
	const room = 4000
	reads := &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			w.WriteHeader(http.StatusOK)
		}
	}}
	half := &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, room/2))
		w.WriteHeader(http.StatusOK)
	}}
	h := rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive", MaxHeldBodies: room})
	for path, handler := range map[string]http.Handler{"/reads": reads, "/half": half} {
		if err := h.Mount(rest.Mount{Method: "POST", Pattern: path, Proof: rest.BearerProof, MaxBody: room / 4, Handler: handler}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Mount(rest.Mount{Method: "POST", Pattern: "/large", Proof: rest.BearerProof, Handler: reads}); err != nil {
		t.Fatal(err)
	}
	fits, beyond := strings.Repeat(" ", room/4), strings.Repeat(" ", room+1)
	pace := h.Pace("default") // of a message on a socket
	if err := errors.Join(pace.Acquire(room/4), pace.Acquire(room/2)); err != nil || pace.Acquire(room/4+1) == nil {
		t.Fatalf("messages have another room: %v", err)
	}
	if a := serve(t, h, request{method: "POST", path: "/large", token: aliceToken, body: fits + " "}); a.status != http.StatusServiceUnavailable {
		t.Fatalf("a body that does not fit beside messages: %d %s", a.status, a.body)
	}
	pace.Release(room/4 + room/2)
	for range 2 * room / len(fits) {
		for _, path := range []string{"/reads", "/half", "/large"} {
			if a := serve(t, h, request{method: "POST", path: path, token: aliceToken, body: fits}); a.status != http.StatusOK {
				t.Fatalf("%s with a body that fits: %d %s", path, a.status, a.body)
			}
		}
		if a := serve(t, h, request{method: "POST", path: "/message", token: aliceToken, body: fits}); a.status != http.StatusBadRequest {
			t.Fatalf("a body that fits: %d %s", a.status, a.body)
		}
		for _, path := range []string{"/large", "/message"} {
			a := serve(t, h, request{method: "POST", path: path, token: aliceToken, body: beyond})
			if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
				t.Fatalf("%s with a body that does not fit: %d %s", path, a.status, a.body)
			}
		}
	}
}

// Refusals of a mount's handler are in the audit log as the gates' are.
func TestMountAudit(t *testing.T) {
	t.Parallel()
	ears := &auditRecorder{}
	h := mounted(t, rest.Options{Audit: ears}, rest.Mount{Proof: rest.HandlerProof, Handler: &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{"a": 401, "b": 403, "c": 429, "d": 404}[r.PathValue("name")]
		w.WriteHeader(status)
	}}})
	for _, name := range []string{"a", "b", "c", "d"} {
		serve(t, h, request{path: "/toy/" + name})
	}
	if got := ears.recorded(); len(got) != 3 || !strings.Contains(strings.Join(got, "\n"), "* /toy/:name") {
		t.Errorf("the audit log has %q", got)
	}
}

// A body of unknown length is refused when it is too large, before all of it was read.
func TestMountBodyOfUnknownLength(t *testing.T) {
	t.Parallel()
	read := make(chan int64, 1)
	m := &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if read <- n; err == nil {
			w.WriteHeader(200)
		}
	}}
	server := httptest.NewServer(mounted(t, rest.Options{}, rest.Mount{MaxBody: 100, Handler: m}))
	defer server.Close()
	for size, want := range map[int]int{100: 200, 101: 413, 1 << 20: 413} {
		// A reader of its own has no length.
		body := io.MultiReader(strings.NewReader(strings.Repeat("x", size)))
		q, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/toy/a", body)
		if err != nil {
			t.Fatal(err)
		}
		a, err := server.Client().Do(q)
		n := <-read
		if err != nil { // the connection may end under a body that is still being sent
			if want == 200 {
				t.Errorf("a body of %d bytes: %v", size, err)
			}
			continue
		}
		a.Body.Close()
		if a.StatusCode != want || n > 100 {
			t.Errorf("a body of %d bytes: %d after %d bytes, want %d", size, a.StatusCode, n, want)
		}
	}
}

// A body that breaks off is answered by the host where the handler has not answered: with
// 200 its sender would take the message for accepted.
func TestMountBodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	m := &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			w.WriteHeader(http.StatusOK)
		}
	}}
	server := httptest.NewServer(mounted(t, rest.Options{}, rest.Mount{MaxBody: 100, Handler: m}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /toy/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nno number\r\n"); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if text, err := io.ReadAll(a.Body); a.StatusCode != http.StatusBadRequest || err != nil || !strings.Contains(string(text), "error reading request") {
		t.Errorf("%d %s, %v", a.StatusCode, text, err)
	}
}

// TestMountBodyBreaksOffHTTP2: the handler finds that a body of HTTP/2 is shorter than its Content-Length as it
// does over HTTP/1.1 (https://www.rfc-editor.org/rfc/rfc9113#section-8.1.1).
func TestMountBodyBreaksOffHTTP2(t *testing.T) {
	t.Parallel()
	found := make(chan error, 1)
	m := &mountedHandler{serve: func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		found <- err
	}}
	server := httptest.NewUnstartedServer(mounted(t, rest.Options{}, rest.Mount{MaxBody: 100, Handler: m}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	frame := func(kind, flags, stream byte, payload string) string {
		return string([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, stream}) + payload
	}
	var head string // literal fields (https://www.rfc-editor.org/rfc/rfc7541#section-6.2.2)
	for _, text := range []string{":method", "POST", ":scheme", "http", ":path", "/toy/a", ":authority", "x", "content-length", "50"} {
		if strings.HasPrefix(text, ":") || text == "content-length" {
			head += "\x00"
		}
		head += string([]byte{byte(len(text))}) + text
	}
	const settings, headers, data, endStream, endHeaders = 4, 1, 0, 1, 4
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(settings, 0, 0, "")+frame(headers, endHeaders, 1, head)+frame(data, endStream, 1, "hello")); err != nil {
		t.Fatal(err)
	}
	if err := <-found; !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "Content-Length of 50") {
		t.Errorf("the handler finds %v", err)
	}
}

// streamingMount sends a piece when told to, until its request ends.
func streamingMount(pieces <-chan string, ended chan<- error) *mountedHandler {
	return &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // as gRPC does
		for {
			select {
			case p := <-pieces:
				_, _ = io.WriteString(w, p+"\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				ended <- context.Cause(r.Context())
				return
			}
		}
	}}
}

// openStreamAt opens a stream as alice and returns what it sends.
func openStreamAt(ctx context.Context, t *testing.T, server *httptest.Server) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/toy/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+aliceToken)
	a, err := server.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Body.Close() })
	return a
}

// Pieces arrive as they are flushed, and a stream counts among the streams.
func TestMountStreams(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("http2 ", http2), func(t *testing.T) {
			t.Parallel()
			pieces, ended := make(chan string), make(chan error, 1)
			server := httptest.NewUnstartedServer(mounted(t, rest.Options{MaxStreamsPerPrincipal: 1},
				rest.Mount{Proof: rest.BearerProof, Streams: true, MaxBody: -1, Handler: streamingMount(pieces, ended)}))
			server.EnableHTTP2 = true
			if http2 {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			ctx, cancel := context.WithCancel(t.Context())
			a := openStreamAt(ctx, t, server)
			lines := bufio.NewReader(a.Body)
			for _, p := range []string{"one", "two"} {
				pieces <- p
				if line, err := lines.ReadString('\n'); line != p+"\n" || err != nil {
					t.Fatalf("read %q, %v", line, err)
				}
			}
			if second := openStreamAt(t.Context(), t, server); second.StatusCode != http.StatusTooManyRequests {
				t.Errorf("a second stream: %d", second.StatusCode)
			}
			cancel()
			<-ended
		})
	}
}

// A stream with a place of its own does not count among the streams of its caller.
func TestMountOwnPlaces(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 2)
	server := httptest.NewServer(mounted(t, rest.Options{MaxStreamsPerPrincipal: 1},
		rest.Mount{Proof: rest.BearerProof, Streams: true, OwnPlaces: true, MaxBody: -1, Handler: streamingMount(nil, ended)}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		if a := openStreamAt(ctx, t, server); a.StatusCode != http.StatusOK {
			t.Errorf("a stream: %d", a.StatusCode)
		}
	}
	cancel()
	<-ended
	<-ended
}

// A stream ends when its token is revoked.
func TestMountStreamOfRevokedToken(t *testing.T) {
	t.Parallel()
	known := &revocable{}
	ears := &auditRecorder{}
	h := rest.New(failingRuntime{}, known, rest.Options{Swarm: "hive", Ping: time.Millisecond, Audit: ears})
	ended := make(chan error, 1)
	if err := h.Mount(rest.Mount{Pattern: "/toy/:name", Proof: rest.BearerProof, Streams: true, Handler: streamingMount(nil, ended)}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	openStreamAt(t.Context(), t, server)
	known.revoked.Store(true)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "not valid any more") {
		t.Errorf("the stream ended with %v", err)
	}
	if got := ears.recorded(); len(got) != 1 {
		t.Errorf("the audit log has %q", got)
	}
}

// The check of a token goes on after its request.
func TestMountRecheck(t *testing.T) {
	t.Parallel()
	known := &revocable{}
	h := rest.New(failingRuntime{}, known, rest.Options{Swarm: "hive"})
	var who auth.Proven
	serveToy := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var err error
		if who, err = h.Identify(r); err != nil {
			t.Error(err)
		}
	})
	if err := h.Mount(rest.Mount{Pattern: "/toy/:name", Proof: rest.BearerProof, Handler: serveToy}); err != nil {
		t.Fatal(err)
	}
	serve(t, h, request{path: "/toy/a", token: bobToken})
	if who.Recheck == nil || !who.Recheck(t.Context()) {
		t.Fatal("the token does not hold")
	}
	if who.Digest != (auth.Digest{}) {
		t.Error("the digest of a token that is on no list can be stored")
	}
	known.revoked.Store(true)
	if who.Recheck(t.Context()) {
		t.Error("a revoked token holds")
	}
}

// revocable accepts every token until they are revoked.
type revocable struct{ revoked atomic.Bool }

func (v *revocable) Authenticate(context.Context, string) (auth.Principal, error) {
	if v.revoked.Load() {
		return auth.Principal{}, auth.ErrUnknown
	}
	return auth.Principal{Role: auth.User, ID: "alice"}, nil
}

// deadlines is a writer that remembers its last deadline.
type deadlines struct {
	*httptest.ResponseRecorder
	write time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = t
	return nil
}

// The deadline of a write to a stream does not outlast it: HTTP/2 would end the stream
// while it is silent. Other answers keep theirs until the next write.
func TestMountSilentStream(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{true, false} {
		h := mounted(t, rest.Options{}, rest.Mount{Streams: streams, Handler: &mountedHandler{}})
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequest("GET", "/toy/a", nil))
		if w.Code != 200 || w.write.IsZero() != streams {
			t.Errorf("a route that streams: %t has the deadline %v after %d", streams, w.write, w.Code)
		}
	}
}

// A panic of a mount's handler ends the request, not the host.
func TestMountPanics(t *testing.T) {
	t.Parallel()
	h := mounted(t, rest.Options{}, rest.Mount{Handler: &mountedHandler{serve: func(http.ResponseWriter, *http.Request) { panic("toy") }}})
	if a := serve(t, h, request{path: "/toy/a"}); a.status != 500 || strings.Contains(a.body, "toy") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
