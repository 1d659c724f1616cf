package crash_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/hosttest"
)

// calculatorSwarm has an agent with the capability arithmetic; NAME is the swarm's.
const calculatorSwarm = `schema = 1
[swarm]
name = "NAME"
entrypoint = "calculator"
enable_interswarm = true
[agents.calculator]
source = "bundled:calculator"
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
expose = ["amp"]
[gateways.amp.rabbitmq]
broker = "amqp://BROKER"
username = "guest"
password = "guest"
[gateways.amp.partners.acme]
ids = ["agent-*"]
may = ["ask"]
queues = true
hmac_key = "` + queueKey + `"
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

// TestRabbitMQCapability (M-020, M-095, M-114, V-M37): requests that name a capability and no agent come
// to one of two hosts that have it, and both get some. What one host leaves the other does.
func TestRabbitMQCapability(t *testing.T) {
	t.Parallel()
	b := hosttest.StartRabbitMQ(t)
	var hosts []*hosttest.Process
	for _, name := range []string{"hive", "nest"} {
		hosts = append(hosts, hosttest.StartProcess(t, strings.NewReplacer("NAME", name, "BROKER", b.Addr).Replace(calculatorSwarm)))
	}
	p := newRabbitPeer(t, b)
	ask := func(id string) amptest.Message {
		q := amptest.Request("agent-a", "", "arithmetic", amptest.Object{"text": "1+1"})
		q.Message.ID, q.Message.Source.SessionID = id, id
		hosttest.Eventually(t, "the broker has a queue for "+id, func() bool { return p.publishTo(t.Context(), "capability", "arithmetic", signedText(t, q)) == nil })
		return q
	}
	turns := func(id string) (each [2]int64) {
		for i, h := range hosts {
			each[i], _ = hosttest.CountTurns(t, h.Data(), id) // one of them has no such task
		}
		return each
	}
	hosttest.Eventually(t, "both hosts read the queue", func() bool { return b.Readers(t, "amp.capability.arithmetic") == 2 })
	var list []amptest.Message
	for n := range 40 {
		list = append(list, ask(fmt.Sprint("sum-", n)))
	}
	var all [2]int64
	for _, q := range list {
		if m := p.answer(t, q); m.Message.Type != "response" || !strings.Contains(m.Text(), "2") {
			t.Errorf("%s got %s", q.Message.ID, m.Text())
		}
		each := turns(q.Message.ID)
		if each[0]+each[1] != 1 {
			t.Errorf("%s had %d turns", q.Message.ID, each)
		}
		all[0], all[1] = all[0]+each[0], all[1]+each[1]
	}
	if all[0] == 0 || all[1] == 0 {
		t.Errorf("the hosts had %d turns", all)
	}
	hosts[1].Kill()
	for n := range 10 {
		p.answer(t, ask(fmt.Sprint("left-", n)))
	}
}

// TestRabbitMQSharedQueue (M-095): a shared queue that another program has made with other arguments is
// read as it is, and one that was deleted is made again. What is wanted no more is left to others.
func TestRabbitMQSharedQueue(t *testing.T) {
	t.Parallel()
	b := hosttest.StartRabbitMQ(t)
	b.Declare(t, "amp.capability.x")
	var isWanted atomic.Bool
	isWanted.Store(true)
	got := make(chan string, 10)
	c := broker.New(broker.Options{
		URL: "amqp://" + b.Addr, Username: "guest", Password: "guest", Exchange: "amp", Queue: "amp.reader", MaxMessage: 1 << 10, Log: slog.New(slog.DiscardHandler),
		Keys: func() []string { return nil },
		Shared: func() []string {
			if isWanted.Load() {
				return []string{"capability.x", "capability.y"}
			}
			return []string{"capability.y"}
		},
		Take: func(_ context.Context, m broker.Message, verdict func(broker.Verdict)) {
			verdict(broker.Taken)
			got <- m.Key + " " + string(m.Payload)
		},
	})
	runConn(t, c)
	publish := func(key, text string) {
		t.Helper()
		hosttest.Eventually(t, "the broker takes "+text, func() bool { return c.Publish(t.Context(), broker.Message{Key: key, Payload: []byte(text)}) == nil })
	}
	for _, key := range []string{"capability.x", "capability.y"} {
		publish(key, "first")
		if m := <-got; m != key+" first" {
			t.Errorf("got %s", m)
		}
	}
	b.Delete(t, "amp.capability.y")
	publish("capability.y", "second")
	if m := <-got; m != "capability.y second" {
		t.Errorf("got %s", m)
	}
	isWanted.Store(false)
	hosttest.Eventually(t, "it is not read any more", func() bool { return b.Readers(t, "amp.capability.x") == 0 })
	publish("capability.x", "for others")
	if n := b.Waiting(t, "amp.capability.x"); n != 1 {
		t.Errorf("%d messages wait", n)
	}
}
