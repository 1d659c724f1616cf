package broker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
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

// Errors of [Conn.Publish].
var (
	// ErrAway means that nothing was sent: there is no connection.
	ErrAway = errors.New("the broker is not connected")
	// ErrNoQueue means that no queue gets messages with the key: the broker has returned it.
	ErrNoQueue = errors.New("no queue at the broker gets messages with this key")
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
	live *live // nil while there is none
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

func (c *Conn) setLive(l *live, err error) {
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
	c.setLive(l, nil)
	var taking sync.WaitGroup
	defer taking.Wait()
	defer end(nil)
	taking.Go(func() {
		for d := range deliveries {
			c.take(own, d)
		}
	})
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
		case <-tick.C:
			if err := l.bind(c.opt); err != nil {
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

// live is a connection that is made.
type live struct {
	// ctx ends with the connection.
	ctx     context.Context
	raw     net.Conn
	conn    *amqp.Connection
	channel *amqp.Channel
	// ended is for the connection, channelEnded for its channel, which the broker may end alone.
	ended, channelEnded chan *amqp.Error
	// publishing has a place for each message without a confirmation, and returned one for each
	// of these: a returned message comes before its confirmation.
	publishing chan struct{}
	returned   chan amqp.Return

	mu    sync.Mutex
	bound map[string]bool
	// unroutable counts the returned messages that their publishers have not seen yet.
	unroutable map[routed]int
}

// routed is a message with its key: of two that are alike, both are returned or neither.
type routed struct{ key, id string }

func (l *live) close() {
	_ = l.conn.CloseDeadline(time.Now().Add(dialTime))
	_ = l.raw.Close()
}

// open makes a connection, and declares what it needs at the broker.
func (c *Conn) open(ctx context.Context) (*live, error) {
	raw, vhost, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := amqp.Open(&boundedConn{Conn: raw, max: uint64(c.opt.MaxMessage)}, amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: c.opt.Username, Password: c.opt.Password}}, Vhost: vhost,
		Heartbeat: heartbeat, FrameSize: frameSize, ChannelMax: 8, Locale: "en_US", Properties: amqp.Table{"connection_name": c.opt.Queue},
	})
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("it refuses the connection: %w", err)
	}
	l := &live{
		ctx: ctx, raw: raw, conn: conn, ended: conn.NotifyClose(make(chan *amqp.Error, 1)), publishing: make(chan struct{}, maxPublishing),
		bound: map[string]bool{}, unroutable: map[routed]int{},
	}
	if l.channel, err = conn.Channel(); err == nil {
		l.returned = l.channel.NotifyReturn(make(chan amqp.Return, maxPublishing))
		l.channelEnded = l.channel.NotifyClose(make(chan *amqp.Error, 1))
		err = l.declare(c.opt)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (c *Conn) dial(ctx context.Context) (conn net.Conn, vhost string, err error) {
	u, err := url.Parse(c.opt.URL)
	if err != nil {
		return nil, "", err
	}
	if vhost = u.Path; len(vhost) > 1 {
		vhost = vhost[1:]
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if u.Scheme != "amqps" {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	} else {
		conn, err = (&tls.Dialer{Config: c.opt.TLS}).DialContext(ctx, "tcp", u.Host)
	}
	return conn, cmp.Or(vhost, "/"), err
}

// declare makes the exchanges and queues, and binds the queue of the host.
func (l *live) declare(o Options) error {
	aside, dead := o.Exchange+setAsideSuffix, o.Exchange+deadQueueSuffix
	err := l.channel.ExchangeDeclare(o.Exchange, amqp.ExchangeTopic, true, false, false, false, nil)
	if err == nil {
		err = l.channel.ExchangeDeclare(aside, amqp.ExchangeFanout, true, false, false, false, nil)
	}
	if err == nil {
		_, err = l.channel.QueueDeclare(dead, true, false, false, false, nil)
	}
	if err == nil {
		err = l.channel.QueueBind(dead, "", aside, false, nil)
	}
	if err == nil {
		_, err = l.channel.QueueDeclare(o.Queue, true, false, false, false, amqp.Table{"x-max-priority": maxPriority, "x-dead-letter-exchange": aside})
	}
	if err == nil {
		err = l.channel.Qos(prefetch, 0, false)
	}
	if err == nil {
		err = l.channel.Confirm(false)
	}
	if err != nil {
		return fmt.Errorf("the exchange %s and the queue %s cannot be declared: %w", o.Exchange, o.Queue, err)
	}
	return l.bind(o)
}

// bind binds the keys that are wanted and are not bound on this connection. It unbinds none:
// answers may be under way, and a request to an agent that is not there gets an error.
func (l *live) bind(o Options) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range o.Keys() {
		if l.bound[key] {
			continue
		}
		if err := l.channel.QueueBind(o.Queue, key, o.Exchange, false, nil); err != nil {
			return fmt.Errorf("the queue %s cannot be bound to %s: %w", o.Queue, key, err)
		}
		l.bound[key] = true
	}
	return nil
}

// Bind binds the queue to the keys that the options list.
func (c *Conn) Bind() error {
	c.mu.Lock()
	l := c.live
	c.mu.Unlock()
	if l == nil {
		return ErrAway
	}
	return l.bind(c.opt)
}

// Publish sends a message and returns when the broker has stored it in a queue. It does not end
// with ctx: what was sent is in doubt until then.
func (c *Conn) Publish(ctx context.Context, m Message) error {
	c.mu.Lock()
	l := c.live
	c.mu.Unlock()
	if l == nil {
		return ErrAway
	}
	return l.publish(ctx, c.opt.Exchange, m)
}

func (l *live) publish(ctx context.Context, exchange string, m Message) error {
	m.ID, m.Correlation = idBeside(m.ID), idBeside(m.Correlation)
	p := amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, Priority: m.Priority, MessageId: m.ID, CorrelationId: m.Correlation,
		Type: m.Type, Timestamp: time.Now(), Body: m.Payload,
	}
	if m.Expires > 0 {
		p.Expiration = fmt.Sprint(max(1, m.Expires.Milliseconds()))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)() // the library leaves a confirmation open
	select {
	case l.publishing <- struct{}{}:
		defer func() { <-l.publishing }()
	case <-ctx.Done():
		return ErrAway
	}
	confirmed, err := l.channel.PublishWithDeferredConfirm(exchange, m.Key, true, false, p)
	if err != nil {
		return err
	}
	stored, err := confirmed.WaitContext(ctx)
	if err != nil {
		_ = l.raw.Close() // a message may be returned late
		return fmt.Errorf("the broker has not confirmed a message: %w", err)
	}
	if l.wasReturned(routed{m.Key, m.ID}) {
		return ErrNoQueue
	}
	if !stored {
		return errors.New("the broker has not stored a message")
	}
	return nil
}

// idBeside is an id as AMQP has it beside a message: none where it has no room. The library would end
// the connection for that; the message itself has the id.
func idBeside(id string) string {
	if len(id) > maxShort {
		return ""
	}
	return id
}

// wasReturned reports whether a message that is confirmed was returned.
func (l *live) wasReturned(m routed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for more := true; more; {
		select {
		case r, isOpen := <-l.returned:
			if more = isOpen; isOpen { // it is closed with the connection
				l.unroutable[routed{r.RoutingKey, r.MessageId}]++
			}
		default:
			more = false
		}
	}
	n := l.unroutable[m]
	if n > 1 {
		l.unroutable[m] = n - 1
	} else {
		delete(l.unroutable, m)
	}
	return n > 0
}
