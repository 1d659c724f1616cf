package egress

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// talker is a connection whose server always has data to send.
type talker struct {
	net.Conn
	reads atomic.Int64
}

func (c *talker) Read([]byte) (int, error)    { return int(c.reads.Add(1)), nil }
func (c *talker) Write(p []byte) (int, error) { return len(p), nil }
func (c *talker) Close() error                { return nil }

// Read waits for the first write, and Close unblocks it.
func TestReadWaitsForTheRequest(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*clientConn){
		"write": func(l *clientConn) { _, _ = l.Write([]byte("GET")) },
		"close": func(l *clientConn) { _ = l.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &talker{}
				l := newClientConn(c, target{})
				go func() { _, _ = l.Read(nil) }()
				synctest.Wait()
				if n := c.reads.Load(); n != 0 {
					t.Errorf("%d reads before the request", n)
				}
				begin(l)
				synctest.Wait()
				if n := l.read.Load(); n != 1 {
					t.Errorf("%d bytes counted, want 1", n)
				}
			})
		})
	}
}
