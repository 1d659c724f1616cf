package gateway_test

import (
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
)

// framedConn is a connection of the partner depot that acknowledges what it gets.
type framedConn struct{ *iacptest.Conn }

func dialFramed(t *testing.T, addr string) framedConn {
	t.Helper()
	c, err := iacptest.Dial(addr, "a-token-of-the-realm-depot", "ack")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return framedConn{c}
}

func (c framedConn) send(t *testing.T, m iacptest.Message) {
	t.Helper()
	if err := c.Send(m.Text()); err != nil {
		t.Fatal(err)
	}
}

// next reads up to a message of a type, and acknowledges the questions and answers that come.
func (c framedConn) next(t *testing.T, kind string) iacptest.Message {
	t.Helper()
	for {
		m, err := c.Read()
		if err != nil {
			t.Fatalf("no %s: %v", kind, err)
		}
		if m.Type == "task_request" || m.Type == "task_response" {
			c.send(t, m.Reply("ack", map[string]any{"message_id": m.ID}))
		}
		if m.Type == kind {
			return m
		}
	}
}
