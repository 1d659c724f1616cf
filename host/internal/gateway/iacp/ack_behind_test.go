package iacp_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// stuckRuntime takes no message that wants no answer until the test goes on.
type stuckRuntime struct {
	gateway.Runtime
	goOn chan struct{}
}

// Ask implements [gateway.Runtime].
func (rt *stuckRuntime) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	if a.Kind == gateway.Tells {
		<-rt.goOn
	}
	return rt.Runtime.Ask(ctx, c, a)
}

// newStuckSite is a site of a [stuckRuntime] that waits half a second for acknowledgements.
func newStuckSite(t *testing.T) (*site, *stuckRuntime) {
	rt := &stuckRuntime{goOn: make(chan struct{})}
	s := newSite(t, func(o *iacp.Options) {
		rt.Runtime = o.Runtime
		o.Runtime, o.Ack, o.Heartbeat = rt, time.Second/2, time.Hour
	})
	return s, rt
}

// tells are more than a queue holds, of which queued fit into it.
const tells, queued = 300, 250

// fillQueue sends so many messages that the connection is not read until they are taken.
func fillQueue(t *testing.T, c *iacptest.Conn) {
	t.Helper()
	for n := range tells {
		if n == queued {
			exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack")
		}
		if err := c.Send(iacptest.New("context_share", "depot-1", "echo", map[string]any{"data": map[string]any{}}).Text()); err != nil {
			t.Fatal(err)
		}
	}
}

// outlastAcks waits for longer than the host waits for an acknowledgement: until it has ended another
// connection without one.
func (s *site) outlastAcks(t *testing.T) {
	t.Helper()
	c := s.dial(t, "ack")
	m := task("no acknowledgement")
	m.Sender.ID = "depot-2"
	exchange(t, c, m, "ack")
	for range 3 {
		readSilently(t, c, "task_response")
	}
	if got, err := c.Read(); err == nil {
		t.Fatalf("got %s", got.Raw)
	}
}

// letGo lets the messages be taken, and reads their acknowledgements.
func (rt *stuckRuntime) letGo(t *testing.T, c *iacptest.Conn) {
	t.Helper()
	close(rt.goOn)
	for range tells {
		readSilently(t, c, "ack")
	}
	exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack")
}

// TestAckBehindFullQueue (I-027): the time for an acknowledgement does not run while the connection is not
// read since its queue is full: the answer is not written again, and the connection goes on.
func TestAckBehindFullQueue(t *testing.T) {
	t.Parallel()
	s, rt := newStuckSite(t)
	agent := newSlowAgent(s)
	c := s.dial(t, "ack")
	exchange(t, c, slowTask(0), "ack")
	fillQueue(t, c)
	agent.answers <- "seven"
	got := readSilently(t, c, "task_response")
	if err := c.Send(got.Reply("ack", map[string]any{"message_id": got.ID}).Text()); err != nil {
		t.Fatal(err)
	}
	s.outlastAcks(t)
	rt.letGo(t, c)
}

// TestAnswerBehindFullQueue (I-027, I-057): so it is with the acknowledgement of a question of ours, and with
// its answer.
func TestAnswerBehindFullQueue(t *testing.T) {
	t.Parallel()
	s, rt := newStuckSite(t)
	c := s.dial(t, "ack")
	fillQueue(t, c)
	p, _ := s.rt.Partner("depot")
	p.Timeout = time.Second / 2
	carried := make(chan gateway.Carried, 1)
	go func() { carried <- s.g.Carry(context.WithoutCancel(t.Context()), p, delivery(uuid.NewString())) }()
	asked := readSilently(t, c, "task_request")
	for _, m := range []iacptest.Message{asked.Reply("ack", map[string]any{"message_id": asked.ID}), asked.Reply("task_response", map[string]any{"status": "completed", "result": "17"})} {
		if err := c.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	s.outlastAcks(t)
	close(rt.goOn)
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
}
