package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"skep/host/internal/gateway/acp/broker"
	"skep/host/internal/hosttest"
)

// TestNotTaken: a message that was not taken comes again, and those behind it too:
// more than the broker sends before one is acknowledged.
func TestNotTaken(t *testing.T) {
	t.Parallel()
	at := hosttest.StartMosquitto(t, "allow_anonymous true\n", nil)
	const count = 100
	var (
		mu      sync.Mutex
		refused int
		taken   []string
	)
	c := broker.New(broker.Options{
		URL: "mqtt://" + at.Addr, ClientID: "c", Filter: "x", MaxPacket: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Take: func(_ context.Context, m broker.Message) bool {
			mu.Lock()
			defer mu.Unlock()
			if string(m.Payload) == "message 0" && refused < 2 {
				refused++
				return false
			}
			taken = append(taken, string(m.Payload))
			return true
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		c.Run(ctx)
	}()
	for i := range count {
		text := fmt.Sprintf("message %d", i)
		hosttest.Eventually(t, "the broker takes "+text, func() bool {
			_, err := c.Publish(ctx, "x", "", []byte(text))
			return err == nil
		})
	}
	hosttest.Eventually(t, "all are taken", func() bool {
		mu.Lock()
		defer mu.Unlock()
		seen := slices.Clone(taken)
		slices.Sort(seen)
		return len(slices.Compact(seen)) == count
	})
	stop()
	<-ran
	if refused != 2 {
		t.Errorf("message 0 came %d times before it was taken", refused)
	}
}
