//go:build unix

package cluster_test

import (
	"net"
	"sync"
	"testing"
)

// link is a proxy on the way of connections, that can hold what they carry, or end them.
type link struct {
	l           net.Listener
	network, to string
	all         sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	// open is closed while the link carries something.
	open chan struct{}
}

// newLink carries connections to an address to another one.
func newLink(t *testing.T, network, at, to string) *link {
	t.Helper()
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	k := &link{l: l, network: network, to: to, conns: map[net.Conn]bool{}, open: make(chan struct{})}
	close(k.open)
	k.all.Go(k.serve)
	t.Cleanup(func() {
		_ = l.Close()
		k.carry()
		k.reset()
		k.all.Wait()
	})
	return k
}

// hold makes the link carry nothing, and end nothing, until carry.
func (k *link) hold() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = make(chan struct{})
}

// carry makes the link carry what it has held.
func (k *link) carry() {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.open:
	default:
		close(k.open)
	}
}

// reset ends the connections that are there.
func (k *link) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.conns {
		_ = c.Close()
	}
}

func (k *link) serve() {
	for {
		from, err := k.l.Accept()
		if err != nil {
			return
		}
		k.all.Go(func() {
			k.await()
			to, err := net.Dial(k.network, k.to)
			if err != nil {
				_ = from.Close()
				return
			}
			k.add(from, to)
			k.all.Go(func() { k.pass(from, to) })
			k.pass(to, from)
		})
	}
}

// add notes both sides of a connection.
func (k *link) add(conns ...net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range conns {
		k.conns[c] = true
	}
}

// await waits until the link carries something.
func (k *link) await() {
	k.mu.Lock()
	open := k.open
	k.mu.Unlock()
	<-open
}

// pass carries what comes from one side to the other until one of them ends.
func (k *link) pass(from, to net.Conn) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.conns, from)
		delete(k.conns, to)
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		k.await()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
