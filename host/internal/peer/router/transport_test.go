package router_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
)

// dial lets all addresses be one server's, and keeps how long a dial may take.
type dial struct {
	to     string
	mu     sync.Mutex
	within []time.Duration
}

func (d *dial) open(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
	end, _ := ctx.Deadline()
	d.mu.Lock()
	d.within = append(d.within, time.Until(end))
	d.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, "tcp", d.to)
}

// names answers each lookup of any name with the next address, the last again.
type names struct {
	mu    sync.Mutex
	addrs []string
}

func (n *names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.addrs[0]
	if len(n.addrs) > 1 {
		n.addrs = n.addrs[1:]
	}
	return []netip.Addr{netip.MustParseAddr(a)}, nil
}

// Requests to a peer share one connection, which has five seconds to open.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	dial := &dial{to: d.Listener.Addr().String()}
	r := run(t, o, peers{"depot": d.peer()}, func(opt *router.Options) { opt.Egress.Dial = dial.open })
	for n := range int64(3) {
		o.put(box("t", "depot"), newDelivery(n+1, false))
		r.Wake(box("t", "depot"))
		o.wait(t, 1)
	}
	if len(o.taken) != 3 || len(dial.within) != 1 || dial.within[0] > 5*time.Second {
		t.Errorf("taken %q, dialled within %v", o.taken, dial.within)
	}
}

// A name that leads to a private address by the next time is refused then, though
// a connection to it was fine before.
func TestRebinding(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	tls := httptest.NewTLSServer(d.Config.Handler)
	t.Cleanup(tls.Close)
	tls.Config.SetKeepAlivesEnabled(false)
	dial := &dial{to: tls.Listener.Addr().String()}
	roots := x509.NewCertPool()
	roots.AddCert(tls.Certificate())
	peer := d.peer()
	peer.BaseURL, peer.AllowPrivate = "https://example.com", false // as its certificate says
	r := run(t, o, peers{"depot": peer}, func(opt *router.Options) {
		opt.Egress.Dial, opt.Egress.Resolver = dial.open, &names{addrs: []string{"93.184.216.34", "169.254.169.254"}}
		opt.Egress.RootCAs = roots
	})
	for n := range int64(2) {
		o.put(box("t", "depot"), newDelivery(n+1, false))
		r.Wake(box("t", "depot"))
		o.wait(t, 1)
	}
	if len(o.taken) != 1 || !strings.Contains(o.failed[id(2)], "link-local") || len(dial.within) != 1 {
		t.Errorf("taken %q, failed %q, dialled %d times", o.taken, o.failed, len(dial.within))
	}
}

