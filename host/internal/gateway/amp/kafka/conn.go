package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"skep/host/internal/gateway/amp/broker"
)

// Limits of a connection.
const (
	dialTime       = 10 * time.Second
	pingTime       = 5 * time.Second
	pingPause      = 2 * time.Second // between two looks at whether the cluster answers
	publishTime    = 30 * time.Second
	leaveTime      = 5 * time.Second
	commitInterval = time.Second
	fetchWait      = time.Second
	sessionTime    = 10 * time.Second // after a kill the group waits for so long
	heartbeat      = 3 * time.Second
	maxPoll        = 64       // records that are read at once
	fetchSize      = 4 << 20  // bytes of one answer; a larger record comes alone
	maxBatch       = 32 << 20 // bytes of records that were compressed together
	maxResponse    = 64 << 20 // bytes
	overhead       = 64 << 10 // bytes of a record beside its message
)

// Suffixes of the topics: one for each type of message, and one for what was set aside.
const (
	requestTopic  = "request"
	responseTopic = "response"
	eventTopic    = "event"
	errorTopic    = "error"
	deadTopic     = "dlq"
)

// Options of a connection.
type Options struct {
	// Brokers are the addresses, HOST:PORT, from which the client learns the others.
	Brokers []string
	// Username and Password are shown by the Mechanism, scram-sha-256,
	// scram-sha-512 or else plain; an empty name shows none.
	Username, Password, Mechanism string
	// TLS is nil for none.
	TLS *tls.Config
	// Prefix begins the names of the topics: PREFIX.request and so on. Group is the host's.
	Prefix, Group string
	// Keep is how old a message may be with which a new group begins.
	Keep time.Duration
	// Wants reports whether messages of a type for an agent are for the host; the others are
	// passed over.
	Wants func(kind, agent string) bool
	// Take gets a message, and its verdict is called once. ctx ends with the connection. The
	// next message comes when it returns.
	Take func(ctx context.Context, m broker.Message, verdict func(broker.Verdict))
	// MaxMessage bounds a message, in bytes. A larger one comes without its payload.
	MaxMessage int
	Log        *slog.Logger
}

// Conn is a connection to a cluster, while Run runs. It is safe for concurrent use.
type Conn struct {
	opt Options

	mu     sync.Mutex
	client *kgo.Client // nil while Run does not run
	err    error
	places map[partition]*place
}

// New returns a connection that is not made yet.
func New(o Options) *Conn {
	return &Conn{opt: o, err: broker.ErrAway, places: map[partition]*place{}}
}

// State returns why there is no connection, nil while there is one.
func (c *Conn) State() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Bind does nothing: a group reads its topics whole.
func (c *Conn) Bind() error { return nil }

func (c *Conn) set(client *kgo.Client, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client, c.err = client, err
}

// Run keeps the connection until ctx ends.
func (c *Conn) Run(ctx context.Context) {
	var client *kgo.Client
	made := make(chan struct{})
	client, err := kgo.NewClient(append(c.options(), kgo.AdjustFetchOffsetsFn(func(ctx context.Context, found offsets) (offsets, error) {
		<-made
		return c.begin(ctx, client, found)
	}))...)
	close(made)
	if err != nil {
		c.set(nil, err)
		c.opt.Log.Error("the connection to Kafka cannot be made", "group", c.opt.Group, "error", err)
		return
	}
	c.set(client, broker.ErrAway)
	var watching sync.WaitGroup
	watching.Go(func() { c.watch(ctx, client) })
	c.takeAll(ctx, client)
	watching.Wait()
	c.set(nil, broker.ErrAway)
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	_ = client.CommitMarkedOffsets(leave) // what is not committed comes again
	client.CloseAllowingRebalance()
}

func (c *Conn) options() []kgo.Opt {
	topics := make([]string, 0, 4)
	for _, suffix := range []string{requestTopic, responseTopic, eventTopic, errorTopic} {
		topics = append(topics, c.topic(suffix))
	}
	list := []kgo.Opt{
		kgo.ClientID(c.opt.Group), kgo.SeedBrokers(c.opt.Brokers...), kgo.DialTimeout(dialTime), kgo.DialTLSConfig(c.opt.TLS),
		kgo.AllowAutoTopicCreation(), kgo.DisableClientMetrics(), kgo.BrokerMaxReadBytes(maxResponse), kgo.MaxDecompressBatchBytes(maxBatch),
		kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(int32(c.opt.MaxMessage + overhead)), kgo.RecordDeliveryTimeout(publishTime), kgo.AllowIdempotentProduceCancellation(),
		kgo.ConsumerGroup(c.opt.Group), kgo.ConsumeTopics(topics...), kgo.ConsumeStartOffset(uncommitted), kgo.ConsumeResetOffset(kgo.NewOffset().AfterMilli(c.keepFrom())),
		kgo.FetchMaxBytes(fetchSize), kgo.FetchMaxPartitionBytes(fetchSize), kgo.FetchMaxWait(fetchWait),
		kgo.SessionTimeout(sessionTime), kgo.HeartbeatInterval(heartbeat), kgo.AutoCommitMarks(), kgo.AutoCommitInterval(commitInterval),
		kgo.OnPartitionsRevoked(c.revoke), kgo.OnPartitionsLost(c.lose),
	}
	if c.opt.Username != "" {
		list = append(list, kgo.SASL(c.mechanism()))
	}
	return list
}

// keepFrom is the time from which a new group takes messages, in Unix milliseconds.
func (c *Conn) keepFrom() int64 { return time.Now().Add(-c.opt.Keep).UnixMilli() }

// mechanism shows the user.
func (c *Conn) mechanism() sasl.Mechanism {
	switch user := (scram.Auth{User: c.opt.Username, Pass: c.opt.Password}); c.opt.Mechanism {
	case "scram-sha-256":
		return user.AsSha256Mechanism()
	case "scram-sha-512":
		return user.AsSha512Mechanism()
	}
	return plain.Auth{User: c.opt.Username, Pass: c.opt.Password}.AsMechanism()
}

func (c *Conn) topic(suffix string) string { return c.opt.Prefix + "." + suffix }

// watch looks from time to time whether the cluster answers.
func (c *Conn) watch(ctx context.Context, client *kgo.Client) {
	tick := time.NewTicker(pingPause)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := ping(ctx, client)
		if ctx.Err() != nil {
			return
		}
		was := c.State()
		c.set(client, err)
		refused := errors.Is(err, broker.ErrCredential)
		if err != nil && (was == nil || errors.Is(was, broker.ErrAway) || refused != errors.Is(was, broker.ErrCredential)) {
			what := "Kafka does not answer"
			if refused {
				what = "Kafka does not let the host in"
			}
			c.opt.Log.Warn(what, "group", c.opt.Group, "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func ping(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	err := client.Ping(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Errorf("%w: %w", broker.ErrCredential, err)
	}
	return fmt.Errorf("no broker answers: %w", err)
}

// kindOf is the type of the messages of a topic.
func (c *Conn) kindOf(topic string) string { return strings.TrimPrefix(topic, c.opt.Prefix+".") }
