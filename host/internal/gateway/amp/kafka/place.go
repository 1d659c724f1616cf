package kafka

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// partition names a partition of a topic.
type partition struct {
	topic string
	n     int32
}

// place is how far the records of a partition are taken. Its records come in order, and their
// verdicts need not. Conn.mu guards it.
type place struct {
	open []int64 // offsets of records without a verdict
	last int64
	// epoch is the leader's of the last record.
	epoch int32
}

// next is the offset of the first record that is not taken.
func (p *place) next() int64 {
	if len(p.open) > 0 {
		return slices.Min(p.open)
	}
	return p.last + 1
}

// open notes that a record is under way. taken moves the group's place on, unless the partition
// is another host's by then.
func (c *Conn) open(client *kgo.Client, r *kgo.Record) (taken func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := partition{r.Topic, r.Partition}
	p := c.places[at]
	if p == nil {
		p = &place{}
		c.places[at] = p
	}
	p.open, p.last, p.epoch = append(p.open, r.Offset), r.Offset, r.LeaderEpoch
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.places[at] != p {
			return
		}
		p.open = slices.DeleteFunc(p.open, func(offset int64) bool { return offset == r.Offset })
		client.MarkCommitOffsets(map[string]map[int32]kgo.EpochOffset{at.topic: {at.n: {Epoch: p.epoch, Offset: p.next()}}})
	}
}

// revoke commits what was taken of partitions that go to another host.
func (c *Conn) revoke(ctx context.Context, client *kgo.Client, gone map[string][]int32) {
	c.lose(ctx, client, gone)
	_ = client.CommitMarkedOffsets(ctx) // what is not committed comes again
}

// lose forgets the places of partitions.
func (c *Conn) lose(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, list := range gone {
		for _, n := range list {
			delete(c.places, partition{topic, n})
		}
	}
}
