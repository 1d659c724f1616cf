package crash_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/hosttest"
)

// rabbitKey is what acme and the host sign with.
const rabbitKey = "a key of acme and the host"

// rabbitPeer are the agents of acme at a broker. Each request that comes gets a response.
type rabbitPeer struct {
	t    *testing.T
	conn *broker.Conn

	mu  sync.Mutex
	got []amptest.Message
}

func newRabbitPeer(t *testing.T, at *hosttest.RabbitMQ) *rabbitPeer {
	t.Helper()
	p := &rabbitPeer{t: t}
	p.conn = broker.New(broker.Options{
		URL: "amqp://" + at.Addr, Username: "guest", Password: "guest", Exchange: "amp", Queue: "amp.acme", MaxMessage: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Keys: func() []string {
			return []string{"request.agent-b", "event.agent-b", "response.agent-a", "error.agent-a"}
		},
		Take: p.take,
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.conn.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	hosttest.Eventually(t, "acme is at the broker", func() bool { return p.conn.State() == nil })
	return p
}

// take takes a message, which it acknowledges after its answer is at the broker.
func (p *rabbitPeer) take(ctx context.Context, m broker.Message, verdict func(broker.Verdict)) {
	got, err := amptest.Parse(m.Payload)
	if err != nil || m.Key != got.Message.Type+"."+got.Message.Destination.AgentID || m.ID != got.Message.ID {
		p.t.Errorf("under %s came %s: %v", m.Key, m.Payload, err)
	}
	if in, err := (message.Reader{Depth: 64}).Read(m.Payload); err != nil || in.Verify([]byte(rabbitKey)) != nil {
		p.t.Errorf("%s is not signed: %v", m.Payload, err)
	}
	p.mu.Lock()
	p.got = append(p.got, got)
	p.mu.Unlock()
	if got.Message.Type == "request" {
		parameters, _ := got.Message.Payload["parameters"].(amptest.Object)
		answer := got.Reply("response", amptest.Result(amptest.Object{"text": "of " + fmt.Sprint(parameters["body"])}))
		answer.Message.ID = "answer to " + got.Message.ID // the same for a repeat
		if p.publish(ctx, answer) != nil {
			verdict(broker.Kept)
			return
		}
	}
	verdict(broker.Taken)
}

// signedText is a message with acme's signature.
func signedText(t testing.TB, m amptest.Message) []byte {
	t.Helper()
	in, err := (message.Reader{Depth: 64}).Read([]byte(m.Text()))
	if err == nil {
		err = message.Sign(&in.Message, []byte(rabbitKey))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := message.Write(in.Token, in.Message)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p *rabbitPeer) publish(ctx context.Context, m amptest.Message) error {
	return p.publishText(ctx, m.Message.Type+"."+m.Message.Destination.AgentID, signedText(p.t, m))
}

func (p *rabbitPeer) publishText(ctx context.Context, key string, text []byte) error {
	return p.conn.Publish(ctx, broker.Message{Key: key, Payload: text})
}

// send publishes messages until the broker has stored each.
func (p *rabbitPeer) send(t testing.TB, list ...amptest.Message) {
	t.Helper()
	for _, m := range list {
		hosttest.Eventually(t, "the broker takes "+m.Message.ID, func() bool { return p.publish(t.Context(), m) == nil })
	}
}

// about are the messages that came about one of acme's, or requests with a text; of each id one.
func (p *rabbitPeer) about(id, text string) (list []amptest.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, m := range p.got {
		parameters, _ := m.Message.Payload["parameters"].(amptest.Object)
		answers := id != "" && m.Message.Type != "request" && m.Header("correlation_id") == id
		if (answers || text != "" && parameters["body"] == text) && !seen[m.Message.ID] {
			seen[m.Message.ID] = true
			list = append(list, m)
		}
	}
	return list
}

// answer waits for the one answer to a message.
func (p *rabbitPeer) answer(t testing.TB, to amptest.Message) amptest.Message {
	t.Helper()
	id := to.Message.ID
	for deadline := time.Now().Add(5 * time.Minute); len(p.about(id, "")) == 0; time.Sleep(20 * time.Millisecond) { // a partner rests after failures
		if time.Now().After(deadline) {
			t.Fatal("never: an answer to", id)
		}
	}
	list := p.about(id, "")
	if len(list) != 1 {
		t.Errorf("%s got %d answers: %+v", id, len(list), list)
	}
	return list[0]
}

// ampQuestions are requests that are like each other, each in a conversation of its own.
func ampQuestions(n int, what string) (list []amptest.Message) {
	for i := range n {
		q := amptest.Mail("agent-a", "boss@hive", fmt.Sprintf("%s %d", what, i))
		q.Message.ID = fmt.Sprintf("%s-%d", what, i)
		q.Message.Source.SessionID = q.Message.ID
		list = append(list, q)
	}
	return list
}
