package crash_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/amp/broker"
)

// ampQueueCaller asks over RabbitMQ. Its connection to the broker stays: what is cut is that it waits.
func (s *soak) ampQueueCaller() *soakCaller {
	var mu sync.Mutex
	waiting := map[string]chan amptest.Message{}
	conn := broker.New(broker.Options{
		URL: "amqp://" + s.broker.Addr, Username: "guest", Password: "guest", Exchange: "amp", Queue: "amp.guests", MaxMessage: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Keys: func() []string { return []string{"response.reader-1", "error.reader-1"} },
		Take: func(_ context.Context, m broker.Message, verdict func(broker.Verdict)) {
			got, err := amptest.Parse(m.Payload)
			if err != nil {
				s.t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if c := waiting[got.Header("correlation_id")]; c != nil {
				select {
				case c <- got:
				default: // it came again
				}
			}
			verdict(broker.Taken)
		},
	})
	runConn(s.t, conn)
	publish := func(limit time.Duration, text []byte) error {
		ctx, cancel := context.WithTimeout(s.t.Context(), limit)
		defer cancel()
		return conn.Publish(ctx, broker.Message{Key: "request.goal@hive", Payload: text})
	}
	return &soakCaller{name: "amp-queue", leave: func() {},
		spoil: func() error { return publish(soakLimit, []byte(`{"nonsense":`)) },
		prepare: func(id, text string) func(time.Duration) (string, error) {
			signed := signedText(s.t, ampQuestion("reader-1", id, text))
			mu.Lock()
			clear(waiting)
			came := make(chan amptest.Message, 1)
			waiting[id] = came
			mu.Unlock()
			return func(limit time.Duration) (string, error) {
				if err := publish(limit, signed); err != nil {
					return "", err
				}
				select {
				case m := <-came:
					if m.Message.Type != "response" {
						return "", errors.New(m.Text())
					}
					return m.Text(), nil
				case <-time.After(limit):
					return "", errors.New("no answer came")
				}
			}
		},
	}
}
