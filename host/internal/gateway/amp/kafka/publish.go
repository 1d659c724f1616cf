package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"skep/host/internal/gateway/amp/broker"
)

// ErrTooLarge means that the cluster takes no message of this size.
var ErrTooLarge = errors.New("the message is larger than Kafka takes: raise max.message.bytes of the topic")

// Publish sends a message and returns when the cluster has stored it. It does not end with ctx:
// what was sent is in doubt until then.
func (c *Conn) Publish(ctx context.Context, m broker.Message) error {
	c.mu.Lock()
	client, err := c.client, c.err
	c.mu.Unlock()
	if client == nil || err != nil {
		return broker.ErrAway
	}
	r := &kgo.Record{Topic: c.topic(m.Type), Value: m.Payload, Headers: []kgo.RecordHeader{{Key: typeField, Value: []byte(m.Type)}}}
	for name, text := range map[string]string{protocolField: m.Protocol, idField: m.ID, correlationField: m.Correlation, destinationField: m.Agent} {
		if text != "" {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(text)})
		}
	}
	if m.Agent != "" {
		r.Key = []byte(m.Agent)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTime)
	defer cancel()
	err = client.ProduceSync(ctx, r).FirstErr()
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("%w: the topic %s does not exist", broker.ErrNoQueue, r.Topic)
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return ErrTooLarge
	case err != nil:
		return fmt.Errorf("the cluster has not confirmed a message: %w", err)
	}
	return nil
}
