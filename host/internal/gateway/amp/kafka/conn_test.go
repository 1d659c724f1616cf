package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"skep/host/internal/gateway/amp/broker"
)

// reader is what a connection of the group amp.hive has taken.
type reader struct {
	*Conn
	mu  sync.Mutex
	got []broker.Message
	// verdict decides over a message; nil takes each.
	verdict func(m broker.Message, tell func(broker.Verdict))
	stop    func()
}

// startReader reads what is for the agent boss or for all, until the test ends or stop is called.
func startReader(t *testing.T, c *kfake.Cluster, verdict func(m broker.Message, tell func(broker.Verdict))) *reader {
	t.Helper()
	r := &reader{verdict: verdict}
	r.Conn = New(Options{
		Brokers: c.ListenAddrs(), Prefix: "amp", Group: "amp.hive", Keep: time.Hour, MaxMessage: 1 << 10, Log: slog.New(slog.DiscardHandler),
		Wants: func(_, agent string) bool { return agent == "boss" || agent == "" },
		Take: func(_ context.Context, m broker.Message, tell func(broker.Verdict)) {
			r.mu.Lock()
			r.got = append(r.got, m)
			r.mu.Unlock()
			if r.verdict == nil {
				tell(broker.Taken)
				return
			}
			r.verdict(m, tell)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(r.stop)
	for r.State() != nil {
		time.Sleep(time.Millisecond)
	}
	return r
}

// wait waits for n messages, and returns their texts.
func (r *reader) wait(t *testing.T, n int) (list []string) {
	t.Helper()
	for {
		r.mu.Lock()
		got := slices.Clone(r.got)
		r.mu.Unlock()
		if len(got) >= n {
			for _, m := range got {
				list = append(list, string(m.Payload))
			}
			return list
		}
		if t.Context().Err() != nil {
			t.Fatal("never")
		}
		time.Sleep(time.Millisecond)
	}
}

func newCluster(t *testing.T) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "amp.request", "amp.response", "amp.event", "amp.error", "amp.dlq"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func publish(t *testing.T, c *Conn, agent, text string) {
	t.Helper()
	if err := c.Publish(t.Context(), broker.Message{Type: "request", Agent: agent, ID: text, Protocol: "AMP/1.0", Payload: []byte(text)}); err != nil {
		t.Fatal(err)
	}
}

// TestOrder (M-096, V-M34): messages for an agent come in order, those for others do not come, and a
// connection that is made again goes on behind the last message that was taken with all before it.
func TestOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first := startReader(t, c, func(m broker.Message, tell func(broker.Verdict)) {
		if string(m.Payload) != "3" { // no verdict on this one
			tell(broker.Taken)
		}
	})
	for i := range 6 {
		publish(t, first.Conn, "boss", fmt.Sprint(i))
		publish(t, first.Conn, "other", "x")
	}
	if got := first.wait(t, 6); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5"}) {
		t.Errorf("came %q", got)
	}
	first.stop()
	second := startReader(t, c, nil)
	if got := second.wait(t, 3); !slices.Equal(got, []string{"3", "4", "5"}) {
		t.Errorf("then came %q", got)
	}
	second.stop()
	third := startReader(t, c, nil)
	publish(t, third.Conn, "", "to all")
	if got := third.wait(t, 1); !slices.Equal(got, []string{"to all"}) {
		t.Errorf("at last came %q", got)
	}
}

// TestSetAside (M-096): a message that was set aside is among the dead letters, whole, and does not
// come again. One that is too large comes without its payload.
func TestSetAside(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	done := make(chan struct{})
	r := startReader(t, c, func(_ broker.Message, tell func(broker.Verdict)) {
		tell(broker.SetAside)
		close(done)
	})
	large := strings.Repeat("x", 2<<10)
	publish(t, r.Conn, "boss", large)
	if got := r.wait(t, 1); got[0] != "" {
		t.Errorf("came %d bytes", len(got[0]))
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("amp.dlq"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list := client.PollFetches(t.Context()).Records()
	if len(list) != 1 || string(list[0].Value) != large || string(list[0].Key) != "boss" || fieldOf(list[0], idField) != large || fieldOf(list[0], protocolField) != "AMP/1.0" || fieldOf(list[0], typeField) != "request" {
		t.Errorf("set aside are %v", list)
	}
	<-done // a record that is among the dead letters before it is marked as taken comes again
	r.stop()
	again := startReader(t, c, nil)
	publish(t, again.Conn, "boss", "next")
	if got := again.wait(t, 1); !slices.Equal(got, []string{"next"}) {
		t.Errorf("then came %d messages, the first of %d bytes", len(got), len(got[0]))
	}
}

// TestCompressed: records that would take more memory than their bound are passed over, and those
// behind them come.
func TestCompressed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(2*maxBatch))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	bomb := &kgo.Record{Topic: "amp.request", Key: []byte("boss"), Value: bytes.Repeat([]byte("x"), maxBatch+1)}
	if err := client.ProduceSync(t.Context(), bomb).FirstErr(); err != nil {
		t.Fatal(err)
	}
	r := startReader(t, c, nil)
	publish(t, r.Conn, "boss", "behind")
	if got := r.wait(t, 1); !slices.Equal(got, []string{"behind"}) {
		t.Errorf("came %d messages, the first of %d bytes", len(got), len(got[0]))
	}
}

// TestPublishFails: what was not sent is told apart from what is in doubt.
func TestPublishFails(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	idle := New(Options{Brokers: c.ListenAddrs()})
	if err := idle.Publish(t.Context(), broker.Message{Type: "request"}); !errors.Is(err, broker.ErrAway) {
		t.Errorf("before it runs: %v", err)
	}
	r := startReader(t, c, nil)
	if err := r.Publish(t.Context(), broker.Message{Type: "none", Agent: "boss"}); !errors.Is(err, broker.ErrNoQueue) {
		t.Errorf("to a topic that does not exist: %v", err)
	}
	if err := r.Publish(t.Context(), broker.Message{Type: "request", Agent: "boss", Payload: make([]byte, 1<<20)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large one: %v", err)
	}
}

// TestCredentialRefused (M-096): the state of a connection says that the cluster refuses its user,
// and not that no broker answers.
func TestCredentialRefused(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "hive", "right"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	for _, refused := range []bool{false, true} {
		if refused { // where Kafka says so, the fake ends the connection
			cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(q kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl() // the client tries again if it sees the end of the connection first
				answer := q.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
				return answer, nil, true
			})
		}
		c := New(Options{Brokers: cluster.ListenAddrs(), Username: "hive", Password: "right", Mechanism: "plain", Prefix: "amp", Group: "amp.hive", Log: slog.New(slog.DiscardHandler)})
		client, err := kgo.NewClient(c.options()...)
		if err != nil {
			t.Fatal(err)
		}
		if err := ping(t.Context(), client); errors.Is(err, broker.ErrCredential) != refused || refused == (err == nil) {
			t.Errorf("refused %v: %v", refused, err)
		}
		client.CloseAllowingRebalance()
	}
}
