package iacp_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/spec/mail"
)

// TestForeignCircuitTells (I-075): messages that want no answer hide no failures: an agent that takes
// them and fails each question gets none for a while.
func TestForeignCircuitTells(t *testing.T) {
	t.Parallel()
	for name, features := range map[string][]string{"written": nil, "acknowledged": {"ack"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(o *iacp.Options) { o.FirstPause = time.Hour })
			c := s.dial(t, features...)
			go acknowledgeUnless(c, func(m iacptest.Message) bool { return m.Type == "task_request" })
			p, _ := s.rt.Partner("depot")
			for n := range 5 {
				tell := delivery(uuid.NewString())
				tell.Wrapper.Type = mail.Broadcast
				if got := s.g.Carry(t.Context(), p, tell); got.State != gateway.Taken {
					t.Fatalf("message %d: %+v", n, got)
				}
				if got := s.carryTo(t, "depot-1"); got.State != gateway.Later || got.Wait != 0 {
					t.Fatalf("question %d: %+v", n, got)
				}
			}
			if got := s.carryTo(t, "depot-1"); got.State != gateway.Later || got.Wait <= 0 {
				t.Errorf("after five failures: %+v", got)
			}
		})
	}
}

// TestForeignCircuitClosesByTells (I-075): the circuit of an agent that is only told closes when it
// has acknowledged five messages in a row after its rest. One that fails then opens it no more.
func TestForeignCircuitClosesByTells(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) { o.FirstPause = 300 * time.Millisecond })
	c := s.dial(t, "ack")
	var fails atomic.Bool
	go acknowledgeUnless(c, func(iacptest.Message) bool { return fails.Load() })
	p, _ := s.rt.Partner("depot")
	tell := func() gateway.Carried {
		d := delivery(uuid.NewString())
		d.Wrapper.Type = mail.Broadcast
		return s.g.Carry(t.Context(), p, d)
	}
	fails.Store(true)
	for n := range 5 {
		if got := tell(); got.State != gateway.Later || got.Wait != 0 {
			t.Fatalf("failure %d: %+v", n, got)
		}
	}
	got := tell()
	if got.State != gateway.Later || got.Wait <= 0 {
		t.Fatalf("after five failures: %+v", got)
	}
	fails.Store(false)
	for got.State == gateway.Later {
		time.Sleep(got.Wait)
		got = tell()
	}
	for n := range 4 {
		if got = tell(); got.State != gateway.Taken {
			t.Fatalf("message %d after the rest: %+v", n, got)
		}
	}
	fails.Store(true)
	if got = tell(); got.State != gateway.Later || got.Wait != 0 {
		t.Fatalf("a failure: %+v", got)
	}
	fails.Store(false)
	if got = tell(); got.State != gateway.Taken {
		t.Errorf("after one failure: %+v", got)
	}
}

// acknowledgeUnless reads messages until the connection ends: one that fails is refused for a
// moment, others are acknowledged.
func acknowledgeUnless(c *iacptest.Conn, fails func(iacptest.Message) bool) {
	for {
		m, err := c.Read()
		if err != nil {
			return
		}
		reply := m.Reply("ack", map[string]any{"message_id": m.ID})
		if fails(m) {
			reply = m.Reply("error_response", map[string]any{"error_code": "TIMEOUT", "error_message": "later", "retry_allowed": true})
		}
		_ = c.Send(reply.Text()) // the connection may have ended
	}
}
