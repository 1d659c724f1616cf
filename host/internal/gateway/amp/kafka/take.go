package kafka

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"skep/host/internal/gateway/amp/broker"
)

// Header fields of a record. The key is the destination's agent.
const (
	protocolField    = "amp-protocol"
	typeField        = "amp-type"
	correlationField = "correlation-id"
	destinationField = "destination"
	idField          = "message-id"
)

// setAsidePause is the time between attempts to set a message aside.
const setAsidePause = time.Second

// takeAll hands records on until ctx ends.
func (c *Conn) takeAll(ctx context.Context, client *kgo.Client) {
	for ctx.Err() == nil {
		got := client.PollRecords(ctx, maxPoll)
		got.EachError(func(topic string, n int32, err error) { c.skip(ctx, client, topic, n, err) })
		got.EachRecord(func(r *kgo.Record) {
			if ctx.Err() == nil {
				c.take(ctx, client, r)
			}
		})
	}
}

// skip passes over records that cannot be read. The client repeats what may be over by then.
func (c *Conn) skip(ctx context.Context, client *kgo.Client, topic string, n int32, err error) {
	if _, is := errors.AsType[*kgo.ErrGroupSession](err); is || ctx.Err() != nil {
		return // watch tells when no broker answers
	}
	c.opt.Log.Warn("records of Kafka cannot be read", "topic", topic, "partition", n, "error", err)
	if large, is := errors.AsType[*kgo.ErrDecompressTooLarge](err); is {
		client.SetOffsets(map[string]map[int32]kgo.EpochOffset{large.Topic: {large.Partition: {Epoch: large.Epoch, Offset: large.NextOffset}}})
	}
}

// take hands a record on. One without a verdict when the connection ends comes again.
func (c *Conn) take(ctx context.Context, client *kgo.Client, r *kgo.Record) {
	taken := c.open(client, r)
	m := broker.Message{Type: c.kindOf(r.Topic), Agent: string(r.Key), ID: fieldOf(r, idField), Correlation: fieldOf(r, correlationField), Payload: r.Value}
	if m.Agent == "" {
		m.Agent = fieldOf(r, destinationField)
	}
	if !c.opt.Wants(m.Type, m.Agent) {
		taken()
		return
	}
	m.Key = r.Topic + " " + url.PathEscape(m.Agent) // it is for the log
	if len(m.Payload) > c.opt.MaxMessage {
		m.Payload = nil
	}
	c.opt.Take(ctx, m, func(v broker.Verdict) {
		if v == broker.Taken || v == broker.SetAside && c.setAside(ctx, client, r) {
			taken()
		}
	})
}

// fieldOf is a header field of a record, empty for none.
func fieldOf(r *kgo.Record, name string) string {
	for _, field := range r.Headers {
		if field.Key == name {
			return string(field.Value)
		}
	}
	return ""
}

// setAside copies a record to the topic of dead letters. It reports false when ctx ended first.
func (c *Conn) setAside(ctx context.Context, client *kgo.Client, r *kgo.Record) bool {
	for ctx.Err() == nil {
		dead := &kgo.Record{Topic: c.topic(deadTopic), Key: r.Key, Value: r.Value, Headers: r.Headers}
		err := client.ProduceSync(ctx, dead).FirstErr()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			c.opt.Log.Warn("a record cannot be set aside", "topic", dead.Topic, "error", err)
		}
		select {
		case <-time.After(setAsidePause):
		case <-ctx.Done():
		}
	}
	return false
}
