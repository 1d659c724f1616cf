package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
)

// dial opens a connection that a test writes to by hand.
func (h *testHost) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// statusOf reads the status of an answer, 0 when there is none.
func statusOf(c net.Conn) int {
	rsp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer func() { _ = rsp.Body.Close() }()
	return rsp.StatusCode
}

func posting(token, headers string) string {
	return "POST /message HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n" + headers + "\r\n"
}

// A body of which a byte comes now and then earns no time by that.
func TestDrippingBody(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Stall = 400 * time.Millisecond })
	for name, q := range map[string]struct{ head, piece string }{
		"with a length": {posting(aliceToken, "Content-Length: 100000\r\n"), "x"},
		"in chunks":     {posting(aliceToken, "Transfer-Encoding: chunked\r\n"), "1\r\nx\r\n"},
		"nobody's":      {posting("nobody", "Content-Length: 100000\r\n"), "x"},
		"not wanted":    {"GET /whoami HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\nAuthorization: Bearer " + aliceToken + "\r\n\r\n", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := h.dial(t)
			_, _ = io.WriteString(c, q.head)
			status := make(chan int, 1)
			go func() { status <- statusOf(c); _ = c.Close() }()
			for err := error(nil); err == nil; time.Sleep(20 * time.Millisecond) {
				_, err = io.WriteString(c, q.piece)
			}
			// The reset of the connection may overtake the answer.
			if got := <-status; got != 0 && got != http.StatusRequestTimeout && got != http.StatusUnauthorized && got != http.StatusOK {
				t.Errorf("status %d", got)
			}
		})
	}
}

// A large body has more time than a small one, as long as it comes.
func TestLargeBodyHasItsTime(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Stall, h.opt.MaxBody = 500*time.Millisecond, 4<<20 })
	c := h.dial(t)
	const pieces, size = 12, 64 << 10 // earns 12 s beyond the half second
	text := strings.Repeat("x", size)
	head := posting(aliceToken, fmt.Sprintf("Content-Length: %d\r\n", pieces*size))
	for range pieces {
		if _, err := io.WriteString(c, head+text); err != nil {
			t.Fatal(err)
		}
		head = ""
		time.Sleep(100 * time.Millisecond)
	}
	if got := statusOf(c); got != http.StatusBadRequest {
		t.Errorf("status %d, want 400: it is no JSON, but it came", got)
	}
}

// What is too large is refused whatever it says of its length, and neither is
// read to its end.
func TestOversizeBodies_S21(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.MaxBody, h.opt.Stall = 4096, 2*time.Second })
	for name, q := range map[string]struct{ head, piece string }{
		"says so":     {posting(aliceToken, "Content-Length: 1099511627776\r\n"), strings.Repeat("x", 64<<10)},
		"chunked":     {posting(aliceToken, "Transfer-Encoding: chunked\r\n"), "10000\r\n" + strings.Repeat("x", 64<<10) + "\r\n"},
		"tiny chunks": {posting(aliceToken, "Transfer-Encoding: chunked\r\n"), strings.Repeat("1\r\nx\r\n", 10_000)},
		"extensions":  {posting(aliceToken, "Transfer-Encoding: chunked\r\n"), strings.Repeat("1;"+strings.Repeat("e", 2000)+"\r\nx\r\n", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := h.dial(t)
			over := make(chan int64, 1)
			go func() {
				sent, _ := io.WriteString(c, q.head)
				for err := error(nil); err == nil; {
					var n int
					n, err = io.WriteString(c, q.piece)
					sent += n
				}
				over <- int64(sent)
			}()
			if got := statusOf(c); got != http.StatusRequestEntityTooLarge && got != http.StatusBadRequest && got != 0 {
				t.Errorf("status %d", got)
			}
			// It sends until it is cut, and most of that stays in the sockets.
			_ = c.(*net.TCPConn).CloseRead()
			if sent := <-over; sent > 64<<20 {
				t.Errorf("%d bytes were taken", sent)
			}
		})
	}
}

// No route reads a body whose length is too large.
func TestOversizeIsNotAwaited_S21(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.MaxBody = 4096 })
	for line, want := range map[string]int{"POST /message": 413, "GET /whoami": 200, "POST /skep/v1/tasks/t/cancel": 404} {
		c := h.dial(t)
		_, _ = io.WriteString(c, line+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+aliceToken+
			"\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n")
		rsp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(t, rsp); a.status != want || !rsp.Close {
			t.Errorf("%s: %d %s, the connection stays: %v", line, a.status, a.body, !rsp.Close)
		}
	}
}

// A body that is coded is refused as that, not as broken JSON.
func TestCodedBody(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for coding, want := range map[string]int{"gzip": 415, "br": 415, "Identity": 200, "": 200} {
		q := request{method: "POST", path: "/message", body: `{"body":"b"}`, header: http.Header{"Content-Encoding": {coding}}}
		if a := h.do(q); a.status != want || want == 415 && !strings.Contains(a.body, coding) {
			t.Errorf("%q: %d %s", coding, a.status, a.body)
		}
	}
}

// The server as a whole has no such page.
func TestAsterisk(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for method, want := range map[string]int{"GET": 404, "POST": 404, "OPTIONS": 405} {
		c := h.dial(t)
		_, _ = io.WriteString(c, method+" * HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		rsp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(t, rsp); a.status != want || (a.header.Get("Allow") != "") != (want == 405) {
			t.Errorf("%s *: %d %v", method, a.status, a.header)
		}
	}
}

