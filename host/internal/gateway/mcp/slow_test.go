package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// An agent never waits for a client that does not read; when the client reads, the
// progress and the answer are all there.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const pieces = 4 << 10 // of 4 KiB, more than sockets hold
	ended := make(chan struct{})
	h := newHost(t, mcp.Options{}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		defer close(ended)
		for range pieces {
			turn.Progress(strings.Repeat("x", 4<<10), -1)
		}
		return gateway.Answer{Body: "done"}
	})
	id := h.initialize(t, "alice")
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calc","arguments":{"message":"x"},"_meta":{"progressToken":"p"}}}`
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer alice\r\nMcp-Session-Id: %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", conn.RemoteAddr(), id, len(body), body)
	<-ended
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "notifications/progress"); n != pieces || !strings.Contains(string(text), `"status":"done"`) {
		t.Errorf("%d notifications in %d bytes", n, len(text))
	}
}
