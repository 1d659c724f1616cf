package iacp_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// heldRuntime is a runtime that keeps nothing, and takes no message until goOn is closed.
type heldRuntime struct {
	gatewaytest.Unrecorded
	goOn  chan struct{}
	taken atomic.Int64
}

// Ask implements [gateway.Runtime].
func (h *heldRuntime) Ask(_ context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	<-h.goOn
	h.taken.Add(1)
	return gateway.Exchange{Caller: c, ID: a.ID, Agent: a.To[0], Note: a.Note, Accepted: time.Now()}, nil
}

// countedListener counts the bytes that its connections have read.
type countedListener struct {
	net.Listener
	read *atomic.Int64
}

// Accept implements [net.Listener].
func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.read}, err
}

type countedConn struct {
	net.Conn
	read *atomic.Int64
}

// Read implements [net.Conn].
func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// settle waits until a count does not change for half a second.
func settle(count *atomic.Int64) int64 {
	last, same := count.Load(), 0
	for same < 50 {
		time.Sleep(10 * time.Millisecond)
		if now := count.Load(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return last
}

// TestQueuedFramesMemory (I-006): the messages of a partner that its agents' store does not take are held
// up to a bound, on all its connections and whatever their size: its connections are read no further, and
// nothing is lost. It is not parallel: it looks at the whole process.
func TestQueuedFramesMemory(t *testing.T) {
	const conns, each, held = 40, 200, 1 << 20
	for name, size := range map[string]int{"of 7,000 bytes": 7000, "short": 1} {
		t.Run(name, func(t *testing.T) {
			rt := &heldRuntime{goOn: make(chan struct{})}
			var read atomic.Int64
			s := newSite(t, func(o *iacp.Options) {
				rt.Unrecorded = gatewaytest.Unrecorded{Runtime: o.Runtime}
				o.Runtime, o.MaxBody, o.Held = rt, held, held
				listen := o.Listen
				o.Listen = func(ctx context.Context) (net.Listener, error) {
					l, err := listen(ctx)
					return countedListener{l, &read}, err
				}
			})
			text := tell(strings.Repeat("x", size)).Text()
			open := make([]*iacptest.Conn, conns)
			for i := range open {
				open[i] = s.dial(t)
			}
			before, _ := gatewaytest.Footprint()
			begun := read.Load()
			var sending sync.WaitGroup
			for _, c := range open {
				sending.Go(func() {
					for range each {
						if err := c.Send(text); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			got := settle(&read) - begun
			after, _ := gatewaytest.Footprint()
			t.Logf("%d bytes of %d are read, and %d are held", got, conns*each*len(text), after-before)
			if most := int64(held + conns*(16<<10)); got > most || after-before > 4*most {
				t.Errorf("%d bytes are read and %d are held, at most %d and %d", got, after-before, most, 4*most)
			}
			close(rt.goOn)
			sending.Wait()
			for _, c := range open {
				exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack")
			}
			hosttest.Eventually(t, "all are taken", func() bool { return rt.taken.Load() == conns*each })
		})
	}
}

// tell is a message that wants no answer.
func tell(text string) iacptest.Message {
	return iacptest.New("context_share", "depot-1", "echo", map[string]any{"context_type": "insights", "scope": "session", "data": map[string]any{"body": text}})
}
