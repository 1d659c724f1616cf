package amp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/gatewaytest"
)

// published keeps what is published.
type published struct {
	messageBroker
	got *[]broker.Message
}

func (p published) Bind() error { return nil }

func (p published) Publish(_ context.Context, m broker.Message) error {
	*p.got = append(*p.got, m)
	return nil
}

// TestCapabilityQueues (M-020, M-095, M-114): the host shares a queue for each capability that partners
// with queues may ask for, and none for mail. A request of ours that names no agent goes to the queue of
// its capability at RabbitMQ, and is refused at Kafka, where agents share none.
func TestCapabilityQueues(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	partners := []gateway.Partner{
		{Name: "mill", Tenant: "default", Options: map[string]any{queuesOption: true}}, {Name: "plain", Tenant: "other"},
	}
	for _, p := range partners {
		rt.AddPartner(p)
	}
	answer := func(context.Context, *gatewaytest.Turn) gateway.Answer { return gateway.Answer{} }
	rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "a", Capabilities: []gateway.Capability{{ID: "translation"}, {ID: "x-a.b"}}}, answer)
	rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "b", Capabilities: []gateway.Capability{{ID: "translation"}, {ID: strings.Repeat("x", 200)}}}, answer)
	rt.Expose("other", gateway.ExposedAgent{Swarm: "hive", Name: "c", Capabilities: []gateway.Capability{{ID: "summarization"}}}, answer)
	q := New(Options{Runtime: rt, Partners: func() []gateway.Partner { return partners }, RabbitMQ: &RabbitMQ{Exchange: "amp", Swarm: "hive"}}).queue
	if got := slices.Sorted(slices.Values(q.sharedKeys())); !slices.Equal(got, []string{"capability.translation", "capability.x-a%2Eb"}) {
		t.Errorf("shared are %q", got)
	}
	var sent []broker.Message
	q.conn = published{got: &sent}
	m := message.Message{ID: "m", Type: message.Request, Source: message.Source{Agent: "a@hive"}, Destination: message.Destination{Capability: "x-a.b"}}
	if err := q.publish(t.Context(), message.AMP, m, []byte("text")); err != nil || len(sent) != 1 || sent[0].Key != "capability.x-a%2Eb" {
		t.Errorf("published %+v, %v", sent, err)
	}
	q = New(Options{Runtime: rt, Kafka: &Kafka{Prefix: "amp", Swarm: "hive"}}).queue
	if err := q.publish(t.Context(), message.AMP, m, []byte("text")); !errors.As(err, new(*gateway.Refusal)) {
		t.Errorf("at Kafka: %v", err)
	}
}
