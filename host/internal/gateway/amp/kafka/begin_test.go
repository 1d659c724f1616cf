package kafka

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestNewGroup (M-096): a group that begins takes a record that comes between the cluster's answers to
// where it is to begin, also when the cluster has not answered at first.
func TestNewGroup(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]int64{"answers": 0, "answers when it is asked again": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testNewGroup(t, refused)
		})
	}
}

// testNewGroup refuses some requests for places.
func testNewGroup(t *testing.T, refused int64) {
	t.Helper()
	c := newCluster(t)
	other, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var asked atomic.Int64
	c.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		n := asked.Add(1)
		if n <= refused {
			answer, _ := refusePlaces(r.(*kmsg.ListOffsetsRequest), "")
			return answer, nil, true
		}
		if n != refused+2 {
			return nil, nil, false
		}
		c.SleepControl(func() {
			between := &kgo.Record{Topic: "amp.request", Key: []byte("boss"), Value: []byte("between")}
			if err := other.ProduceSync(t.Context(), between).FirstErr(); err != nil {
				t.Error(err)
			}
		})
		return nil, nil, false
	})
	r := startReader(t, c, nil)
	if got := r.wait(t, 1); !slices.Equal(got, []string{"between"}) {
		t.Errorf("came %q", got)
	}
}

// refusePlaces answers that a topic's partitions have no leader, of all topics if it is empty, and reports whether
// there are any.
func refusePlaces(ask *kmsg.ListOffsetsRequest, of string) (answer *kmsg.ListOffsetsResponse, bad bool) {
	answer = ask.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, topic := range ask.Topics {
		one := kmsg.NewListOffsetsResponseTopic()
		one.Topic = topic.Topic
		for _, p := range topic.Partitions {
			at := kmsg.NewListOffsetsResponseTopicPartition()
			at.Partition, at.Offset = p.Partition, 0
			if of == "" || topic.Topic == of {
				bad = true
				at.ErrorCode = kerr.LeaderNotAvailable.Code
			}
			one.Partitions = append(one.Partitions, at)
		}
		answer.Topics = append(answer.Topics, one)
	}
	return answer, bad
}

// TestBadPartition (M-096): a partition without a leader holds up no other one, also in a group that
// begins.
func TestBadPartition(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		answer, bad := refusePlaces(r.(*kmsg.ListOffsetsRequest), "amp.error")
		return answer, nil, bad
	})
	r := startReader(t, c, nil)
	publish(t, r.Conn, "boss", "to a good one")
	if got := r.wait(t, 1); !slices.Equal(got, []string{"to a good one"}) {
		t.Errorf("came %q", got)
	}
}
