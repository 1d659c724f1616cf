package router_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/peer/router"
	"skep/host/internal/turn/egress"
)

// A peer that accepts a connection and never answers has thirty seconds.
func TestTimeLimit_G64(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newFakeOutbox()
		peer := router.Peer{BaseURL: "http://127.0.0.1:1", Token: "the-token", GiveUp: 30 * time.Second, AllowPrivate: true}
		r := router.New(router.Options{Local: "hive", Peers: peers{"depot": peer}, Egress: egress.Options{Dial: silentDial}})
		o.put(box("t", "depot"), newDelivery(1, false))
		stop := started(t, r, o)
		begun := time.Now()
		<-o.settled
		if took := time.Since(begun); took != 30*time.Second || !strings.Contains(o.failed[id(1)], "no whole answer within 30s") {
			t.Errorf("after %s: %q", took, o.failed)
		}
		stop()
	})
}

// silentDial opens a connection to a server that reads and never answers.
func silentDial(context.Context, netip.AddrPort) (net.Conn, error) {
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	return here, nil
}

// A peer that never answers has as much time as the message and a second more.
// The time of an answer is not cut short.
func TestTimeLimitPerDelivery(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ giveUp, until, want time.Duration }{
		"a request":        {3 * time.Second, 0, 3 * time.Second},
		"a hurried one":    {time.Millisecond, 0, time.Second},
		"an answer":        {3 * time.Second, 31 * time.Second, 30 * time.Second},
		"an answer's last": {3 * time.Second, 10 * time.Second, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var began []time.Time
			hear := func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
				began = append(began, time.Now())
				return silentDial(ctx, to)
			}
			o := newFakeOutbox()
			peer := router.Peer{BaseURL: "http://127.0.0.1:1", Token: "the-token", GiveUp: c.giveUp, AllowPrivate: true}
			r := router.New(router.Options{Local: "hive", Peers: peers{"depot": peer}, Egress: egress.Options{Dial: hear}})
			p := newDelivery(1, true)
			if c.until > 0 {
				p.GiveUpAt = p.Since.Add(c.until)
			}
			o.put(box("t", "depot"), p)
			stop := started(t, r, o)
			begun := time.Now()
			for len(o.settled) == 0 && r.Deferred("depot") == 0 {
				time.Sleep(time.Second / 10)
				synctest.Wait()
			}
			took := time.Since(begun)
			stop()
			if took != c.want || len(began) != 1 {
				t.Errorf("%s: after %s, %d requests, %q", name, took, len(began), o.failed)
			}
		})
	}
}

// Two messages that fail at the same time are not tried again at the same time:
// the backoff has jitter in its upper half.
func TestJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		tries, pauses := map[string][]time.Duration{}, 0
		begun := time.Now()
		refuse := func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			tries[to.Addr().String()] = append(tries[to.Addr().String()], time.Since(begun))
			return nil, syscall.ECONNREFUSED
		}
		ends := func(below time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if pauses++; pauses%2 == 0 {
				return below - 1
			}
			return 0
		}
		o, known := newFakeOutbox(), peers{}
		for n, name := range []string{"127.0.0.1", "127.0.0.2"} {
			known[name] = router.Peer{BaseURL: "http://" + name, Token: "the-token", GiveUp: 200 * time.Millisecond, AllowPrivate: true}
			o.put(box("t", name), newDelivery(int64(n+1), false))
		}
		stop := started(t, router.New(router.Options{Local: "hive", Peers: known, Egress: egress.Options{Dial: refuse}, RandomBelow: ends}), o)
		<-o.settled
		<-o.settled
		stop()
		first, second := tries["127.0.0.1"], tries["127.0.0.2"]
		if first[1] > second[1] {
			first, second = second, first
		}
		const half, whole = 100 * time.Millisecond, 200 * time.Millisecond // which is all of give_up, too
		if !slices.Equal(first, []time.Duration{0, half, whole}) || !slices.Equal(second, []time.Duration{0, whole}) {
			t.Errorf("tried after %s and %s", first, second)
		}
	})
}

// A message that the breaker kept away is tried once before it is given up, and all
// that waits goes out when the peer is known to be up.
func TestBreakerAndGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		tries := 0
		refuse := func(context.Context, netip.AddrPort) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			tries++
			return nil, syscall.ECONNREFUSED
		}
		o := newFakeOutbox()
		peer := router.Peer{BaseURL: "http://127.0.0.1:1", Token: "the-token", GiveUp: 15 * time.Second, AllowPrivate: true}
		r := router.New(router.Options{Local: "hive", Peers: peers{"depot": peer}, Egress: egress.Options{Dial: refuse}})
		for n := range int64(3) {
			o.put(box("t", "depot"), newDelivery(n+1, false))
		}
		stop := started(t, r, o)
		for range 3 {
			<-o.settled
		}
		for n := range int64(3) {
			if why := o.failed[id(n+1)]; why == "" || strings.Contains(why, " 0 tries") {
				t.Errorf("letter %d: %q", n+1, why)
			}
		}
		time.Sleep(time.Minute) // it has rested
		late := newDelivery(4, false)
		o.put(box("t", "depot"), late)
		r.Wake(box("t", "depot"))
		synctest.Wait()
		mu.Lock()
		before := tries
		mu.Unlock()
		r.MarkPeerUp("depot")
		synctest.Wait()
		mu.Lock()
		if tries != before+1 {
			t.Errorf("%d tries when the peer is up, had %d", tries, before)
		}
		mu.Unlock()
		stop()
	})
}

// started runs a router in a bubble of its own time; stop ends it.
func started(t *testing.T, r *router.Router, o *fakeOutbox) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, o) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
