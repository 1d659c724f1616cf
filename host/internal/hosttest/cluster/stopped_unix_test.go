//go:build unix

package cluster_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestStopped: a host that stands still for longer than its TTL loses its tasks to the others, and
// ends when it goes on.
func TestStopped(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 2)
	clients := clientsOf(hosts)
	var done atomic.Int64
	var all sync.WaitGroup
	all.Go(func() { load(t, clients[1:], "s", 32, &done) })
	waitFor(t, func() bool { return done.Load() >= 8 })
	hosts[0].Signal(syscall.SIGSTOP)
	all.Wait()
	hosts[0].Signal(syscall.SIGCONT)
	if err := hosts[0].Wait(); err == nil || !strings.Contains(hosts[0].Log(), "[cluster] ttl") {
		t.Errorf("a host that stood still has ended with %v", err)
	}
	for i := range 32 {
		checkTask(t, clients[1], fmt.Sprint("s", i))
	}
}
