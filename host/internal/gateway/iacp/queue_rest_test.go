package iacp_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// restingSite is a site whose workers rest until their connections end.
func restingSite(t *testing.T, change ...func(*iacp.Options)) *site {
	return newSite(t, append(change, func(o *iacp.Options) { o.Rest = time.Hour })...)
}

// TestRestEnds (I-058): a worker that rests ends with its connection: when the peer leaves or closes, when
// its partner is let in no more, and when the host stops.
func TestRestEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*site, *iacptest.Conn){
		"the peer leaves": func(_ *site, c *iacptest.Conn) { _ = c.Close() },
		"the peer closes": func(_ *site, c *iacptest.Conn) {
			_ = c.Send(iacptest.New("connection_close", "depot-1", "", map[string]any{"reason": "over"}).Text())
			_, _ = c.Read() // until the host has closed, too
			_ = c.Close()
		},
		"it is let in no more": func(s *site, _ *iacptest.Conn) { s.rt.Revoke(token) },
		"the host stops":       nil, // with the site
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := restingSite(t)
			c := s.dial(t)
			exchange(t, c, task("hello"), "task_response")
			if end != nil {
				end(s, c)
				hosttest.Eventually(t, "the connection ends", func() bool { return s.g.Health().Connections == 0 })
			}
		})
	}
}

// orderedRuntime shows a test which texts it is asked to take, and takes each when the test goes on.
type orderedRuntime struct {
	gateway.Runtime
	asked chan string
	goOn  chan struct{}
}

// Ask implements [gateway.Runtime].
func (rt *orderedRuntime) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	rt.asked <- a.Body
	<-rt.goOn
	return rt.Runtime.Ask(ctx, c, a)
}

// TestOrderAcrossRests (I-002, V-I22): what waits is taken by its priority and then its age, by a worker
// that has rested as by a new one.
func TestOrderAcrossRests(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]time.Duration{"after a rest": time.Hour, "without": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt := &orderedRuntime{asked: make(chan string), goOn: make(chan struct{})}
			s := newSite(t, func(o *iacp.Options) { rt.Runtime, o.Runtime, o.Rest = o.Runtime, rt, rest })
			c := s.dial(t)
			for range 3 {
				send := func(text, priority string) {
					m := task(text)
					m.Metadata = map[string]any{"priority": priority}
					if err := c.Send(m.Text()); err != nil {
						t.Fatal(err)
					}
				}
				send("first", "low")
				order := []string{<-rt.asked}
				for text, priority := range map[string]string{"low": "low", "urgent": "urgent", "high": "high"} {
					send(text, priority)
				}
				send("normal", "normal")
				send("next", "normal")
				exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack") // all are queued
				for range 5 {
					rt.goOn <- struct{}{}
					order = append(order, <-rt.asked)
				}
				rt.goOn <- struct{}{}
				for range 6 {
					read(t, c, "task_response")
				}
				if want := []string{"first", "urgent", "high", "normal", "next", "low"}; !slices.Equal(order, want) {
					t.Errorf("taken %q, want %q", order, want)
				}
			}
		})
	}
}
