package contract_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"skep/host/internal/gateway/contract"
)

// kafkaVariable has the addresses HOST:PORT of a real Kafka without TLS, separated by commas; without it a
// library's broker is tried.
const kafkaVariable = "SKEP_TEST_KAFKA_BROKERS"

// TestAMPKafka (M-020, M-091, M-096, M-098, G-042): the contract of gateways, held by AMP over Kafka in both
// directions.
func TestAMPKafka(t *testing.T) {
	t.Parallel()
	brokers := kafkaBrokers(t)
	contract.Run(t, ampBrokerProtocol(func(t testing.TB) (string, *ampMesh) {
		prefix := "mesh-" + uuid.NewString()
		mesh := newAMPMesh(t)
		mesh.at = openKafka(t, brokers, prefix, mesh)
		return fmt.Sprintf("[gateways.amp.kafka]\nbrokers = [\"%s\"]\nprefix = %q\nplain = true\n", strings.Join(brokers, `", "`), prefix), mesh
	}, map[string]string{
		"23/away": "a topic takes messages for agents that are away: TestAMPKafka/cases/17_deadlines has what an agent without an answer gets",
	}))
}

// kafkaBrokers are the brokers of a cluster.
func kafkaBrokers(t *testing.T) []string {
	t.Helper()
	if list := os.Getenv(kafkaVariable); list != "" {
		return strings.Split(list, ",")
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

// kafka is a client of partners, which reads all topics from their begin.
type kafka struct {
	prefix string
	client *kgo.Client
	mesh   *ampMesh
}

// kafkaTopics are the topics without their prefix.
var kafkaTopics = []string{"request", "response", "event", "error", "dlq"}

func openKafka(t testing.TB, brokers []string, prefix string, mesh *ampMesh) *kafka {
	t.Helper()
	k := &kafka{prefix: prefix, mesh: mesh}
	var topics []string
	for _, name := range kafkaTopics {
		topics = append(topics, prefix+"."+name)
	}
	var err error
	k.client, err = kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.ProducerBatchMaxBytes(4<<20), kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	k.makeTopics(t, topics)
	ctx, stop := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() { k.read(ctx) })
	t.Cleanup(func() {
		stop()
		reading.Wait()
		k.client.Close()
	})
	return k
}

// makeTopics makes topics of three partitions each.
func (k *kafka) makeTopics(t testing.TB, names []string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	for _, name := range names {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 3, 1
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(t.Context(), k.client)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range resp.Topics {
		if topic.ErrorCode != 0 {
			t.Fatalf("the topic %s: error %d", topic.Topic, topic.ErrorCode)
		}
	}
}

// read hands on what comes. A marker among the errors comes from settle.
func (k *kafka) read(ctx context.Context) {
	for ctx.Err() == nil {
		k.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			mark := ""
			for _, field := range r.Headers {
				if field.Key == markField {
					mark = string(field.Value)
				}
			}
			switch kind := strings.TrimPrefix(r.Topic, k.prefix+"."); {
			case kind == "dlq":
				k.mesh.deliver(mark, ampHeard{isAside: true})
			case kind == "error" && len(r.Value) == 0:
				k.mesh.deliver(mark, ampHeard{})
			case !strings.HasSuffix(string(r.Key), "@hive"):
				k.mesh.receive(r.Value)
			}
		})
	}
}

func (k *kafka) publish(ctx context.Context, m ampRecord) error {
	_, err := k.produce(ctx, m)
	return err
}

func (k *kafka) produce(ctx context.Context, m ampRecord) (*kgo.Record, error) {
	r := &kgo.Record{Topic: k.prefix + "." + m.kind, Key: []byte(m.agent), Value: m.text, Headers: []kgo.RecordHeader{
		{Key: "amp-type", Value: []byte(m.kind)}, {Key: "destination", Value: []byte(m.agent)}, {Key: markField, Value: []byte(m.mark)},
	}}
	return k.client.ProduceSync(ctx, r).First()
}

func (k *kafka) bind([]string) error   { return nil }
func (k *kafka) unbind([]string) error { return nil }

// settle waits until the place of the host's group is behind all events, and reads the errors to their
// present end: a record with the key of the client's agent is behind those for it.
func (k *kafka) settle(ctx context.Context, c ampQueueClient) error {
	if err := k.takenAll(ctx, k.prefix+".event"); err != nil {
		return err
	}
	q := k.mesh.ask("error", senderOf(c.Token), uuid.NewString())
	defer q.end()
	if _, err := k.produce(ctx, ampRecord{kind: q.kind, agent: q.agent, mark: q.mark}); err != nil {
		return err
	}
	select {
	case <-q.got:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// takenAll waits until the place of the host's group is at the end of a topic, in each partition.
func (k *kafka) takenAll(ctx context.Context, topic string) error {
	for n := range int32(3) {
		end, err := k.endOf(ctx, topic, n)
		if err != nil {
			return err
		}
		for at := int64(0); at < end; {
			if at, err = k.placeOf(ctx, topic, n); err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// endOf is the offset behind the last record of a partition.
func (k *kafka) endOf(ctx context.Context, topic string, n int32) (int64, error) {
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp = n, -1
	of := kmsg.NewListOffsetsRequestTopic()
	of.Topic, of.Partitions = topic, append(of.Partitions, part)
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = append(req.Topics, of)
	resp, err := req.RequestWith(ctx, k.client)
	if err != nil {
		return 0, err
	}
	return resp.Topics[0].Partitions[0].Offset, nil
}

// placeOf is the place of the host's group in a partition.
func (k *kafka) placeOf(ctx context.Context, topic string, n int32) (int64, error) {
	of := kmsg.NewOffsetFetchRequestTopic()
	of.Topic, of.Partitions = topic, append(of.Partitions, n)
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = k.prefix + ".hive"
	grouped := kmsg.NewOffsetFetchRequestGroupTopic()
	grouped.Topic, grouped.Partitions = topic, of.Partitions
	group.Topics = append(group.Topics, grouped)
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.Topics, req.Groups = group.Group, append(req.Topics, of), append(req.Groups, group)
	resp, err := req.RequestWith(ctx, k.client)
	switch {
	case err != nil:
		return 0, err
	case len(resp.Groups) > 0:
		return resp.Groups[0].Topics[0].Partitions[0].Offset, nil
	}
	return resp.Topics[0].Partitions[0].Offset, nil
}
