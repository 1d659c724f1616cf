package mailtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// gate is a web site at which turns wait until the test lets them go. Unlike a
// sleep it says when a turn has come there.
type gate struct {
	t      *testing.T
	url    string
	came   chan struct{}
	opened chan struct{}
	open   func()
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{t: t, came: make(chan struct{}, 16), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.came <- struct{}{}
		select {
		case <-g.opened:
		case <-r.Context().Done():
		}
	}))
	g.url = site.URL
	t.Cleanup(func() { g.open(); site.Close() })
	return g
}

// step is the call at which a script waits.
func (g *gate) step() (name string, args obj) {
	return "http.fetch", obj{"method": "GET", "url": g.url}
}

// await waits until n turns, that were not waited for before, are at the gate.
func (g *gate) await(n int) {
	g.t.Helper()
	late := time.After(patience)
	for i := range n {
		select {
		case <-g.came:
		case <-late:
			g.t.Fatalf("%d of %d turns came to the gate", i, n)
		}
	}
}

// granted lets the agents of a swarm.toml go to the gate.
func (g *gate) granted(agents string) string {
	allow := fmt.Sprintf("allow = { http = [%q], http_private = true }\ncomm_targets", g.url)
	return strings.ReplaceAll(agents, "comm_targets", allow)
}
