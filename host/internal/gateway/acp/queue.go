package acp

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/broker"
	"skep/host/internal/gateway/acp/message"
	"skep/spec/mail"
)

// MQTT is the broker over which partners with topics send and get messages.
type MQTT struct {
	// URL is mqtt://HOST:PORT or mqtts://HOST:PORT.
	URL string
	// ClientID begins the names of the connections, one for each partner: a colon and the
	// partner's topics follow, so that a session at the broker stays with what it has subscribed.
	ClientID           string
	Username, Password string
	TLS                *tls.Config
	// Partners are those in force.
	Partners func() []gateway.Partner
}

// topicsOption is the option of a partner with its topics: below them its agents write to
// AGENT/out and read at AGENT/in.
const topicsOption = "topics"

// The ends of topics.
const (
	topicIn  = "/in"
	topicOut = "/out"
)

// maxPacket bounds a packet of the broker, in bytes. The broker drops larger ones without a
// word, so what is little above max_body is still taken, and refused
// (https://docs.oasis-open.org/mqtt/mqtt/v5.0/os/mqtt-v5.0-os.html 3.1.2.11.4).
const maxPacket = 2 * MaxMessage

// queues are the connections to the broker, one for each partner, so that none waits for
// another's messages.
type queues struct {
	mu        sync.Mutex
	byPartner map[string]*queue
}

// queue is the connection for the messages of one partner.
type queue struct {
	g               *Gateway
	partner, topics string
	conn            *broker.Conn
	end             context.CancelFunc
	ended           chan struct{} // closed when nothing more is taken
}

func topicsOf(p gateway.Partner) string {
	topics, _ := p.Options[topicsOption].(string)
	return topics
}

// agentLevel is an agent's id as a level of a topic.
func agentLevel(id string) string { return strings.ReplaceAll(url.PathEscape(id), "+", "%2B") }

// agentOfLevel returns the agent of a level. An id has one level, since the broker's access
// list compares levels; the id comes with the fault of another level, as far as it is one.
func agentOfLevel(level string) (id string, err error) {
	id, err = url.PathUnescape(level)
	if err != nil || id == "" || !mail.Printable(id) {
		return "", malformed("the topic's %.200q is no id with %%XX for other characters", level)
	}
	if want := agentLevel(id); want != level {
		return id, malformed("the topic's %.200q is written %.200q: nothing else is escaped", level, want)
	}
	return id, nil
}

// partnersPause is the time between two looks at which partners have topics: a reload of
// the configuration does not reach gateways.
const partnersPause = 2 * time.Second

