package iacp_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// writeCounter counts the writes on its connections.
type writeCounter struct {
	net.Listener
	writes *atomic.Int64
}

// Accept implements [net.Listener].
func (l writeCounter) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.writes}, err
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

// Write implements [net.Conn].
func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// newCountedSite is a site that holds acknowledgements for a delay and counts its writes.
func newCountedSite(t *testing.T, delay time.Duration) (*site, *atomic.Int64) {
	writes := new(atomic.Int64)
	return newSite(t, func(o *iacp.Options) {
		listen := o.Listen
		o.AckDelay, o.Heartbeat, o.Ack = delay, time.Hour, time.Hour
		o.Listen = func(ctx context.Context) (net.Listener, error) {
			l, err := listen(ctx)
			return writeCounter{l, writes}, err
		}
	}), writes
}

// alternate sends questions, each after the answer to the one before.
func alternate(t *testing.T, c *iacptest.Conn) {
	t.Helper()
	for range 4 {
		exchange(t, c, task("x"), "ack")
		read(t, c, "task_response")
	}
}

// A peer that sends one question after the other gets the acknowledgement and the answer, in this order, by
// one write.
func TestAckWithAnswer(t *testing.T) {
	t.Parallel()
	s, writes := newCountedSite(t, time.Hour)
	c := s.dial(t, "ack")
	alternate(t, c)
	before := writes.Load()
	m := task("y")
	if got := exchange(t, c, m, "ack"); got.Payload["message_id"] != m.ID {
		t.Errorf("acknowledged %s", got.Raw)
	}
	if got := read(t, c, "task_response"); got.Parent != m.ID {
		t.Errorf("answered %s", got.Raw)
	}
	if n := writes.Load() - before; n != 1 {
		t.Errorf("%d writes", n)
	}
}

// An acknowledgement that waits for an answer leaves without it after a moment.
func TestAckWithoutAnswer(t *testing.T) {
	t.Parallel()
	s, _ := newCountedSite(t, 50*time.Millisecond)
	agent := newSlowAgent(s)
	c := s.dial(t, "ack")
	alternate(t, c)
	for range 4 {
		exchange(t, c, slowTask(0), "ack")
		agent.answers <- "seven"
		read(t, c, "task_response")
	}
}

// A peer that sends the next question when the one before is acknowledged does not wait for answers.
func TestAckOfWindow(t *testing.T) {
	t.Parallel()
	s, _ := newCountedSite(t, time.Hour)
	agent := newSlowAgent(s)
	c := s.dial(t, "ack")
	const questions = 100
	for range questions {
		exchange(t, c, slowTask(0), "ack")
	}
	for range questions {
		agent.answers <- "seven"
		read(t, c, "task_response")
	}
}

// What the host sends while it holds an acknowledgement comes after it.
func TestAckBeforeAnotherMessage(t *testing.T) {
	t.Parallel()
	s, _ := newCountedSite(t, time.Hour)
	agent := newSlowAgent(s)
	c := s.dial(t, "ack")
	alternate(t, c)
	for _, m := range []iacptest.Message{slowTask(0), iacptest.New("context_share", "depot-1", "echo", map[string]any{"data": map[string]any{}})} {
		if err := c.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	readSilently(t, c, "ack")
	readSilently(t, c, "ack")
	agent.answers <- "seven"
	read(t, c, "task_response")
}
