package crash_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/hosttest"
)

// TestRabbitMQQueue (M-024, M-095, V-M33): at a real RabbitMQ the urgent message comes first, one whose
// time is over does not come, one without a verdict comes again, and what is set aside is there.
// A message without a queue is told to who publishes it.
func TestRabbitMQQueue(t *testing.T) {
	t.Parallel()
	b := hosttest.StartRabbitMQ(t)
	options := broker.Options{
		URL: "amqp://" + b.Addr, Username: "guest", Password: "guest", Exchange: "amp", Queue: "amp.reader", MaxMessage: 1 << 10, Log: slog.New(slog.DiscardHandler),
		Keys: func() []string { return []string{"request.reader"} },
	}
	options.Take = func(_ context.Context, _ broker.Message, verdict func(broker.Verdict)) { verdict(broker.Taken) }
	stop := runBroker(t, options) // makes the queue
	stop()
	writer := options
	writer.Queue, writer.Keys = "amp.writer", func() []string { return nil }
	publisher := broker.New(writer)
	defer runConn(t, publisher)()
	publish := func(m broker.Message) {
		t.Helper()
		m.Key, m.Payload = "request.reader", []byte(m.ID)
		if err := publisher.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := publisher.Publish(t.Context(), broker.Message{Key: "request.none"}); err != broker.ErrNoQueue {
		t.Errorf("without a queue: %v", err)
	}
	for i := range 5 {
		publish(broker.Message{ID: fmt.Sprint("patient ", i), Priority: 1})
	}
	publish(broker.Message{ID: "over", Priority: 1, Expires: time.Millisecond})
	publish(broker.Message{ID: "urgent", Priority: 9})
	var mu sync.Mutex
	var got []broker.Message
	options.Take = func(_ context.Context, m broker.Message, verdict func(broker.Verdict)) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m)
		switch {
		case m.ID == "urgent":
			verdict(broker.SetAside)
		case m.ID != "patient 4" || m.Again: // the connection ends without a verdict on this one
			verdict(broker.Taken)
		}
	}
	taken := func(n int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(got) == n
		}
	}
	stop = runBroker(t, options)
	hosttest.Eventually(t, "six messages come", taken(6))
	stop()
	defer runBroker(t, options)()
	hosttest.Eventually(t, "one comes again", taken(7))
	hosttest.Eventually(t, "two are set aside", func() bool { return b.Waiting(t, "amp.dead") == 2 })
	mu.Lock()
	defer mu.Unlock()
	for i, want := range []string{"urgent", "patient 0", "patient 1", "patient 2", "patient 3", "patient 4", "patient 4"} {
		if m := got[i]; m.ID != want || string(m.Payload) != want || m.Again != (i == 6) {
			t.Errorf("message %d is %+v, want %s", i, m, want)
		}
	}
}

// runBroker runs a connection until stop is called, and returns when it is made.
// TestRabbitMQPublishedAtOnce (M-095): of messages that are published at the same time those without a
// queue come back to who has published them, and the others are in the queue.
func TestRabbitMQPublishedAtOnce(t *testing.T) {
	t.Parallel()
	b := hosttest.StartRabbitMQ(t)
	options := broker.Options{
		URL: "amqp://" + b.Addr, Username: "guest", Password: "guest", Exchange: "amp", Queue: "amp.reader", MaxMessage: 1 << 10, Log: slog.New(slog.DiscardHandler),
		Keys: func() []string { return []string{"request.reader"} },
		Take: func(_ context.Context, _ broker.Message, verdict func(broker.Verdict)) { verdict(broker.Taken) },
	}
	runBroker(t, options)() // makes the queue
	options.Queue, options.Keys = "amp.writer", func() []string { return nil }
	publisher := broker.New(options)
	defer runConn(t, publisher)()
	const writers, each = 100, 20
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			m, want := broker.Message{Key: "request.reader"}, error(nil)
			if n%2 == 1 {
				m.Key, want = "request.none", broker.ErrNoQueue
			}
			for i := range each {
				m.ID = fmt.Sprint(n/4, " ", i) // four share it, under two keys
				if err := publisher.Publish(t.Context(), m); err != want {
					t.Errorf("%+v: %v, want %v", m, err, want)
				}
			}
		})
	}
	all.Wait()
	if got := b.Waiting(t, "amp.reader"); got != writers/2*each {
		t.Errorf("%d messages are in the queue", got)
	}
}

func runBroker(t *testing.T, o broker.Options) (stop func()) {
	t.Helper()
	return runConn(t, broker.New(o))
}

func runConn(t *testing.T, c *broker.Conn) (stop func()) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	stop = func() {
		end()
		<-done
	}
	t.Cleanup(stop)
	hosttest.Eventually(t, "the connection is made", func() bool { return c.State() == nil })
	return stop
}
