package crash_test

import (
	"context"
	"log/slog"
	"testing"

	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/hosttest"
)

// newRabbitPeer makes acme's agents read at a broker.
func newRabbitPeer(t *testing.T, at *hosttest.RabbitMQ) *queuePeer {
	t.Helper()
	p := &queuePeer{t: t}
	take := func(ctx context.Context, m broker.Message, verdict func(broker.Verdict)) {
		got, err := p.receive(ctx, m.Payload)
		if m.Key != got.Message.Type+"."+got.Message.Destination.AgentID || m.ID != got.Message.ID {
			t.Errorf("under %s came %s", m.Key, m.Payload)
		}
		if err != nil {
			verdict(broker.Kept)
			return
		}
		verdict(broker.Taken)
	}
	conn := broker.New(broker.Options{
		URL: "amqp://" + at.Addr, Username: "guest", Password: "guest", Exchange: "amp", Queue: "amp.acme", MaxMessage: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Keys: func() []string {
			return []string{"request.agent-b", "event.agent-b", "response.agent-a", "error.agent-a"}
		},
		Take: take,
	})
	p.publishTo = func(ctx context.Context, kind, agent string, text []byte) error {
		return conn.Publish(ctx, broker.Message{Key: kind + "." + agent, Payload: text})
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	hosttest.Eventually(t, "acme is at the broker", func() bool { return conn.State() == nil })
	return p
}
