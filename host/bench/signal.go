package main

import (
	"context"
	"net/http"
	"strconv"
	"sync"
)

// burst is how many events are sent to each reader, and how large each is.
type burst struct{ events, size int }

// signal holds senders back until a burst is called for. It is safe for
// concurrent use.
type signal struct {
	mu     sync.Mutex
	opened chan struct{}
	burst  burst
}

func newSignal() *signal { return &signal{opened: make(chan struct{})} }

// next returns what waits for the next burst that is called for from now on.
func (g *signal) next() func(context.Context) (burst, error) {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	return func(ctx context.Context) (burst, error) {
		select {
		case <-opened:
		case <-ctx.Done():
			return burst{}, context.Cause(ctx)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.burst, nil
	}
}

// ServeHTTP is POST /open: all that wait go on.
func (g *signal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	events, err := strconv.Atoi(r.FormValue("events"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	size, err := strconv.Atoi(r.FormValue("size"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.burst = burst{events, size}
	close(g.opened)
	g.opened = make(chan struct{})
}
