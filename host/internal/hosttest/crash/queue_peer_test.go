package crash_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/hosttest"
)

// queueKey is what acme and the host sign with.
const queueKey = "a key of acme and the host"

// queuePeer are the agents of acme at a broker. Each request that comes gets a response.
type queuePeer struct {
	t *testing.T
	// publishTo sends a text as a message of a type to an agent, and returns when the broker has it.
	publishTo func(ctx context.Context, kind, agent string, text []byte) error

	mu  sync.Mutex
	got []amptest.Message
}

// receive takes a message, and returns when its answer is at the broker.
func (p *queuePeer) receive(ctx context.Context, text []byte) (amptest.Message, error) {
	got, err := amptest.Parse(text)
	if in, readErr := (message.Reader{Depth: 64}).Read(text); err != nil || readErr != nil || in.Verify([]byte(queueKey)) != nil {
		p.t.Errorf("%s is not signed: %v, %v", text, err, readErr)
	}
	p.mu.Lock()
	p.got = append(p.got, got)
	p.mu.Unlock()
	if got.Message.Type != "request" {
		return got, nil
	}
	parameters, _ := got.Message.Payload["parameters"].(amptest.Object)
	answer := got.Reply("response", amptest.Result(amptest.Object{"text": "of " + fmt.Sprint(parameters["body"])}))
	answer.Message.ID = "answer to " + got.Message.ID // the same for a repeat
	return got, p.publish(ctx, answer)
}

// signedText is a message with acme's signature.
func signedText(t testing.TB, m amptest.Message) []byte {
	t.Helper()
	in, err := (message.Reader{Depth: 64}).Read([]byte(m.Text()))
	if err == nil {
		err = message.Sign(&in.Message, []byte(queueKey))
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

func (p *queuePeer) publish(ctx context.Context, m amptest.Message) error {
	return p.publishTo(ctx, m.Message.Type, m.Message.Destination.AgentID, signedText(p.t, m))
}

// send publishes messages until the broker has stored each.
func (p *queuePeer) send(t testing.TB, list ...amptest.Message) {
	t.Helper()
	for _, m := range list {
		hosttest.Eventually(t, "the broker takes "+m.Message.ID, func() bool { return p.publish(t.Context(), m) == nil })
	}
}

// about are the messages that came about one of acme's, or requests with a text; of each id one.
func (p *queuePeer) about(id, text string) (list []amptest.Message) {
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
func (p *queuePeer) answer(t testing.TB, to amptest.Message) amptest.Message {
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
