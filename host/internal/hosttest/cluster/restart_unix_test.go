//go:build unix

package cluster_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// balancer sends each request to the next host that it can connect to. Whatever is no success and no 503
// is a failure.
type balancer struct {
	t       *testing.T
	hosts   []*hosttest.Process
	next    atomic.Int64
	refused atomic.Int64 // with 503
}

// RoundTrip implements [http.RoundTripper].
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		one := r.Clone(r.Context())
		one.URL.Host = b.hosts[int(b.next.Add(1))%len(b.hosts)].Addr
		one.Host = one.URL.Host
		if r.GetBody != nil {
			var err error
			if one.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		rsp, err := http.DefaultTransport.RoundTrip(one)
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && r.Context().Err() == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		switch {
		case err != nil:
			if r.Context().Err() == nil {
				b.t.Errorf("%s %s at %s: %v", r.Method, r.URL.Path, one.URL.Host, err)
			}
		case rsp.StatusCode == http.StatusServiceUnavailable:
			b.refused.Add(1)
		case rsp.StatusCode >= http.StatusBadRequest:
			b.t.Errorf("%s %s at %s: %s", r.Method, r.URL.Path, one.URL.Host, rsp.Status)
		}
		return rsp, err
	}
}

// TestRollingRestart: while hosts are restarted one after the other under load, no request fails of
// callers behind a balancer that come again after a 503, and no connection is cut while an answer is due.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 3)
	clientsOf(hosts)
	b := &balancer{t: t, hosts: hosts}
	c, err := client.New(client.Options{URL: "http://hosts.example", Token: hosttest.ScriptKey, Patience: 2 * time.Minute, HTTP: &http.Client{Transport: b}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range hosts {
		waitReady(t, p)
	}
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		for _, p := range hosts {
			p.Signal(syscall.SIGTERM)
			if code, _ := p.End(); code != 0 {
				t.Errorf("the host at %s was stopped and has ended with code %d", p.Addr, code)
			}
			p.Start()
			waitReady(t, p)
		}
	}()
	rounds := 0
	for ; !isClosed(restarted) && !t.Failed(); rounds++ {
		startLoad(t, []*client.Client{c}, fmt.Sprint("r", rounds, "-"), 16, 0)()
	}
	<-restarted
	t.Logf("%d rounds, %d requests refused with 503", rounds, b.refused.Load())
}
