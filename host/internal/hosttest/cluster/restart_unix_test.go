//go:build unix

package cluster_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// balancer sends each request to the next host. One that it cannot connect to, or that has answered with 503, gets
// none for a second. Whatever is no success and no 503 is a failure. No connection is used twice: a host may close
// one in the moment in which a second request is sent on it.
type balancer struct {
	t       *testing.T
	carrier http.Transport
	hosts   []*hosttest.Process
	next    atomic.Int64
	refused atomic.Int64 // with 503
	away    sync.Map     // of the address: when it gets requests again
}

// choose returns the address of the next host that is not away, or any.
func (b *balancer) choose() (addr string) {
	for range b.hosts {
		addr = b.hosts[int(b.next.Add(1))%len(b.hosts)].Addr
		if back, ok := b.away.Load(addr); !ok || time.Now().After(back.(time.Time)) {
			break
		}
	}
	return addr
}

// RoundTrip implements [http.RoundTripper].
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		one := r.Clone(r.Context())
		one.URL.Host = b.choose()
		one.Host = one.URL.Host
		if r.GetBody != nil {
			var err error
			if one.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		rsp, err := b.carrier.RoundTrip(one)
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && r.Context().Err() == nil {
			b.away.Store(one.Host, time.Now().Add(time.Second))
			time.Sleep(time.Millisecond)
			continue
		}
		switch {
		case err != nil:
			if r.Context().Err() == nil {
				b.t.Errorf("%s %s at %s: %v", r.Method, r.URL.Path, one.Host, err)
			}
		case rsp.StatusCode == http.StatusServiceUnavailable:
			b.away.Store(one.Host, time.Now().Add(time.Second))
			b.refused.Add(1)
		case rsp.StatusCode >= http.StatusBadRequest:
			b.t.Errorf("%s %s at %s: %s", r.Method, r.URL.Path, one.Host, rsp.Status)
		}
		return rsp, err
	}
}

// loadWhile puts load on hosts behind a balancer while something is done, which must not end the test.
func loadWhile(t *testing.T, hosts []*hosttest.Process, do func()) {
	t.Helper()
	clientsOf(hosts)
	b := &balancer{t: t, carrier: http.Transport{DisableKeepAlives: true}, hosts: hosts}
	c, err := client.New(client.Options{URL: "http://hosts.example", Token: hosttest.ScriptKey, Patience: 2 * time.Minute, HTTP: &http.Client{Transport: b}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range hosts {
		waitReady(t, p)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	rounds := 0
	for ; !isClosed(done) && !t.Failed(); rounds++ {
		startLoad(t, []*client.Client{c}, fmt.Sprint("r", rounds, "-"), 16, 0)()
	}
	<-done
	t.Logf("%d rounds, %d requests refused with 503", rounds, b.refused.Load())
}

// restart stops a host and starts it again, with a program.
func restart(t *testing.T, p *hosttest.Process, program string) {
	t.Helper()
	p.Signal(syscall.SIGTERM)
	if code, _ := p.End(); code != 0 {
		t.Errorf("the host at %s was stopped and has ended with code %d", p.Addr, code)
	}
	p.Program = program
	p.Start()
	waitReady(t, p)
}

// TestRollingRestart: while hosts are restarted one after the other under load, no request fails of
// callers behind a balancer that come again after a 503, and no connection is cut while an answer is due.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 3)
	loadWhile(t, hosts, func() {
		for _, p := range hosts {
			restart(t, p, p.Program)
		}
	})
}
