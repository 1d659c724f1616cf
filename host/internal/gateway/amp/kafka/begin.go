package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Times that ask for a place in a partition, and the answer for none.
// Source: https://kafka.apache.org/protocol (ListOffsets).
const (
	endTime  = -1
	noOffset = -1
)

// uncommitted is where kgo would begin a partition of which the group has no committed place.
var uncommitted = kgo.NewOffset().AtStart()

// offsets are places by topic and partition.
type offsets = map[string]map[int32]kgo.Offset

// beginTries is how often a cluster that says of no partition where to begin is asked, pingPause apart.
const beginTries = 5

// begin replaces the place of each partition that has no committed one by its first record of
// Options.Keep, or by its end if there is none. kgo's AfterMilli, which may lose a record that comes
// meanwhile, is for partitions alone that cannot be asked: it repeats the question.
func (c *Conn) begin(ctx context.Context, client *kgo.Client, found offsets) (offsets, error) {
	fresh := map[string][]int32{}
	for topic, list := range found {
		for n, at := range list {
			if at == uncommitted {
				fresh[topic] = append(fresh[topic], n)
			}
		}
	}
	if len(fresh) == 0 {
		return found, nil
	}
	ends, kept := c.askPlaces(ctx, client, fresh)
	for topic, list := range fresh {
		for _, n := range list {
			end, hasEnd := ends[partition{topic, n}]
			at, hasKept := kept[partition{topic, n}]
			if at == noOffset {
				at = end
			}
			found[topic][n] = kgo.NewOffset().At(at)
			if !hasEnd || !hasKept { // an error here would hold up the other partitions
				found[topic][n] = kgo.NewOffset().AfterMilli(c.keepFrom())
			}
		}
	}
	return found, ctx.Err()
}

// askPlaces asks for the partitions' ends and for their first records of Options.Keep. It asks for the ends first:
// a record that comes between the two answers is behind the end, and is read. A cluster that says nothing is asked
// again: it may be about to choose leaders.
func (c *Conn) askPlaces(ctx context.Context, client *kgo.Client, of map[string][]int32) (ends, kept map[partition]int64) {
	for try := 1; ; try++ {
		ends = c.listOffsets(ctx, client, of, endTime)
		kept = c.listOffsets(ctx, client, of, c.keepFrom())
		if len(ends) > 0 && len(kept) > 0 || try == beginTries {
			return ends, kept
		}
		c.opt.Log.Warn("Kafka says of no partition where a new group begins; it is asked again", "group", c.opt.Group, "topics", len(of), "after", pingPause.String())
		select {
		case <-time.After(pingPause):
		case <-ctx.Done():
			return ends, kept
		}
	}
}

// listOffsets asks for the first record of each partition whose time is at least milli, Unix
// milliseconds, or for the partition's end. A partition without such a record has noOffset, and one
// that cannot be asked is missing.
func (c *Conn) listOffsets(ctx context.Context, client *kgo.Client, of map[string][]int32, milli int64) map[partition]int64 {
	ask := kmsg.NewPtrListOffsetsRequest()
	ask.ReplicaID = -1 // a consumer
	for topic, list := range of {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, n := range list {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp = n, milli
			t.Partitions = append(t.Partitions, p)
		}
		ask.Topics = append(ask.Topics, t)
	}
	places := map[partition]int64{}
	for _, shard := range client.RequestSharded(ctx, ask) {
		if shard.Err != nil {
			c.opt.Log.Warn("a broker of Kafka does not say where partitions begin", "broker", shard.Meta.NodeID, "error", shard.Err)
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					c.opt.Log.Warn("Kafka does not say where a partition begins", "topic", t.Topic, "partition", p.Partition, "error", err)
					continue
				}
				places[partition{t.Topic, p.Partition}] = p.Offset
			}
		}
	}
	return places
}
