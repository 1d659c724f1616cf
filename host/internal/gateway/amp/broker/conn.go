package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Limits of a connection.
const (
	prefetch    = 64        // messages that the broker sends before one is acknowledged
	frameSize   = 128 << 10 // bytes
	heartbeat   = 10 * time.Second
	dialTime    = 10 * time.Second
	confirmTime = 30 * time.Second
	firstPause  = 200 * time.Millisecond
	lastPause   = 10 * time.Second
	keysPause   = 2 * time.Second // between two looks at which keys are bound
	maxPriority = 10
	maxShort    = 255 // bytes of an id beside a message
	// maxPublishing bounds the messages that the broker has not confirmed: it writes many to its
	// disk at once.
	maxPublishing = 64
)

// Names at the broker, beside the exchange and the queue of the options: what was set aside
// goes to the exchange EXCHANGE.dlx, and from there to the queue EXCHANGE.dead.
const (
	setAsideSuffix  = ".dlx"
	deadQueueSuffix = ".dead"
)

// Verdict is what becomes of a message from the broker.
type Verdict int

// The verdicts.
const (
	// Kept leaves a message at the broker, which sends it again.
	Kept Verdict = iota
	// Taken removes it.
	Taken
	// SetAside moves it to the dead letters.
	SetAside
)

// Options of a connection.
type Options struct {
	// URL is amqp://HOST:PORT/VHOST, or amqps.
	URL                string
	Username, Password string
	// TLS is for amqps; nil trusts what the system does.
	TLS *tls.Config
	// Exchange is of the type topic, Queue is the host's. Both are durable.
	Exchange, Queue string
	// Keys are the routing keys whose messages the queue gets; they may change.
	Keys func() []string
	// Shared are the routing keys with a queue of their own, EXCHANGE.KEY, which other programs may
	// read as well: each of its messages comes to one of them. They may change. Nil is none.
	Shared func() []string
	// Take gets a message, and its verdict is called once. ctx ends with the connection.
	Take func(ctx context.Context, m Message, verdict func(Verdict))
	// MaxMessage bounds a message, in bytes. A larger one comes without its payload.
	MaxMessage int
	Log        *slog.Logger
}

// Message is a message from the broker, or for it.
type Message struct {
	Key, ID, Correlation, Type string
	// Agent is the destination, empty for all. Protocol is the name and version. Neither is
	// sent over AMQP, whose Key has the agent.
	Agent, Protocol string
	// Priority is 0 to 10. Expires is the time in the queue after which it is not delivered,
	// 0 for none.
	Priority uint8
	Expires  time.Duration
	Payload  []byte
	// Again is set where the broker has sent it before.
	Again bool
}

// Conn is a connection to a broker, while Run runs. It is safe for concurrent use.
type Conn struct {
	opt Options

	mu   sync.Mutex
	live *openConn // nil while there is none
	err  error
}

// New returns a connection that is not made yet.
func New(o Options) *Conn { return &Conn{opt: o, err: ErrAway} }

// State returns why there is no connection, nil while there is one.
func (c *Conn) State() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Conn) setLive(l *openConn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live, c.err = l, err
}

// Run keeps the connection until ctx ends.
func (c *Conn) Run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := c.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		c.setLive(nil, err)
		if time.Since(began) >= lastPause {
			pause = firstPause
		}
		c.opt.Log.Warn("the connection to the broker ended", "queue", c.opt.Queue, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, lastPause)
	}
	c.setLive(nil, ErrAway)
}

// serve makes one connection and serves it to its end.
func (c *Conn) serve(ctx context.Context) error {
	own, end := context.WithCancelCause(ctx)
	defer end(nil)
	l, err := c.open(own)
	if err != nil {
		return err
	}
	defer l.close()
	deliveries, err := l.channel.ConsumeWithContext(own, c.opt.Queue, "", false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("it refuses to read the queue %s: %w", c.opt.Queue, err)
	}
	defer l.taking.Wait()
	defer end(nil)
	c.setLive(l, nil)
	c.takeAll(l, deliveries)
	if err := c.readShared(l); err != nil {
		return err
	}
	tick := time.NewTicker(keysPause)
	defer tick.Stop()
	for {
		select {
		case err := <-l.ended:
			return c.setLost(err)
		case err := <-l.channelEnded:
			return c.setLost(err)
		case <-own.Done():
			return context.Cause(own)
		case _, isOpen := <-l.cancelled: // closed with the channel
			if isOpen {
				return errors.New("a queue that is read was deleted")
			}
			l.cancelled = nil
		case <-tick.C:
			if err := errors.Join(l.bind(c.opt), c.readShared(l)); err != nil {
				return err
			}
		}
	}
}

// setLost shows at once that the connection is gone, and returns why; the library has nil for one
// that was closed.
func (c *Conn) setLost(err *amqp.Error) error {
	why := errors.New("the connection was lost")
	if err != nil {
		why = fmt.Errorf("%w: %w", why, err)
	}
	c.setLive(nil, why)
	return why
}

// takeAll hands messages on until their channel is closed.
func (c *Conn) takeAll(l *openConn, deliveries <-chan amqp.Delivery) {
	l.taking.Go(func() {
		for d := range deliveries {
			c.take(l.ctx, d)
		}
	})
}

// take hands a message on. One without a verdict when the connection ends is sent again.
func (c *Conn) take(ctx context.Context, d amqp.Delivery) {
	if ctx.Err() != nil {
		return
	}
	m := Message{Key: d.RoutingKey, ID: d.MessageId, Correlation: d.CorrelationId, Type: d.Type, Priority: d.Priority, Payload: d.Body, Again: d.Redelivered}
	c.opt.Take(ctx, m, func(v Verdict) {
		switch v { // without its answer the broker sends it again
		case Taken:
			_ = d.Ack(false)
		case SetAside:
			_ = d.Nack(false, false)
		default:
			_ = d.Nack(false, true)
		}
	})
}
