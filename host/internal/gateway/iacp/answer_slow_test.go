package iacp_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
)

// slowRuntime takes answers when the test lets it, also after their connection has ended.
type slowRuntime struct {
	gateway.Runtime
	begun, goOn chan struct{}
}

// Ask implements [gateway.Runtime].
func (rt *slowRuntime) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	if a.Kind == gateway.Answers {
		rt.begun <- struct{}{}
		<-rt.goOn
		ctx = context.WithoutCancel(ctx)
	}
	return rt.Runtime.Ask(ctx, c, a)
}

// TestAnswerTakenAfterItsAttempt (I-057): an answer that the store takes slowly, and whose connection
// ends meanwhile, ends the wait of the next attempt too.
func TestAnswerTakenAfterItsAttempt(t *testing.T) {
	t.Parallel()
	rt := &slowRuntime{begun: make(chan struct{}), goOn: make(chan struct{})}
	s := newSite(t, func(o *iacp.Options) {
		rt.Runtime, o.Runtime = o.Runtime, rt
		o.Heartbeat = 20 * time.Millisecond // by which the host sees that the connection has ended
	})
	p, _ := s.rt.Partner("depot")
	d := delivery(uuid.NewString())
	carry := func() <-chan gateway.Carried {
		carried := make(chan gateway.Carried, 1)
		go func() { carried <- s.g.Carry(context.WithoutCancel(t.Context()), p, d) }()
		return carried
	}
	first := s.dial(t)
	carried := carry()
	m := read(t, first, "task_request")
	if err := first.Send(m.Reply("task_response", map[string]any{"status": "completed", "result": "17"}).Text()); err != nil {
		t.Fatal(err)
	}
	<-rt.begun
	_ = first.Close()
	second := s.dial(t)
	again := carry()
	if got := <-carried; got.State == gateway.Taken {
		t.Fatalf("the connection has ended: %+v", got)
	}
	read(t, second, "task_request")
	close(rt.goOn)
	if got := <-again; got.State != gateway.Taken {
		t.Errorf("the next attempt: %+v", got)
	}
}
