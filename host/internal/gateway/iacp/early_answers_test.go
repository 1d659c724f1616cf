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

// early sends an answer to a question that was not sent on the connection.
func early(t *testing.T, c *iacptest.Conn, question, text string) iacptest.Message {
	t.Helper()
	m := iacptest.New("task_response", "depot-1", "boss", map[string]any{"status": "completed", "result": text})
	m.Parent = question
	if err := c.Send(m.Text()); err != nil {
		t.Fatal(err)
	}
	exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack") // the answer is read
	return m
}

// TestEarlyAnswer (I-026, I-057, V-I15): a peer that has answered a question before the host was
// killed sends its answer again before the host sends the question again. The answer is taken,
// then acknowledged, and the question is not sent. On another connection the question is sent.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p, _ := s.rt.Partner("depot")
	c := s.dial(t, "ack")
	d := delivery(uuid.NewString())
	m := early(t, c, d.Wrapper.MessageID, "seven")
	if got := s.g.Carry(t.Context(), p, d); got.State != gateway.Taken {
		t.Fatalf("carried %+v", got)
	}
	if got := read(t, c, "ack"); got.Parent != m.ID {
		t.Errorf("got %s", got.Raw)
	}
	lost := delivery(uuid.NewString())
	early(t, c, lost.Wrapper.MessageID, "eight")
	_ = c.Close()
	for limit := time.Now().Add(time.Minute); s.g.Health().Connections > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the connection does not end")
		}
	}
	next := s.dial(t, "ack")
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan gateway.Carried, 1)
	go func() { ended <- s.g.Carry(ctx, p, lost) }()
	if got := read(t, next, "task_request"); got.ID != lost.Wrapper.MessageID {
		t.Errorf("got %s", got.Raw)
	}
	end()
	<-ended
}

// TestEarlyAnswers (I-026): an answer that no question is sent for is acknowledged after a while,
// and so are at once those for which there is no place.
func TestEarlyAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) { o.Ack = 40 * time.Millisecond })
	c := s.dial(t, "ack")
	wanted := map[string]bool{}
	for range 70 {
		m := iacptest.New("task_response", "depot-1", "boss", map[string]any{"status": "completed", "result": 1})
		m.Parent = uuid.NewString()
		wanted[m.ID] = true
		if err := c.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	for range 70 {
		delete(wanted, read(t, c, "ack").Parent)
	}
	if len(wanted) > 0 {
		t.Errorf("%d are not acknowledged", len(wanted))
	}
}
