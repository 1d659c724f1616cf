package cluster_test

import (
	"strings"
	"testing"

	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// TestRestarted: a host that was killed and is started again on its data directory frees what it had
// itself. Nobody waits for its TTL, which is longer here than the load has time.
func TestRestarted(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	dsn := pgtest.Schema(t)
	var hosts []*hosttest.Process
	for range 2 {
		p := hosttest.NewProcess(t, "127.0.0.1")
		writeStoreKey(t, p)
		p.Launch(strings.Replace(sharedFile(dsn, p.Addr, hosttest.ScriptSwarm), `ttl = "4s"`, `ttl = "10m"`, 1))
		hosts = append(hosts, p)
	}
	clients := clientsOf(hosts)
	for _, p := range hosts {
		waitReady(t, p)
	}
	loaded := startLoad(t, clients[1:], "r", 32, 8)
	hosts[0].Kill()
	hosts[0].Start()
	loaded()
}
