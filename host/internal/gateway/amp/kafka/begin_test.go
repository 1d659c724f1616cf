package kafka

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestNewGroup (M-096): a group that begins takes a record that comes between the cluster's answers to
// where it is to begin.
func TestNewGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	other, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var asked atomic.Int64
	c.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if asked.Add(1) != 2 {
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
