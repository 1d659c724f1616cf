// Package broker owns the connection to a broker of MQTT 5: it is made again when it was
// lost, a message is acknowledged when it was taken, what waits is bounded, and publishing ends when the broker
// has the message. It must not know what the messages are.
package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
)

// Limits of a connection.
const (
	inFlight    = 32                 // messages that the broker sends before one is acknowledged
	keepAlive   = 30                 // seconds
	sessionLife = 7 * 24 * time.Hour // how long the broker keeps messages for a host that is away
	dialTime    = 10 * time.Second
	packetTime  = 20 * time.Second      // for the broker's answer to a packet
	ackInterval = 50 * time.Millisecond // between the times at which acknowledgements are sent
	firstPause  = 200 * time.Millisecond
	lastPause   = 10 * time.Second
)

// QoS of all messages: at least once.
const atLeastOnce = 1

// noSubscriber is the reason code of a PUBACK for a message without a subscriber
// (https://docs.oasis-open.org/mqtt/mqtt/v5.0/os/mqtt-v5.0-os.html#_Toc3901124).
const noSubscriber = 0x10

// Errors of [Conn.Publish].
var (
	// ErrAway means that nothing was sent: there is no connection.
	ErrAway = errors.New("the broker is not connected")
	// ErrNoReader means that no client of the broker reads the topic: it has dropped the
	// message.
	ErrNoReader = errors.New("nobody at the broker reads the topic")
)

// Options of a connection.
type Options struct {
	// URL is mqtt://HOST:PORT, or mqtts://HOST:PORT.
	URL                string
	ClientID           string
	Username, Password string
	// TLS is for mqtts; nil trusts what the system does.
	TLS *tls.Config
	// Filter is what is subscribed. Take gets its messages, one after the other: a message
	// is acknowledged when it returns true. Else the connection ends, and the next one gets the
	// message again: acknowledgements are sent in order, so those behind it would fill the
	// broker's window. ctx ends with the connection.
	Filter string
	Take   func(ctx context.Context, m Message) (taken bool)
	// MaxPacket is the size of a packet from the broker, in bytes. The broker drops larger ones.
	MaxPacket int
	Log       *slog.Logger
}

// Message is a message from the broker.
type Message struct {
	Topic   string
	Payload []byte
	// Again is set where the broker has sent it before.
	Again bool
}

// Conn is a connection to a broker, while Run runs.
type Conn struct {
	opt Options
	// probes is set for a connection that leaves nothing at the broker.
	probes bool

	mu     sync.Mutex
	client *paho.Client // nil while there is none
	lost   chan struct{}
	err    error

	// dropped counts the messages without room; the first has a line in the log.
	dropped atomic.Int64
}

// New returns a connection that is not made yet.
func New(o Options) *Conn { return &Conn{opt: o, err: ErrAway} }

// State returns why there is no connection, nil while there is one.
func (c *Conn) State() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Conn) set(client *paho.Client, lost chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client, c.lost, c.err = client, lost, err
}

// Run keeps the connection until ctx ends.
func (c *Conn) Run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		up, err := c.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		c.set(nil, nil, err)
		// A shorter one may be taken over by another client of this name again.
		if up && (time.Since(began) >= lastPause || errors.Is(err, errOverrun)) {
			pause = firstPause
		}
		c.opt.Log.Warn("the connection to the broker ended", "client_id", c.opt.ClientID, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, lastPause)
	}
	c.set(nil, nil, ErrAway)
}

// Step is what was tried when a connection could not be made.
type Step int

// The steps of a connection.
const (
	Dialing Step = iota + 1
	Connecting
	Subscribing
)

// StepError is why a connection could not be made.
type StepError struct {
	Step Step
	// Refused is set where the broker has answered.
	Refused bool
	Err     error
}

// Error implements error.
func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap implements errors.
func (e *StepError) Unwrap() error { return e.Err }

// serve makes one connection and serves it to its end. up reports whether it was made.
func (c *Conn) serve(ctx context.Context) (up bool, err error) {
	live, end := context.WithCancelCause(ctx)
	defer end(nil)
	client, leave, err := c.open(ctx, live, end)
	if err != nil {
		return false, err
	}
	defer leave()
	lost := make(chan struct{})
	defer close(lost)
	c.set(client, lost, nil)
	<-live.Done()
	return true, context.Cause(live)
}

// Probe makes a connection, subscribes, and leaves. Nothing is taken.
func Probe(ctx context.Context, o Options) error {
	c := New(o)
	c.opt.Take, c.probes = func(context.Context, Message) bool { return false }, true
	live, end := context.WithCancelCause(ctx)
	defer end(nil)
	_, leave, err := c.open(ctx, live, end)
	if err == nil {
		leave()
	}
	return err
}