// Redirects are not followed, and answers are read up to a bound only.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/elsewhere":
			elsewhere.Add(1)
		case strings.HasPrefix(r.URL.Path, "/moved"):
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case strings.HasPrefix(r.URL.Path, "/away"):
			http.Redirect(w, r, "http://elsewhere.test/", http.StatusTemporaryRedirect)
		default:
			_, _ = fmt.Fprintf(w, `{"local_runner":%q}`, strings.Repeat("x", 100<<10))
		}
	}))
	t.Cleanup(s.Close)
	o, known := newFakeOutbox(), peers{}
	for i, path := range []string{"/moved", "/away", "/long"} {
		known[path[1:]] = router.Peer{BaseURL: s.URL + path, Token: "the-token", GiveUp: 10 * time.Millisecond, AllowPrivate: true}
		o.put(box("t", path[1:]), newDelivery(int64(i+1), false))
	}
	run(t, o, known)
	o.wait(t, 3)
	for n, want := range map[int64]string{1: "redirect", 2: "redirect", 3: "answer is larger than 65536 bytes"} {
		if !strings.Contains(o.failed[id(n)], want) {
			t.Errorf("letter %d: %q, want %q", n, o.failed[id(n)], want)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// withLongGiveUp is a peer whose answers are waited for as long as may be.
func withLongGiveUp(p router.Peer) router.Peer {
	p.GiveUp = time.Minute
	return p
}

// Slow peers, however many, do not delay mail to another.
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	hold, slow := make(chan struct{}), make(chan struct{}, 1000)
	stuck := newFakePeer(t, func(n int, path string) (int, string) {
		slow <- struct{}{}
		<-hold
		return ok(n, path)
	})
	d, o, known := newFakePeer(t, ok), newFakeOutbox(), peers{}
	known["depot"] = d.peer()
	letters := int64(0)
	for i := range 12 {
		name := fmt.Sprintf("slow%d", i)
		known[name] = withLongGiveUp(stuck.peer())
		for task := range 10 {
			letters++
			o.put(box(fmt.Sprint(task), name), newDelivery(letters, false))
		}
	}
	r := run(t, o, known)
	for range 76 { // 64 from the pool, and one of each
		<-slow
	}
	o.put(box("t", "depot"), newDelivery(200, false))
	r.Wake(box("t", "depot"))
	o.wait(t, 1)
	if len(o.taken) != 1 || !strings.HasPrefix(o.taken[0], id(200)) || len(slow) != 0 {
		t.Errorf("taken %q, %d more slow ones", o.taken, len(slow))
	}
	close(hold)
	o.wait(t, int(letters))
}

// A peer with very many outboxes has as many workers as one with few.
func TestManyOutboxes(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	d := newFakePeer(t, func(n int, path string) (int, string) { <-hold; return ok(n, path) })
	o := &countingOutbox{fakeOutbox: newFakeOutbox()}
	o.settled = make(chan string, 10_000)
	for n := range 10_000 {
		o.put(box(fmt.Sprint(n), "depot"), newDelivery(1, false))
	}
	r := router.New(router.Options{Local: "hive", Peers: peers{"depot": withLongGiveUp(d.peer())}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, o) }()
	for s := r.Stats(); len(s) == 0 || s[0].Outboxes < 10_000; s = r.Stats() {
		time.Sleep(time.Millisecond)
	}
	close(hold)
	o.wait(t, 10_000)
	if most := o.most.Load(); most > 16 {
		t.Errorf("%d lanes at once", most)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// countingOutbox counts the workers between NextDelivery and the end of the
// delivery.
type countingOutbox struct {
	*fakeOutbox
	now, most atomic.Int64
}

func (o *countingOutbox) NextDelivery(ctx context.Context, box swarm.OutboxKey, resting ...string) (swarm.Delivery, bool, error) {
	p, ok, err := o.fakeOutbox.NextDelivery(ctx, box, resting...)
	if ok {
		n := o.now.Add(1)
		for most := o.most.Load(); n > most && !o.most.CompareAndSwap(most, n); most = o.most.Load() {
		}
	}
	return p, ok, err
}

func (o *countingOutbox) MarkDelivered(ctx context.Context, box swarm.OutboxKey, id, runner string) error {
	o.now.Add(-1)
	return o.fakeOutbox.MarkDelivered(ctx, box, id, runner)
}

func (o *countingOutbox) MarkUndeliverable(ctx context.Context, box swarm.OutboxKey, id, reason string) error {
	o.now.Add(-1)
	return o.fakeOutbox.MarkUndeliverable(ctx, box, id, reason)
}

// Deliveries are counted by peer, for known peers only.
func TestStats(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, func(n int, path string) (int, string) {
		if n == 2 {
			return 401, `{"detail":"invalid role"}`
		}
		return ok(n, path)
	}), newFakeOutbox()
	gone := newFakePeer(t, ok)
	dead := gone.peer()
	gone.Close()
	dead.GiveUp = time.Minute
	r := run(t, o, peers{"depot": d.peer(), "dead": dead})
	for n := range int64(3) {
		o.put(box("t", "depot"), newDelivery(n+1, false))
	}
	o.put(box("t", "nowhere"), newDelivery(4, false))
	r.Wake(box("t", "depot"))
	r.Wake(box("t", "nowhere"))
	o.wait(t, 4)
	o.put(box("t", "dead"), newDelivery(5, false))
	r.Wake(box("t", "dead"))
	for {
		got := r.Stats()
		if len(got) != 2 || got[0].Peer != "dead" || got[1].Peer != "depot" {
			t.Fatalf("counted %+v", got)
		}
		if got[0].Attempts < 5 || got[0].Breaker == router.BreakerClosed || got[1].Outboxes > 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		if got[0].Outboxes != 1 || got[1] != (router.Stats{Peer: "depot", Attempts: 3, Delivered: 2, Dead: 1}) {
			t.Errorf("counted %+v", got)
		}
		return
	}
}