func TestDeepJSON_S21(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for _, body := range []string{
		strings.Repeat("[", 400_000), strings.Repeat(`{"a":`, 100_000), `{"body":"b","kwargs":` + strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000) + "}",
	} {
		if a := h.do(request{method: "POST", path: "/message", body: body}); a.status != http.StatusBadRequest {
			t.Errorf("%.20s…: %d %s", body, a.status, a.body)
		}
	}
}

// Streams are bounded, of one principal before all together, and what is refused
// has posted nothing.
func TestStreamLimits(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.MaxStreams, h.opt.MaxStreamsPerPrincipal = 5, 2 })
	h.postAndWait(obj{"task_id": "t", "body": "b"})
	watch := request{path: "/skep/v1/tasks/t/events"}
	posted := request{method: "POST", path: "/message", body: `{"body":"b","task_id":"new","stream":true}`}
	expect := func(q request, status int, want string) {
		t.Helper()
		a := h.do(q)
		if a.status != status || want != "" && (a.body != detail(want) || a.header.Get("Retry-After") == "") {
			t.Errorf("%s: %d %s %v, want %d %s", q.path, a.status, a.body, a.header, status, want)
		}
		judge(t, q, a)
	}
	for range 3 {
		expect(watch, http.StatusOK, "") // it ends, and leaves its place
	}
	if err := h.handler.OpenStreams(auth.Principal{Tenant: "default", Role: auth.User, ID: "alice"}, 2); err != nil {
		t.Fatal(err)
	}
	const mine = "you have 2 event streams open; close one, or raise [server] max_streams_per_principal"
	expect(watch, http.StatusTooManyRequests, mine)
	expect(posted, http.StatusTooManyRequests, mine)
	expect(request{path: "/tasks/new"}, http.StatusNotFound, "")
	if err := h.handler.OpenStreams(auth.Principal{ID: "somebody"}, 2); err != nil {
		t.Fatal(err)
	}
	expect(request{path: "/skep/v1/tasks/t/events", token: bobToken}, http.StatusNotFound, "")
	if err := h.handler.OpenStreams(auth.Principal{ID: "another"}, 1); err != nil {
		t.Fatal(err)
	}
	const all = "5 event streams are open; come again later, or raise [server] max_streams"
	expect(request{path: "/skep/v1/tasks/t/events", token: bobToken}, http.StatusServiceUnavailable, all)
	if n := h.handler.Streams(); n != 5 {
		t.Errorf("%d streams are counted", n)
	}
}

// Every answer has the security headers, errors and the admin listener included.
func TestGuardedAnswers(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Loopback = true })
	admin := rest.NewAdmin(h.handler, rest.AdminOptions{})
	for _, q := range []request{
		{path: "/"}, {path: "/whoami"}, {path: "/nowhere"}, {path: "/whoami", token: "-"}, {method: "PUT", path: "/whoami"}, {path: "/docs"},
		{path: "/openapi.json"}, {path: "/whoami", host: "evil.example"}, {path: "/skep/v1/tasks/none/events"}, {method: "OPTIONS", path: "*"},
		{path: "/readyz"}, {path: "/metrics"},
	} {
		for name, handler := range map[string]http.Handler{"public": h.handler, "admin": admin} {
			a := serve(t, handler, q)
			for header, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Content-Security-Policy": "default-src 'none'"} {
				if got := a.header.Get(header); !strings.HasPrefix(got, want) {
					t.Errorf("%s %s %s: %s = %q", name, q.method, q.path, header, got)
				}
			}
			if a.header.Get("Strict-Transport-Security") != "" {
				t.Errorf("%s %s: a promise of TLS in the clear", name, q.path)
			}
		}
	}
	if a := serve(t, h.handler, request{path: "/whoami"}); a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("an answer for one caller may be kept: %v", a.header)
	}
}

// Preflights are answered for configured origins, without a key and without an
// effect, and count against no limit.
func TestPreflights(t *testing.T) {
	t.Parallel()
	const origin = "https://ui.example"
	h := newTestHost(t, func(h *testHost) { h.opt.Origins = []string{origin} })
	for _, c := range []struct {
		path, origin, method string
		status               int
	}{
		{"/message", origin, "POST", 204},
		{"/skep/v1/tasks/t/cancel", origin, "POST", 204},
		{"/nowhere", origin, "POST", 204},
		{"/message", "https://ui.example.evil", "POST", 405},
		{"/message", "https://UI.example", "POST", 405},
		{"/message", "https://ui.example:8443", "POST", 405},
		{"/message", "null", "POST", 405},
		{"/message", "", "POST", 405},
		{"/message", origin, "", 405},
	} {
		q := request{method: "OPTIONS", path: c.path, token: "-", header: http.Header{"Access-Control-Request-Headers": {"authorization,x-evil"}}}
		for header, value := range map[string]string{"Origin": c.origin, "Access-Control-Request-Method": c.method} {
			if value != "" {
				q.header.Set(header, value)
			}
		}
		a := h.do(q)
		allowed := a.header.Get("Access-Control-Allow-Headers")
		if a.status != c.status || strings.Contains(allowed, "evil") || (c.status == 204) != (allowed != "") {
			t.Errorf("%+v: %d %v", c, a.status, a.header)
		}
		if got := a.header.Get("Access-Control-Allow-Origin"); (got == origin) != (c.origin == origin) || got == "*" || a.header.Get("Vary") != "Origin" {
			t.Errorf("%+v: Allow-Origin %q, Vary %q", c, got, a.header.Get("Vary"))
		}
	}
}
