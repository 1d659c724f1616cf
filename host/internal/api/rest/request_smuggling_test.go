package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A request whose end a proxy may see elsewhere is answered, and nothing that
// follows it on its connection is read as another.
func TestAmbiguousBodyEnds(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	const body, chunks, more = `{"body":"b"}`, "c\r\n{\"body\":\"b\"}\r\n0\r\n\r\n", "GET /whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + aliceToken + "\r\n\r\n"
	const both = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"
	old := func(request string) string { return strings.Replace(request, "HTTP/1.1", "HTTP/1.0", 1) }
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"length and chunks":      {posting(aliceToken, both) + chunks, 200},
		"chunks and length":      {posting(aliceToken, "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n") + chunks, 200},
		"chunks":                 {posting(aliceToken, "Transfer-Encoding: chunked\r\n") + chunks, 200},
		"a stream":               {posting(aliceToken, both) + "1a\r\n{\"body\":\"b\",\"stream\":true}\r\n0\r\n\r\n", 200},
		"a stranger's":           {posting("nobody", both) + chunks, 401},
		"no page":                {strings.Replace(posting(aliceToken, both), "/message", "/nowhere", 1) + chunks, 404},
		"a body nobody wants":    {strings.Replace(posting(aliceToken, both), "POST /message", "GET /whoami", 1) + chunks, 200},
		"old, chunks and length": {old(posting(aliceToken, "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 12\r\n")) + body, 200},
		"old":                    {old(posting(aliceToken, "Connection: keep-alive\r\nContent-Length: 12\r\n")) + body, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := h.dial(t)
			if _, err := io.WriteString(conn, c.request+more); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(conn)
			rsp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(rsp.Body)
			if err != nil || rsp.StatusCode != c.status || !rsp.Close {
				t.Errorf("%s %s, %v; the connection stays: %v", rsp.Status, text, err, !rsp.Close)
			}
			if rest, _ := io.ReadAll(in); len(rest) > 0 {
				t.Errorf("what followed was answered: %q", rest)
			}
		})
	}
	conn := h.dial(t)
	in := bufio.NewReader(conn)
	for range 2 {
		_, _ = fmt.Fprintf(conn, "%s%s", posting(aliceToken, "Content-Length: 12\r\n"), body)
		rsp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(t, rsp); a.status != http.StatusOK || rsp.Close {
			t.Errorf("with a length alone: %d, the connection closes: %v", a.status, rsp.Close)
		}
	}
}

// What is no request never reaches a handler: net/http answers it in plain text, echoes
// nothing of it, and closes the connection.
func TestUnreadableRequests(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	const get, host = "GET / HTTP/1.1\r\n", "Host: x\r\n"
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"no request line":   {"sneaky\r\n\r\n", 400},
		"no host":           {get + "X: sneaky\r\n\r\n", 400},
		"a header's name":   {get + host + "snea ky: 1\r\n\r\n", 400},
		"a path":            {"GET /%sneaky HTTP/1.1\r\n" + host + "\r\n", 400},
		"large headers":     {get + host + "X: " + strings.Repeat("sneaky", 10<<10) + "\r\n\r\n", 431},
		"a transfer coding": {"POST /message HTTP/1.1\r\n" + host + "Transfer-Encoding: sneaky\r\n\r\n", 501},
		"a version":         {"GET /sneaky HTTP/3.0\r\n" + host + "\r\n", 505},
	} {
		conn := h.dial(t)
		// A host that has read enough may close before the rest is sent.
		_, _ = io.WriteString(conn, c.request)
		rsp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := io.ReadAll(rsp.Body)
		if err != nil || rsp.StatusCode != c.status || !rsp.Close || strings.Contains(rsp.Status+string(text), "sneaky") ||
			rsp.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %s %s, %v; the connection stays: %v", name, rsp.Status, text, err, !rsp.Close)
		}
	}
}
