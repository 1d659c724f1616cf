package iacp_test

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway/iacp"
	"skep/host/internal/hosttest"
)

// fullListener opens connections whose peers read nothing more once full is set: a write waits for over, and
// fails.
type fullListener struct {
	net.Listener
	full *atomic.Bool
	over chan struct{}
}

// Accept implements [net.Listener].
func (l fullListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return fullConn{c, l}, err
}

type fullConn struct {
	net.Conn
	l fullListener
}

// Write implements [net.Conn].
func (c fullConn) Write(b []byte) (int, error) {
	if !c.l.full.Load() {
		return c.Conn.Write(b)
	}
	<-c.l.over
	return 0, os.ErrDeadlineExceeded
}

// TestAnswerUnwritten (I-027, I-057): an answer to a peer that does not read is kept, also where its write
// takes longer than an acknowledgement may and then fails.
func TestAnswerUnwritten(t *testing.T) {
	t.Parallel()
	l := fullListener{full: new(atomic.Bool), over: make(chan struct{})}
	s := newSite(t, func(o *iacp.Options) {
		listen := o.Listen
		o.Ack, o.Heartbeat = 20*time.Millisecond, time.Hour
		o.Listen = func(ctx context.Context) (_ net.Listener, err error) {
			l.Listener, err = listen(ctx)
			return l, err
		}
	})
	agent := newSlowAgent(s)
	c := s.dial(t, "ack")
	exchange(t, c, slowTask(0), "ack")
	l.full.Store(true)
	agent.answers <- "seven"
	time.Sleep(500 * time.Millisecond) // the time for the acknowledgement is over
	close(l.over)
	hosttest.Eventually(t, "the answer is kept", func() bool { return s.countUnsent(t) == 1 })
}
