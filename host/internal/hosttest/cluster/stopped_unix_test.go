//go:build unix

package cluster_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestStopped: a host that stands still for longer than its TTL loses its tasks to the others, and
// ends when it goes on.
func TestStopped(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 2)
	clients := clientsOf(hosts)
	loaded := startLoad(t, clients[1:], "s", 32, 8)
	hosts[0].Signal(syscall.SIGSTOP)
	loaded()
	hosts[0].Signal(syscall.SIGCONT)
	if code, log := hosts[0].End(); code <= 0 || !strings.Contains(log, "[cluster] ttl") {
		t.Errorf("a host that stood still has ended with code %d", code)
	}
	for i := range 32 {
		checkTask(t, clients[1], fmt.Sprint("s", i))
	}
}
