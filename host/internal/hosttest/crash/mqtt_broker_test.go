package crash_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/broker"
	"skep/host/internal/hosttest"
)

// mosquittoACL lets acme write what acme says, and nobody else.
const mosquittoACL = `user hive
topic read acp/v1/acme/+/out
topic write acp/v1/acme/+/in
user acme
topic write acp/v1/acme/+/out
topic read acp/v1/acme/+/in
`

// newMosquitto starts a broker with a user for the host and one for the partner acme.
func newMosquitto(t *testing.T) *hosttest.Mosquitto {
	t.Helper()
	return hosttest.StartMosquitto(t, "allow_anonymous true\nacl_file acl\n", map[string]string{"acl": mosquittoACL})
}

// mqttPeer are the agents of acme at a broker. Each REQUEST that comes gets a RESPONSE.
type mqttPeer struct {
	t    *testing.T
	conn *broker.Conn

	mu  sync.Mutex
	got []acptest.Message
}

func newMQTTPeer(t *testing.T, at *hosttest.Mosquitto) *mqttPeer {
	t.Helper()
	p := &mqttPeer{t: t}
	p.conn = broker.New(broker.Options{
		URL: "mqtt://" + at.Addr, ClientID: "acme", Username: "acme", Filter: "acp/v1/acme/+/in", Take: p.take, MaxPacket: 1 << 20, Log: slog.New(slog.DiscardHandler),
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
func (p *mqttPeer) take(ctx context.Context, m broker.Message) bool {
	got, err := acptest.Parse(m.Payload)
	if err != nil || m.Topic != "acp/v1/acme/"+got.Header.Receiver+"/in" {
		p.t.Errorf("at %s came %s: %v", m.Topic, m.Payload, err)
		return true
	}
	p.mu.Lock()
	p.got = append(p.got, got)
	p.mu.Unlock()
	if got.Header.Type != "REQUEST" {
		return true
	}
	answer := got.Reply("RESPONSE", "of "+got.Body)
	answer.Header.ID = "answer to " + got.Header.ID // the same for a repeat
	return p.publish(ctx, answer) == nil
}

func (p *mqttPeer) publish(ctx context.Context, m acptest.Message) error {
	_, err := p.conn.Publish(ctx, "acp/v1/acme/"+m.Header.Sender+"/out", "application/json", []byte(m.Text()))
	return err
}

// send publishes messages until the broker has each.
func (p *mqttPeer) send(t testing.TB, list ...acptest.Message) {
	t.Helper()
	for _, m := range list {
		hosttest.Eventually(t, "the broker takes "+m.Header.ID, func() bool { return p.publish(t.Context(), m) == nil })
	}
}

// about are the messages that came with a reply_to, or with a body; of each id one.
func (p *mqttPeer) about(replyTo, body string) (list []acptest.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, m := range p.got {
		if (m.Header.ReplyTo == replyTo && replyTo != "" || m.Body == body && body != "") && !seen[m.Header.ID] {
			seen[m.Header.ID] = true
			list = append(list, m)
		}
	}
	return list
}

// answer waits for the one answer to a message.
func (p *mqttPeer) answer(t testing.TB, to acptest.Message) acptest.Message {
	t.Helper()
	hosttest.Eventually(t, "an answer to "+to.Header.ID, func() bool { return len(p.about(to.Header.ID, "")) > 0 })
	list := p.about(to.Header.ID, "")
	if len(list) != 1 {
		t.Errorf("%s got %d answers: %+v", to.Header.ID, len(list), list)
	}
	return list[0]
}

// questions are REQUESTs that are like each other.
func questions(n int, what string) (list []acptest.Message) {
	for i := range n {
		q := acptest.New("REQUEST", "agentA", "boss", fmt.Sprintf("%s %d", what, i))
		q.Header.ID = fmt.Sprintf("%s-%d", what, i)
		q.Header.ConversationID = q.Header.ID
		list = append(list, q)
	}
	return list
}
