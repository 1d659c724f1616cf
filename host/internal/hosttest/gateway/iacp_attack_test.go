package gateway_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// rogueTable is a partner whose agents are others than depot's.
const rogueTable = `[gateways.iacp.partners.rogue]
ids = ["rogue-*"]
[[auth.keys]]
id = "rogue"
role = "agent"
key = "a-token-of-the-realm-rogue"
[[auth.keys]]
id = "alice"
`

// TestIACPAttacks (I-051, I-053, I-060, I-062, I-073, V-I04, V-I06, V-I10, V-I41): what a host meets on
// its port ends each connection with its reason, where one can be read, and a peer beside it loses
// nothing: its question, asked before, has its answer after.
func TestIACPAttacks(t *testing.T) {
	t.Parallel()
	s, addr := newFramedSite(t, false, "[[auth.keys]]\nid = \"alice\"\n", rogueTable, "[gateways.iacp]\n", "[gateways.iacp]\nidle = \"1h\"\n", "ids = [\"depot-*\"]\n", "ids = [\"depot-*\"]\ntimeout = \"1h\"\n")
	good := dialFramed(t, addr)
	asked := iacptest.New("task_request", "depot-1", "boss", map[string]any{
		"task_type": "mail.message", "parameters": map[string]any{"body": hosttest.RequestOf("depot-1@depot", "go on?")},
	})
	good.send(t, asked)
	question := good.next(t, "task_request")
	t.Run("attacks", func(t *testing.T) {
		for name, c := range attacks {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c.run(t, addr)
			})
		}
		for name, run := range map[string]func(t *testing.T, addr string){
			"half-open sockets": attackHalfOpen, "one byte each moment": attackSlowly, "an identity twice": attackTwice, "an identity of another": attackAsAnother,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, addr)
			})
		}
	})
	good.send(t, question.Reply("task_response", map[string]any{"status": "completed", "result": "yes"}))
	if got := good.next(t, "task_response"); got.Parent != asked.ID || !strings.HasSuffix(fmt.Sprint(got.Payload["result"]), " yes") {
		t.Errorf("the peer beside gets %s", got.Raw)
	}
	if got := s.Do(hosttest.AliceKey, "after", hosttest.Step{"task_complete", hosttest.Args{"finish_message": "served"}}); got != "served" {
		t.Errorf("over REST: %s", got)
	}
}

// attackHalfOpen opens sockets that bring nothing.
func attackHalfOpen(t *testing.T, addr string) {
	t.Helper()
	var open sync.WaitGroup
	for range 200 {
		raw := dialRaw(t, addr)
		open.Go(func() {
			if got := readToEnd(t, raw); !strings.Contains(got, "no whole message came within 10 s") {
				t.Errorf("got %q", got)
			}
		})
	}
	open.Wait()
}

// attackSlowly brings a byte each moment until the connection ends.
func attackSlowly(t *testing.T, addr string) {
	t.Helper()
	raw := dialRaw(t, addr)
	over := make(chan string)
	go func() { over <- readToEnd(t, raw) }()
	for text := "\x00\x00\x10\x00"; ; text = " " {
		_, _ = io.WriteString(raw, text) // it fails when the connection has ended
		select {
		case <-over:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// attackTwice claims an agent that another connection has, too.
func attackTwice(t *testing.T, addr string) {
	t.Helper()
	twin := dialFramed(t, addr)
	if _, err := twin.Register("depot-1"); err != nil {
		t.Fatal(err)
	}
	own := iacptest.New("task_request", "depot-1", "boss", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"body": "no script"}})
	twin.send(t, own)
	if got := twin.next(t, "task_response"); got.Parent != own.ID {
		t.Errorf("the newer connection gets %s", got.Raw)
	}
	_ = twin.Close()
}

// attackAsAnother claims an agent of another partner.
func attackAsAnother(t *testing.T, addr string) {
	t.Helper()
	rogue, err := iacptest.Dial(addr, "a-token-of-the-realm-rogue")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rogue.Close() })
	if _, err := rogue.Register("depot-1"); err == nil || !strings.Contains(err.Error(), "PERMISSION_DENIED") {
		t.Errorf("a registration under another's id: %v", err)
	}
}

// attack is what one connection brings, after a handshake where it is proven, and how often, with
// what the host answers before the end.
type attack struct {
	proven bool
	bytes  string
	times  int
	want   string
}

var attacks = map[string]attack{
	"length 2^32-1":                     {false, "\xff\xff\xff\xff", 1, "4294967295 bytes, at most 16777216"},
	"length 2^32-1 after the handshake": {true, "\xff\xff\xff\xff", 1, "4294967295 bytes, at most 16777216"},
	"length 0 after the handshake":      {true, "\x00\x00\x00\x00", 1, "the frame is empty"},
	"TLS":                               {false, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 1, "speaks TLS"},
	"HTTP":                              {false, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", 1, `{"status":"ok","protocol":"iacp/1.0"}`},
	"HTTP after the handshake":          {true, "POST / HTTP/1.1\r\nHost: x\r\n\r\n", 1, `{"status":"ok","protocol":"iacp/1.0"}`},
	"garbage after the handshake":       {true, strings.Repeat("\xde\xad\xbe\xef", 1000), 1, "the frame is too large"},
	"ten messages that are none":        {true, "\x00\x00\x00\x02{}", 10, "INVALID_MESSAGE_FORMAT"},
}

// run brings the bytes and reads the connection to its end.
func (a attack) run(t *testing.T, addr string) {
	t.Helper()
	raw := dialRaw(t, addr)
	if a.proven {
		c, err := iacptest.Dial(addr, "a-token-of-the-realm-depot")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		raw = c.Conn
	}
	if _, err := io.WriteString(raw, strings.Repeat(a.bytes, a.times)); err != nil {
		t.Fatal(err)
	}
	if got := readToEnd(t, raw); strings.Count(got, a.want) < a.times {
		t.Errorf("got %q, want %q %d times", got, a.want, a.times)
	}
}

func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// readToEnd reads a connection until the host ends it, and returns what came.
func readToEnd(t *testing.T, c net.Conn) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Minute))
	got, err := io.ReadAll(c)
	if failed, is := err.(net.Error); is && failed.Timeout() {
		t.Errorf("the connection stays open; it has brought %q", got)
	}
	return string(got)
}
