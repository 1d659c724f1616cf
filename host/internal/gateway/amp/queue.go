package amp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	if err := q.conn.State(); err != nil {
		return fmt.Errorf("the broker: %w: look at [gateways.%s.%s]", err, Name, q.table)
	}
	return nil
}

// keyOf is the routing key of messages of a type for an agent. Each byte that a word of a key
// cannot have is %XX.
func keyOf(kind message.Type, agent string) string {
	var key strings.Builder
	key.WriteString(string(kind))
	if agent != "" {
		key.WriteByte('.')
	}
	for _, b := range []byte(agent) {
		if b <= ' ' || b >= 0x7f || strings.IndexByte(".*#%", b) >= 0 {
			fmt.Fprintf(&key, "%%%02X", b)
			continue
		}
		key.WriteByte(b)
	}
	return key.String()
}

// maxKey is the longest routing key, in bytes.
const maxKey = 255

// keys are the routing keys of messages for the host: for the agents that partners with queues
// see, for events to all, and for answers to agents of ours that have asked.
func (q *queue) keys() (list []string) {
	for _, p := range q.g.Partners() {
		if !isQueued(p) {
			continue
		}
		list = append(list, keyOf(message.Event, ""), keyOf(message.Request, registryAgent), keyOf(message.Request, contextAgent))
		for _, a := range q.g.Runtime.ExposedAgents(p.Caller()) {
			list = append(list, keyOf(message.Request, nameOf(a)), keyOf(message.Event, nameOf(a)))
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for sender := range q.senders {
		list = append(list, keyOf(message.Response, sender), keyOf(message.Error, sender))
	}
	return slices.DeleteFunc(list, func(key string) bool { return len(key) > maxKey })
}

// wants reports whether a message of a topic that all hosts read is for this one. An answer is for
// the host whose swarm its agent is of, which may not ask before it was started again. It is asked of
// each record of the mesh: it makes no list of keys.
func (q *queue) wants(kind message.Type, agent string) bool {
	if kind == message.Response || kind == message.Error {
		return q.isOwn(agent)
	}
	at := strings.LastIndexByte(agent, '@')
	isMesh := agent == "" && kind == message.Event || kind == message.Request && slices.Contains(reserved, agent)
	if !isMesh && at < 0 {
		return false
	}
	return slices.ContainsFunc(q.g.Partners(), func(p gateway.Partner) bool {
		return isQueued(p) && (isMesh || slices.ContainsFunc(q.g.Runtime.ExposedAgents(p.Caller()), func(a gateway.ExposedAgent) bool {
			return a.Name == agent[:at] && a.Swarm == agent[at+1:]
		}))
	})
}

func (q *queue) isOwn(agent string) bool { return strings.HasSuffix(agent, "@"+q.swarm) }

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

// take takes a message from the broker. While the host cannot, the message and those after it
// wait.
func (q *queue) take(ctx context.Context, m broker.Message, verdict func(broker.Verdict)) {
	in, c, err := q.read(ctx, m.Payload)
	for wait := firstTakePause; isHostFault(err); wait = min(2*wait, lastTakePause) { // the store did not say whether it is a repeat
		q.g.Log.Error("amp: a message at the broker could not be read", "message", in.ID, "error", err)
		if !gateway.Pause(ctx, wait) {
			verdict(broker.Kept)
			return
		}
		in, c, err = q.read(ctx, m.Payload)
	}
	if err != nil && in.Type == message.Event && q.isOwn(in.Source.Agent) {
		verdict(broker.Taken) // what our agents tell all comes to the host, too
		return
	}
	if err != nil {
		q.g.record(c, in, m.Payload, reply{}, err)
		q.g.Log.Warn("amp: a message at the broker is set aside", "key", m.Key, "message", in.ID, "reason", err)
		verdict(broker.SetAside)
		return
	}
	q.inOrder(sender{c.Principal.Tenant, c.Realm, in.Source.Agent}, func() {
		if isAnswer(in) && q.g.waiting.find(c, in.Headers.Correlation) == nil {
			q.takeEarly(ctx, c, in, m, verdict)
			return
		}
		q.takeOrKeep(ctx, c, in, m, verdict)
	})
}

// inOrder calls take behind the messages of the same sender, beside other senders: each waits for the
// host's disk. It waits for a place.
func (q *queue) inOrder(of sender, take func()) {
	q.taking <- struct{}{}
	done := make(chan struct{})
	q.mu.Lock()
	before := q.last[of]
	q.last[of] = done
	q.mu.Unlock()
	q.running.Go(func() {
		defer func() { <-q.taking }()
		if before != nil {
			<-before
		}
		take()
		q.mu.Lock()
		defer q.mu.Unlock()
		close(done)
		if q.last[of] == done {
			delete(q.last, of)
		}
	})
}

// takeOrKeep takes a message, or leaves it at the broker when the connection ends.
func (q *queue) takeOrKeep(ctx context.Context, c gateway.Caller, in message.Received, m broker.Message, verdict func(broker.Verdict)) {
	for wait := firstTakePause; ; wait = min(2*wait, lastTakePause) {
		if q.takeOnce(ctx, c, in, m) {
			verdict(broker.Taken)
			return
		}
		if !gateway.Pause(ctx, wait) {
			verdict(broker.Kept)
			return
		}
	}
}

func isAnswer(in message.Received) bool {
	return in.Type == message.Response || in.Type == message.Error
}

// takeEarly waits until the question of an answer is under way, as after a start of the host,
// and does not hold up other messages meanwhile.
func (q *queue) takeEarly(ctx context.Context, c gateway.Caller, in message.Received, m broker.Message, verdict func(broker.Verdict)) {
	q.mu.Lock()
	isPlace := q.early < maxEarly
	if isPlace {
		q.early++
	}
	q.mu.Unlock()
	if !isPlace {
		verdict(broker.SetAside)
		return
	}
	q.running.Go(func() {
		defer func() {
			q.mu.Lock()
			q.early--
			q.mu.Unlock()
		}()
		for last := time.Now().Add(earlyTime); time.Now().Before(last); {
			if q.g.waiting.find(c, in.Headers.Correlation) != nil && q.takeOnce(ctx, c, in, m) {
				verdict(broker.Taken)
				return
			}
			if !gateway.Pause(ctx, earlyPause) {
				verdict(broker.Kept)
				return
			}
		}
		verdict(broker.SetAside)
	})
}

// read reads a message, and finds the partner whose key has signed it.
func (q *queue) read(ctx context.Context, text []byte) (in message.Received, c gateway.Caller, err error) {
	if len(text) == 0 {
		return in, c, message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "the message is empty, or larger than max_body of [gateways.amp]")
	}
	if in, err = q.g.socketReader.Read(text); err != nil {
		return in, c, err
	}
	for _, p := range q.g.Partners() {
		if isQueued(p) && len(p.HMACKey) > 0 && ownsAgent(p, p.Name, in.Source.Agent) && in.Verify(p.HMACKey) == nil {
			return in, p.Caller(), q.g.checkProof(ctx, p.Caller(), &in, q.g.Keep)
		}
	}
	return in, c, message.Faultf(message.AuthenticationFailed, message.ReasonSignature, "the signature proves no sender")
}

// takeOnce makes one attempt. What the gateway answers itself is published before the message is
// acknowledged; an answer of an agent leaves by the outbox.
func (q *queue) takeOnce(ctx context.Context, c gateway.Caller, in message.Received, m broker.Message) (taken bool) {
	got, err := q.g.accept(ctx, c, in, m.Payload, true)
	if isHostFault(err) {
		if ctx.Err() == nil {
			q.g.Log.Error("amp: a message at the broker could not be taken", "message", in.ID, "error", err)
		}
		return false
	}
	q.g.record(c, in, m.Payload, got, err)
	switch {
	case err != nil && isAnswer(in):
		return true
	case err != nil:
		return q.reply(ctx, c, in, errorTo(in, q.g.faultOf(err)))
	case got.payload != nil:
		return q.reply(ctx, c, in, q.g.responseTo(c, in, *got.payload))
	case got.owed:
		return q.answerTaken(ctx, c, in, got, m.Again)
	}
	return true
}

// isHostFault reports whether an error is the host's and not the sender's: the same message may be
// taken later.
func isHostFault(err error) bool {
	if err == nil || errors.As(err, new(*message.Fault)) {
		return false
	}
	return !slices.ContainsFunc(kinds, func(k kind) bool { return errors.Is(err, k.err) }) || errors.Is(err, gateway.ErrDraining)
}

// answerTaken ends the time of a request that was taken, and answers a repeat by its sender.
func (q *queue) answerTaken(ctx context.Context, c gateway.Caller, in message.Received, got reply, again bool) bool {
	n, err := readNote(got.exchange)
	if err != nil {
		return false
	}
	if got.accepted {
		return q.reply(ctx, c, in, q.g.acceptedTo(c, got.exchange, n))
	}
	if !got.exchange.Duplicate {
		if n.Timeout > 0 {
			q.running.Go(func() { _, _ = q.g.await(ctx, c, got.exchange, n, socketWait) })
		}
		return true
	}
	a, ok, err := q.g.Runtime.Look(ctx, got.exchange)
	if again || err != nil || !ok || a.Outcome == gateway.NeedsInput {
		return err == nil
	}
	m, _ := q.g.answerTo(c, got.exchange, n, a)
	return q.reply(ctx, c, in, m)
}

// reply publishes a message to the sender of another. One for which there is no queue is gone: the
// sender has written, and does not read. So is one that the broker can take for no sender of this id, or for which the sender's queue has no room:
// while it waited, the sender's other messages would hold the places of all.
func (q *queue) reply(ctx context.Context, c gateway.Caller, in message.Received, m message.Message) bool {
	m.Destination.Agent = in.Source.Agent
	text, err := q.g.write(c, in.Token, m)
	if err != nil {
		q.g.Log.Error("amp: an answer cannot be written", "error", err)
		return true
	}
	err = q.publish(ctx, in.Token, m, text)
	if _, refused := errors.AsType[*gateway.Refusal](err); refused || errors.Is(err, broker.ErrNotStored) {
		q.g.Log.Warn("amp: an answer cannot be sent", "message", in.ID, "reason", err)
		return true
	}
	return err == nil || errors.Is(err, broker.ErrNoQueue)
}