// runQueues keeps a connection for each partner with topics until ctx ends.
func (g *Gateway) runQueues(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(partnersPause)
	defer tick.Stop()
	for {
		begin, ended := g.queues.change(g, g.MQTT.Partners())
		for _, q := range begin {
			own, end := context.WithCancel(ctx)
			q.end = end
			running.Go(func() {
				defer close(q.ended)
				for _, before := range ended { // what it has taken is acknowledged: topics may have another partner
					<-before.ended
				}
				q.conn.Run(own)
			})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// change ends the queues of partners whose topics are others, and returns these and those that
// begin.
func (all *queues) change(g *Gateway, partners []gateway.Partner) (begin, ended []*queue) {
	now := map[string]string{}
	for _, p := range partners {
		if topics := topicsOf(p); topics != "" {
			now[p.Name] = topics
		}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for name, q := range all.byPartner {
		if q.topics != now[name] {
			q.end()
			ended = append(ended, q)
			delete(all.byPartner, name)
		}
	}
	for name, topics := range now {
		if all.byPartner[name] == nil {
			q := &queue{g: g, partner: name, topics: topics, ended: make(chan struct{})}
			own := g.brokerOptions(topics)
			own.Take = q.take
			q.conn = broker.New(own)
			all.byPartner[name] = q
			begin = append(begin, q)
		}
	}
	return begin, ended
}

// escapeColons makes a client id whose last colon is before the topics.
var escapeColons = strings.NewReplacer("%", "%25", ":", "%3A")

// brokerOptions are the options of a partner's connection.
func (g *Gateway) brokerOptions(topics string) broker.Options {
	return broker.Options{
		URL: g.MQTT.URL, ClientID: g.MQTT.ClientID + ":" + escapeColons.Replace(topics), Username: g.MQTT.Username, Password: g.MQTT.Password, TLS: g.MQTT.TLS,
		Filter: topics + "/+" + topicOut, MaxPacket: maxPacket, Log: g.Log,
	}
}

func (all *queues) find(partner string) *queue {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.byPartner[partner]
}

// state is what is wrong with a connection, empty for nothing.
func (all *queues) state() string {
	all.mu.Lock()
	defer all.mu.Unlock()
	var wrong []string
	for name, q := range all.byPartner {
		if err := q.conn.State(); err != nil {
			wrong = append(wrong, fmt.Sprintf("the broker for %s: %v", name, q.g.MQTT.fault(name, err)))
		}
	}
	slices.Sort(wrong)
	return strings.Join(wrong, "; ")
}

// Pauses between attempts to take a message.
const (
	firstTakePause = 100 * time.Millisecond
	lastTakePause  = 30 * time.Second
)

// take takes a message of the partner. While the host cannot, as over a limit, the message
// and those after it wait at the broker. What is refused is refused once: an attempt has a
// line in the log of messages, and a refusal that could not be sent is not another one.
func (q *queue) take(ctx context.Context, m broker.Message) (taken bool) {
	var refused *message.Message
	for wait := firstTakePause; ; wait = min(2*wait, lastTakePause) {
		if refused == nil {
			refused, taken = q.takeOnce(ctx, m)
		}
		if refused != nil {
			level, _ := q.levelOf(m.Topic)
			taken = q.publish(ctx, level, *refused) == nil
		}
		if taken || !gateway.Pause(ctx, wait) {
			return taken
		}
	}
}

// levelOf returns the level of a topic that names the agent.
func (q *queue) levelOf(topic string) (level string, ok bool) {
	level, isBelow := strings.CutPrefix(topic, q.topics+"/")
	level, isOut := strings.CutSuffix(level, topicOut)
	return level, isBelow && isOut
}

// takeOnce makes one attempt. What answers a message is sent before it is acknowledged; an
// answer of an agent leaves by the outbox. The ERROR of a refused message is returned.
func (q *queue) takeOnce(ctx context.Context, m broker.Message) (refused *message.Message, taken bool) {
	p, ok := q.g.Runtime.Partner(q.partner)
	level, isOut := q.levelOf(m.Topic)
	if !ok || topicsOf(p) != q.topics || !isOut {
		q.g.Log.Warn("acp: a message at a topic that is no partner's", "topic", m.Topic, "partner", q.partner)
		return nil, ok // after a reload, this connection ends
	}
	if len(m.Payload) == 0 { // so a client removes a message that the broker retains
		q.g.Log.Info("acp: an empty message at the broker is dropped", "topic", m.Topic, "partner", q.partner)
		return nil, true
	}
	c := p.Caller()
	in, err := q.read(m.Payload)
	agent, wrong := agentOfLevel(level)
	if wrong != nil {
		err = wrong
	} else if err == nil && string(in.Header.Sender) != agent {
		err = &fault{code: codeForbidden, text: "the sender is not the agent of the topic"}
	}
	if err != nil {
		q.g.recordUnread(c, in, m.Payload, err)
		return q.refusalOf(c, agent, in, m.Payload, err)
	}
	a, err := q.g.accept(ctx, c, in, true)
	switch {
	case err != nil:
		if f := q.g.faultOf(err); f.retry {
			return nil, false
		}
		return q.refusalOf(c, agent, in, m.Payload, err)
	case a.owed && a.Duplicate && !m.Again:
		return nil, q.answerAgain(ctx, c, level, a.Exchange)
	case !a.owed && wantsAcknowledge(in.Header):
		return nil, q.publish(ctx, level, q.g.acknowledgeOf(c, in.Header)) == nil
	}
	return nil, true
}

func (q *queue) read(text []byte) (incoming, error) {
	if int64(len(text)) > q.g.MaxBody {
		return incoming{}, q.g.tooLarge()
	}
	return q.g.reader.read(text)
}

// answerAgain sends the answer of a question that the partner has repeated, if there is one.
func (q *queue) answerAgain(ctx context.Context, c gateway.Caller, level string, x gateway.Exchange) bool {
	got, ok, err := q.g.Runtime.Look(ctx, x)
	if err != nil || !ok || got.Outcome == gateway.NeedsInput {
		return err == nil
	}
	m, err := answerTo(c, x, got)
	return err == nil && q.publish(ctx, level, m) == nil
}

// refusalOf makes the ERROR for a message where one is owed: the same for the same bytes.
// Else the message is taken.
func (q *queue) refusalOf(c gateway.Caller, agent string, in incoming, text []byte, err error) (refused *message.Message, taken bool) {
	f := q.g.faultOf(err)
	if !isRefusedAloud(in.Header, f) {
		return nil, true
	}
	m := q.g.refusal(c, in.Header, f)
	if agent != "" {
		m.Header.Receiver = message.AgentID(agent) // who has written, whatever the message says
	}
	sum := sha256.Sum256(text)
	m.Header.ID = message.MessageID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(ownID("refuse", c, string(sum[:])))).String())
	return &m, false
}

// publish sends a message to the agent of a level. One without a reader
// is gone: the agent has written, and has subscribed nothing.
func (q *queue) publish(ctx context.Context, level string, m message.Message) error {
	text, err := m.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = q.send(ctx, level, text)
	switch {
	case errors.Is(err, broker.ErrNoReader):
		return nil
	case err != nil && !errors.Is(err, broker.ErrAway) && ctx.Err() == nil: // as by its access list
		q.g.Log.Warn("acp: the broker does not take a message, and the partner's next ones wait", "partner", q.partner, "topic", q.topics+"/"+level+topicIn, "error", err)
	}
	return err
}

func (q *queue) send(ctx context.Context, level string, text []byte) (lost <-chan struct{}, err error) {
	return q.conn.Publish(ctx, q.topics+"/"+level+topicIn, jsonContentType, text)
}

// enqueue sends an outbox message by the broker. Before it was sent it can be sent later.
func (a *attempt) enqueue(ctx context.Context) (reply, error) {
	q := a.g.queues.find(a.p.Name)
	if q == nil {
		return reply{}, fmt.Errorf("%w: %w", broker.ErrAway, gateway.ErrBusy)
	}
	lost, err := q.send(ctx, agentLevel(string(a.m.Header.Receiver)), a.text)
	if errors.Is(err, broker.ErrAway) || errors.Is(err, broker.ErrNoReader) {
		err = fmt.Errorf("%w: %w", err, gateway.ErrBusy)
	}
	return reply{lost: lost}, err
}