// open makes a connection whose end calls end, which ends live. leave disconnects it, when what was
// taken is acknowledged.
func (c *Conn) open(ctx, live context.Context, end context.CancelCauseFunc) (client *paho.Client, leave func(), err error) {
	raw, err := c.dial(ctx)
	if err != nil {
		return nil, nil, &StepError{Step: Dialing, Err: err}
	}
	in := newInbox(c.opt.MaxPacket)
	client = paho.NewClient(paho.ClientConfig{
		Conn: packets.NewThreadSafeConn(&ending{Conn: raw, end: end, max: c.opt.MaxPacket, overrun: in.overrun.Load}), PacketTimeout: packetTime, EnableManualAcknowledgment: true, SendAcksInterval: ackInterval,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) { return true, c.keep(in, p.Packet) }},
		OnServerDisconnect: func(d *paho.Disconnect) {
			c.opt.Log.Warn("the broker disconnects", "client_id", c.opt.ClientID, "reason", fmt.Sprintf("%#x", d.ReasonCode))
		},
	})
	connack, err := client.Connect(ctx, c.connect())
	if err != nil {
		_ = raw.Close()
		if connack != nil {
			err = fmt.Errorf("it refuses the connection with the reason %#x", connack.ReasonCode)
		}
		return nil, nil, &StepError{Step: Connecting, Refused: connack != nil, Err: err}
	}
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		end(c.takeAll(live, client, in))
	}()
	leave = func() {
		end(nil)
		<-taken
		select {
		case <-time.After(2 * ackInterval):
		case <-client.Done():
		}
		_ = raw.SetWriteDeadline(time.Now().Add(packetTime)) // a broker may read no more
		_ = client.Disconnect(&paho.Disconnect{})            // the session stays
		<-client.Done()
	}
	suback, err := client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{
		{Topic: c.opt.Filter, QoS: atLeastOnce, RetainHandling: 2}, // nothing that was retained
	}})
	if err != nil {
		leave()
		if suback != nil && len(suback.Reasons) == 1 {
			err = fmt.Errorf("the reason is %#x", suback.Reasons[0])
		}
		return nil, nil, &StepError{Step: Subscribing, Refused: suback != nil, Err: fmt.Errorf("it refuses to subscribe %s: %w", c.opt.Filter, err)}
	}
	return client, leave, nil
}

func (c *Conn) connect() *paho.Connect {
	life, window, packet := uint32(sessionLife/time.Second), uint16(inFlight), uint32(c.opt.MaxPacket)
	if c.probes {
		life = 0
	}
	return &paho.Connect{
		CleanStart: c.probes, ClientID: c.opt.ClientID, KeepAlive: keepAlive,
		Username: c.opt.Username, UsernameFlag: c.opt.Username != "", Password: []byte(c.opt.Password), PasswordFlag: c.opt.Password != "",
		Properties: &paho.ConnectProperties{SessionExpiryInterval: &life, ReceiveMaximum: &window, MaximumPacketSize: &packet},
	}
}

func (c *Conn) dial(ctx context.Context) (net.Conn, error) {
	u, err := url.Parse(c.opt.URL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if u.Scheme != "mqtts" {
		return (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	}
	return (&tls.Dialer{Config: c.opt.TLS}).DialContext(ctx, "tcp", u.Host)
}

// keep lets a message wait until it is taken.
func (c *Conn) keep(in *inbox, p *paho.Publish) error {
	err := in.push(p)
	if errors.Is(err, errDropped) && c.dropped.Add(1) == 1 {
		c.opt.Log.Warn("a message at the broker is dropped, and perhaps more", "client_id", c.opt.ClientID, "topic", p.Topic, "reason", err)
	}
	return err
}

// errNotTaken ends a connection with a message that was not taken.
var errNotTaken = errors.New("a message was not taken; the broker is to send it again")

// takeAll hands messages on, and acknowledges each, until one is not taken, ctx ends, or the last
// before an overrun was taken. It returns why it ends the connection.
func (c *Conn) takeAll(ctx context.Context, client *paho.Client, in *inbox) error {
	for {
		p, ok := in.pop(ctx)
		if !ok {
			return errOverrun
		}
		taken := c.opt.Take(ctx, Message{Topic: p.Topic, Payload: p.Payload, Again: p.Duplicate()})
		in.release(p)
		if !taken {
			return errNotTaken
		}
		_ = client.Ack(p) // one that has left the library belongs to an ended connection
	}
}

// Publish sends a message and returns when the broker has it. lost is closed when the
// connection over which it went ends.
func (c *Conn) Publish(ctx context.Context, topic, contentType string, payload []byte) (lost <-chan struct{}, err error) {
	c.mu.Lock()
	client, lost := c.client, c.lost
	c.mu.Unlock()
	if client == nil {
		return nil, ErrAway
	}
	got, err := client.Publish(ctx, &paho.Publish{
		Topic: topic, QoS: atLeastOnce, Payload: payload, Properties: &paho.PublishProperties{ContentType: contentType},
	})
	if err == nil && got != nil && got.ReasonCode == noSubscriber {
		err = ErrNoReader
	}
	return lost, err
}
