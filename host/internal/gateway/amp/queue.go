package amp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/gateway/amp/kafka"
	"skep/host/internal/gateway/amp/message"
)

// RabbitMQ is the broker over which partners with queues send and get messages (M-095).
type RabbitMQ struct {
	// URL is amqp://HOST:PORT/VHOST or amqps.
	URL                string
	Username, Password string
	TLS                *tls.Config
	// Exchange is where messages are published, Swarm ends the name of the host's queue there:
	// EXCHANGE.SWARM.
	Exchange, Swarm string
}

// Kafka are the brokers over which partners with queues send and get messages (M-096).
type Kafka struct {
	// Brokers are HOST:PORT.
	Brokers                       []string
	Username, Password, Mechanism string
	TLS                           *tls.Config
	// Prefix begins the names of topics, Swarm ends the name of the host's group: PREFIX.SWARM.
	Prefix, Swarm string
}

// messageBroker is a connection to a broker, while Run runs.
type messageBroker interface {
	Run(ctx context.Context)
	// State returns why there is no connection, nil while there is one.
	State() error
	// Bind makes messages come for what [queue.keys] lists.
	Bind() error
	// Publish returns when the broker has stored a message.
	Publish(ctx context.Context, m broker.Message) error
}

// queuesOption is the option of a partner whose messages go over the broker.
const queuesOption = "queues"

func isQueued(p gateway.Partner) bool {
	queued, _ := p.Options[queuesOption].(bool)
	return queued
}

// Limits of the queue.
const (
	maxEarly       = 16          // answers that wait for their question to be under way
	earlyTime      = time.Minute // for one of them; then it is set aside
	earlyPause     = 200 * time.Millisecond
	firstTakePause = 100 * time.Millisecond // between attempts to take a message
	lastTakePause  = 30 * time.Second
	maxSenders     = 4096 // agents of ours whose answers are bound, of one run
	maxTaking      = 32   // messages that are taken at once
)

// queue is the host's connection to the broker. What a message's sender is, its signature
// shows: anyone who may publish at the broker could have sent it.
type queue struct {
	g    *Gateway
	conn messageBroker
	// table is the broker's in swarm.toml, swarm ends the ids of agents of ours.
	table, swarm string

	mu      sync.Mutex
	senders map[string]bool // agents of ours that have asked, true when the keys of their answers are bound
	early   int
	// last is closed when the last message of a sender is taken, by the sender. taking has a place
	// for each message that is taken.
	last    map[sender]chan struct{}
	taking  chan struct{}
	running sync.WaitGroup
}

// sender is an agent of a partner.
type sender struct{ tenant, realm, agent string }

// newQueue returns the queue at the broker of the options, nil without one.
func newQueue(g *Gateway) *queue {
	q := &queue{g: g, senders: map[string]bool{}, last: map[sender]chan struct{}{}, taking: make(chan struct{}, maxTaking)}
	switch r, k := g.RabbitMQ, g.Kafka; {
	case r != nil:
		q.table, q.swarm = "rabbitmq", r.Swarm
		q.conn = broker.New(broker.Options{
			URL: r.URL, Username: r.Username, Password: r.Password, TLS: r.TLS, Exchange: r.Exchange, Queue: r.Exchange + "." + r.Swarm,
			Keys: q.keys, Shared: q.sharedKeys, Take: q.take, MaxMessage: int(g.MaxBody), Log: g.Log,
		})
	case k != nil:
		q.table, q.swarm = "kafka", k.Swarm
		q.conn = kafka.New(kafka.Options{
			Brokers: k.Brokers, Username: k.Username, Password: k.Password, Mechanism: k.Mechanism, TLS: k.TLS, Prefix: k.Prefix, Group: k.Prefix + "." + k.Swarm, Keep: g.Keep,
			Wants: func(kind, agent string) bool { return q.wants(message.Type(kind), agent) }, Take: q.take, MaxMessage: int(g.MaxBody), Log: g.Log,
		})
	default:
		return nil
	}
	return q
}

func (q *queue) run(ctx context.Context) {
	q.conn.Run(ctx)
	q.running.Wait()
}

// state is what is wrong with the connection, nil for nothing.
func (q *queue) state() error {
	if q == nil {
		return fmt.Errorf("the host started without a broker in [gateways.%s]: start it again", Name)
	}
	err := q.conn.State()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, broker.ErrCredential):
		return fmt.Errorf("the broker: %w: set username and password in [gateways.%s.%s] to some that it takes", err, Name, q.table)
	}
	return fmt.Errorf("the broker: %w: look at [gateways.%s.%s]", err, Name, q.table)
}

// expect makes answers for an agent of ours come to the host: it returns when their keys are bound.
func (q *queue) expect(sender string) error {
	q.mu.Lock()
	bound := q.senders[sender]
	if !bound {
		if len(q.senders) >= maxSenders {
			clear(q.senders) // their keys stay bound
		}
		q.senders[sender] = false
	}
	q.mu.Unlock()
	if bound {
		return nil
	}
	err := q.conn.Bind()
	if err == nil {
		q.mu.Lock()
		q.senders[sender] = true
		q.mu.Unlock()
	}
	return err
}

// publish sends a message of ours. Before it was sent it can be sent later.
func (q *queue) publish(ctx context.Context, token string, m message.Message, text []byte) error {
	if q == nil {
		return fmt.Errorf("%w: %w", q.state(), gateway.ErrBusy)
	}
	key, err := q.keyFor(m)
	if err != nil {
		return err
	}
	out := broker.Message{Key: key, ID: m.ID, Correlation: m.Headers.Correlation, Type: string(m.Type), Agent: m.Destination.Agent, Protocol: token + "/" + message.Version, Payload: text}
	if len(out.Key) > maxKey {
		return gateway.Refuse("the id of the agent makes a routing key of more than %d bytes", maxKey)
	}
	if m.Headers.Priority != nil {
		out.Priority = uint8(*m.Headers.Priority)
	}
	if m.Headers.Timeout != nil {
		out.Expires = time.Duration(*m.Headers.Timeout * float64(time.Millisecond))
	}
	if m.Type == message.Request {
		err = q.expect(m.Source.Agent)
	}
	if err == nil {
		err = q.conn.Publish(ctx, out)
	}
	if errors.Is(err, broker.ErrAway) || errors.Is(err, broker.ErrNoQueue) || errors.Is(err, broker.ErrNotStored) {
		err = fmt.Errorf("%w: %w", err, gateway.ErrBusy)
	}
	if errors.Is(err, kafka.ErrTooLarge) {
		return gateway.Refuse("%v", err)
	}
	return err
}
