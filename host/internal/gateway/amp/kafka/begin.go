package kafka

import (
	"context"
	"fmt"

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

// begin replaces the place of each partition that has no committed one by its first record of
// Options.Keep, or by its end if there is none. It asks for the ends first: a record that comes
// between the two answers is behind the end, and is read. kgo's AfterMilli loses such a record.
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
	ends, err := listOffsets(ctx, client, fresh, endTime)
	if err != nil {
		return nil, err
	}
	kept, err := listOffsets(ctx, client, fresh, c.keepFrom())
	if err != nil {
		return nil, err
	}
	for topic, list := range fresh {
		for _, n := range list {
			at := kept[partition{topic, n}]
			if at == noOffset {
				at = ends[partition{topic, n}]
			}
			found[topic][n] = kgo.NewOffset().At(at)
		}
	}
	return found, nil
}

// listOffsets asks for the first record of each partition whose time is at least milli, Unix
// milliseconds, or for the partition's end. A partition without such a record has noOffset.
func listOffsets(ctx context.Context, client *kgo.Client, of map[string][]int32, milli int64) (map[partition]int64, error) {
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
	answer, err := ask.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("list offsets: %w", err)
	}
	places := map[partition]int64{}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("list offsets of %s, partition %d: %w", t.Topic, p.Partition, err)
			}
			places[partition{t.Topic, p.Partition}] = p.Offset
		}
	}
	for topic, list := range of {
		for _, n := range list {
			if _, ok := places[partition{topic, n}]; !ok {
				return nil, fmt.Errorf("list offsets of %s: no answer for partition %d", topic, n)
			}
		}
	}
	return places, nil
}
