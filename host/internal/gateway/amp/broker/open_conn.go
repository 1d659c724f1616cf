package broker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// openConn is a connection to the broker that is open.
type openConn struct {
	// ctx ends with the connection.
	ctx     context.Context
	raw     net.Conn
	conn    *amqp.Connection
	channel *amqp.Channel
	// ended is for the connection, channelEnded for its channel, which the broker may end alone.
	ended, channelEnded chan *amqp.Error
	// cancelled gets the consumers whose queues were deleted at the broker.
	cancelled chan string
	// taking are the goroutines that hand messages on. shared has what ends the reading of a shared
	// queue, by its key. It belongs to the goroutine that serves.
	taking sync.WaitGroup
	shared map[string]context.CancelFunc
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

func (l *openConn) close() {
	_ = l.conn.CloseDeadline(time.Now().Add(dialTime))
	_ = l.raw.Close()
}

// open makes a connection, and declares what it needs at the broker.
func (c *Conn) open(ctx context.Context) (*openConn, error) {
	raw, vhost, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	_ = raw.SetDeadline(time.Now().Add(dialTime)) // the library clears it once the connection is open
	properties := amqp.Table{"connection_name": c.opt.Queue}
	conn, err := amqp.Open(&boundedConn{Conn: raw, max: uint64(c.opt.MaxMessage)}, amqp.Config{
		SASL: []amqp.Authentication{credential{&amqp.PlainAuth{Username: c.opt.Username, Password: c.opt.Password}, properties}}, Vhost: vhost,
		Heartbeat: heartbeat, FrameSize: frameSize, ChannelMax: 8, Locale: "en_US", Properties: properties,
	})
	if err != nil {
		_ = raw.Close()
		return nil, openError(err)
	}
	l := &openConn{
		ctx: ctx, raw: raw, conn: conn, ended: conn.NotifyClose(make(chan *amqp.Error, 1)), publishing: make(chan struct{}, maxPublishing),
		bound: map[string]bool{}, unroutable: map[routed]int{}, shared: map[string]context.CancelFunc{},
	}
	if l.channel, err = conn.Channel(); err == nil {
		l.returned = l.channel.NotifyReturn(make(chan amqp.Return, maxPublishing))
		l.channelEnded = l.channel.NotifyClose(make(chan *amqp.Error, 1))
		l.cancelled = l.channel.NotifyCancel(make(chan string, 1+maxShared))
		err = l.declare(c.opt)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// refusalCapability asks a broker to say when it refuses username and password: without it RabbitMQ ends the
// connection, as a broker that is lost does (https://www.rabbitmq.com/docs/auth-notification).
const refusalCapability = "authentication_failure_close"

// credential is a username and password with the properties that are sent beside them.
type credential struct {
	*amqp.PlainAuth
	properties amqp.Table
}

// Response implements [amqp.Authentication]. It adds the capability: the library asks for the response when it has
// set the capabilities to its own.
func (c credential) Response() string {
	if own, has := c.properties["capabilities"].(amqp.Table); has {
		own[refusalCapability] = true
	}
	return c.PlainAuth.Response()
}

// errUnanswered is what the library takes for a refusal.
var errUnanswered = errors.New("it ends the connection before it has answered username and password: it is lost, or refuses them without a word")

// openError is the error of a broker that does not let the host in.
func openError(err error) error {
	refused, is := errors.AsType[*amqp.Error](err)
	switch {
	case is && refused.Server && refused.Code == amqp.AccessRefused:
		return fmt.Errorf("%w: %w", ErrCredential, err)
	case errors.Is(err, amqp.ErrCredentials):
		return errUnanswered
	}
	return fmt.Errorf("it refuses the connection: %w", err)
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
func (l *openConn) declare(o Options) error {
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
		_, err = l.channel.QueueDeclare(o.Queue, true, false, false, false, queueArguments(o))
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

// queueArguments give a queue an order by priority, and dead letters.
func queueArguments(o Options) amqp.Table {
	return amqp.Table{"x-max-priority": maxPriority, "x-dead-letter-exchange": o.Exchange + setAsideSuffix}
}

// bind binds the keys that are wanted and are not bound on this connection. It unbinds none:
// answers may be under way, and a request to an agent that is not there gets an error.
func (l *openConn) bind(o Options) error {
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
