package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeOutbox holds messages in memory.
type fakeOutbox struct {
	mu     sync.Mutex
	boxes  map[swarm.OutboxKey][]swarm.Delivery
	taken  []string // "id runner"
	failed map[string]string
	broken int // how many calls fail first
	looked int // how many messages were looked at
	// anyOrder allows messages for several recipients to be settled in any order, and
	// unmarked is how many messages cannot be marked at first.
	anyOrder bool
	unmarked int
	settled  chan string
	retried  []string
}

func newFakeOutbox() *fakeOutbox {
	return &fakeOutbox{boxes: map[swarm.OutboxKey][]swarm.Delivery{}, failed: map[string]string{}, settled: make(chan string, 1000)}
}

func (o *fakeOutbox) put(box swarm.OutboxKey, p swarm.Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.boxes[box] = append(o.boxes[box], p)
}

// erase removes all messages.
func (o *fakeOutbox) erase() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.boxes)
}

func (o *fakeOutbox) Outboxes(context.Context) (list []swarm.OutboxKey, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for box := range o.boxes {
		list = append(list, box)
	}
	return list, nil
}

func (o *fakeOutbox) NextDelivery(_ context.Context, box swarm.OutboxKey, resting ...string) (swarm.Delivery, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken > 0 {
		o.broken--
		return swarm.Delivery{}, false, errors.New("the disk is slow")
	}
	return o.next(box, func(p swarm.Delivery) bool { return !slices.Contains(resting, p.Wrapper.MessageID) })
}

// next returns the first delivery that is wanted. The caller holds mu.
func (o *fakeOutbox) next(box swarm.OutboxKey, wanted func(swarm.Delivery) bool) (swarm.Delivery, bool, error) {
	for i, p := range o.boxes[box] {
		o.looked++
		if wanted(p) {
			p.Last = !slices.ContainsFunc(o.boxes[box][i+1:], wanted)
			return p, true, nil
		}
	}
	return swarm.Delivery{}, false, nil
}

func (o *fakeOutbox) NextWanted(_ context.Context, box swarm.OutboxKey, wanted func(swarm.OutboxMessage) bool) (swarm.Delivery, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken > 0 {
		o.broken--
		return swarm.Delivery{}, false, errors.New("the disk is slow")
	}
	return o.next(box, func(p swarm.Delivery) bool {
		return wanted(swarm.OutboxMessage{ID: p.Wrapper.MessageID, Message: mail.Message{Type: p.Wrapper.Type, Payload: p.Wrapper.Payload}})
	})
}

func (o *fakeOutbox) settle(box swarm.OutboxKey, id string, note func(id string)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unmarked > 0 {
		o.unmarked--
		return errors.New("the disk is full")
	}
	i := slices.IndexFunc(o.boxes[box], func(p swarm.Delivery) bool { return p.Wrapper.MessageID == id })
	if i < 0 {
		return swarm.ErrNotFound
	}
	if i > 0 && !o.anyOrder && o.boxes[box][0].GiveUpAt.IsZero() {
		return fmt.Errorf("letter %s is settled, which is not first", id)
	}
	p := o.boxes[box][i]
	o.boxes[box] = slices.Delete(o.boxes[box], i, i+1)
	note(p.Wrapper.MessageID)
	o.settled <- p.Wrapper.MessageID
	return nil
}

// MarkDelivered fails for a caller that has left, as the runtime's may.
func (o *fakeOutbox) MarkDelivered(ctx context.Context, box swarm.OutboxKey, id, runner string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return o.settle(box, id, func(id string) { o.taken = append(o.taken, id+" "+runner) })
}

func (o *fakeOutbox) MarkUndeliverable(_ context.Context, box swarm.OutboxKey, id, reason string) error {
	return o.settle(box, id, func(id string) { o.failed[id] = reason })
}

func (o *fakeOutbox) ShowRetry(_ swarm.OutboxKey, message, _ string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.retried = append(o.retried, message)
}

// wait returns when n messages are settled.
func (o *fakeOutbox) wait(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		select {
		case <-o.settled:
		case <-time.After(30 * time.Second):
			o.mu.Lock()
			defer o.mu.Unlock()
			t.Fatalf("%d of %d messages are settled: taken %q, failed %q, left in %d outboxes", i, n, o.taken, o.failed, len(o.boxes))
		}
	}
}

// peers are the swarms that are known.
type peers map[string]router.Peer

func (p peers) Peer(name string) (router.Peer, error) {
	one, ok := p[name]
	if !ok {
		return one, fmt.Errorf("unknown swarm endpoint: '%s'", name)
	}
	return one, nil
}

// fakePeer is a peer with scripted answers that keeps the requests.
type fakePeer struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(n int, path string) (status int, body string)
	seen   []string // "path id"
	last   *http.Request
	body   string
}

func newFakePeer(t *testing.T, answer func(n int, path string) (int, string)) *fakePeer {
	t.Helper()
	d := &fakePeer{answer: answer}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var in struct{ Message mail.Interswarm }
		if err := json.Unmarshal(raw, &in); err != nil {
			t.Errorf("the peer got %s: %v", raw, err)
		}
		d.mu.Lock()
		d.seen = append(d.seen, r.URL.Path+" "+in.Message.MessageID)
		n := len(d.seen)
		d.last, d.body = r, string(raw)
		d.mu.Unlock()
		status, body := d.answer(n, r.URL.Path)
		if status == 429 {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *fakePeer) requests() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.seen)
}

func ok(int, string) (int, string) {
	return 200, `{"swarm":"depot","task_id":"t","status":"success","local_runner":"swarm:hive@depot"}`
}

func (d *fakePeer) peer() router.Peer {
	return router.Peer{BaseURL: d.URL, Token: "the-token", GiveUp: 400 * time.Millisecond, AllowPrivate: true}
}

func box(task, peer string) swarm.OutboxKey {
	key := swarm.InstanceKey{Tenant: "default", Swarm: "hive", Instance: "user:alice"}
	return swarm.OutboxKey{Task: swarm.TaskKey{InstanceKey: key, Task: task}, Peer: peer}
}

func newDelivery(n int64, back bool) swarm.Delivery {
	id := mail.NewUUID([16]byte{byte(n >> 8), byte(n)})
	return swarm.Delivery{
		Since: time.Now(), Back: back, Hops: 1, Trace: swarm.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "rojo=1"),
		Wrapper: mail.Interswarm{
			MessageID: id, SourceSwarm: "hive", TargetSwarm: "depot", Timestamp: mail.FormatTime(time.Unix(1e9, 0)), Type: mail.Request,
			TaskOwner: "user:alice@hive", TaskContributors: []string{"user:alice@hive"},
			Payload: mail.Payload{
				TaskID: "t", ID: id, Sender: mail.Address{Type: mail.Agent, Name: "boss@hive"},
				Recipients: []mail.Address{{Type: mail.Agent, Name: "stock@depot"}}, Subject: "s", Body: "b", RecipientSwarms: []string{"depot"},
			},
		},
	}
}

func id(n int64) string { return newDelivery(n, false).Wrapper.MessageID }

// number is what newDelivery has made the id of.
func number(d swarm.Delivery) int64 {
	n, err := strconv.ParseInt(d.Wrapper.MessageID[:4], 16, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// run starts a router and stops it when the test ends.
func run(t *testing.T, o router.Outbox, p router.Peers, change ...func(*router.Options)) *router.Router {
	t.Helper()
	opt := router.Options{Local: "hive", Peers: p}
	for _, c := range change {
		c(&opt)
	}
	r := router.New(opt)
	start(t, r, o)
	return r
}

func start(t *testing.T, r *router.Router, o router.Outbox) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
	})
}

// The body and the headers of a request; only the header has the token.
func TestDeliver(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	r := run(t, o, peers{"depot": d.peer()})
	o.put(box("t", "depot"), newDelivery(1, false))
	r.Wake(box("t", "depot"))
	o.wait(t, 1)
	h := d.last.Header
	for name, want := range map[string]string{
		"Authorization": "Bearer the-token", "User-Agent": "MAIL-Interswarm-Router/hive", "Content-Type": "application/json",
		"X-Mail-Hop": "1", "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate": "rojo=1",
	} {
		if h.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, h.Get(name), want)
		}
	}
	if !strings.Contains(d.body, `"auth_token":""`) || !strings.Contains(d.body, `"metadata":{}`) || strings.Contains(d.body, "the-token") || strings.Contains(d.body, "null") {
		t.Errorf("body %s", d.body)
	}
	if want := []string{id(1) + " swarm:hive@depot"}; !slices.Equal(o.taken, want) {
		t.Errorf("taken %q, want %q", o.taken, want)
	}
}

// G-71: a peer that looks for the token in the body finds it when that is wanted.
func TestBodyToken(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	p := d.peer()
	p.BodyToken = true
	r := run(t, o, peers{"depot": p})
	o.put(box("t", "depot"), newDelivery(1, false))
	r.Wake(box("t", "depot"))
	o.wait(t, 1)
	if !strings.Contains(d.body, `"auth_token":"the-token"`) {
		t.Errorf("body %s", d.body)
	}
}

// A dead peer is given up, and what waits behind goes the same way.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	peer := d.peer()
	d.Close()
	r := run(t, o, peers{"depot": peer})
	o.put(box("t", "depot"), newDelivery(1, false))
	o.put(box("t", "depot"), newDelivery(2, true))
	o.put(box("u", "nowhere"), newDelivery(3, false))
	r.Wake(box("t", "depot"))
	r.Wake(box("u", "nowhere"))
	o.wait(t, 3)
	for n, want := range map[int64]string{1: "did not take it within 400ms ([peers.depot] give_up)", 2: "did not take it within", 3: "unknown swarm endpoint: 'nowhere'"} {
		if got := o.failed[id(n)]; !strings.Contains(got, want) || strings.Contains(got, "the-token") {
			t.Errorf("letter %d failed with %q, want %q", n, got, want)
		}
	}
}

// A private address is reached only where that is meant (SSRF).
func TestPrivateAddress(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	peer := d.peer()
	peer.AllowPrivate = false
	r := run(t, o, peers{"depot": peer})
	o.put(box("t", "depot"), newDelivery(1, false))
	r.Wake(box("t", "depot"))
	o.wait(t, 1)
	why := o.failed[id(1)]
	if len(d.requests()) > 0 || !strings.HasPrefix(why, "this host cannot write to swarm 'depot': ") || !strings.HasSuffix(why, "it takes allow_private = true in [peers.depot]") {
		t.Errorf("requests %q, failed %q", d.requests(), o.failed)
	}
}

// The messages of one task go in their order, one at a time; tasks do not wait
// for each other, and workers are bounded.
func TestOrder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	under, most := 0, 0
	d := newFakePeer(t, func(n int, path string) (int, string) {
		mu.Lock()
		under++
		most = max(most, under)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		under--
		mu.Unlock()
		return ok(n, path)
	})
	o := newFakeOutbox()
	r := run(t, o, peers{"depot": d.peer()}, func(opt *router.Options) { opt.PeerWorkers = 2 })
	for n := range int64(20) {
		for task := range int64(5) {
			b := box(fmt.Sprint(task), "depot")
			o.put(b, newDelivery(task*40+n+1, false))
			r.Wake(b)
		}
	}
	o.wait(t, 100)
	if most > 2 {
		t.Errorf("%d requests at once", most)
	}
	seen := map[int]int{}
	for _, s := range d.requests() {
		var n int
		_, err := fmt.Sscanf(strings.Fields(s)[1][:4], "%x", &n)
		task := (n - 1) / 40
		if err != nil || n <= seen[task] {
			t.Errorf("%s came after %d", s, seen[task])
		}
		seen[task] = n
	}
}

// What an earlier host has left is delivered, and what was woken before Run; a slow
// store only delays it.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	o.broken = 2
	o.put(box("t", "depot"), newDelivery(1, false))
	r := run(t, o, peers{"depot": d.peer()})
	o.wait(t, 1)
	o.put(box("u", "depot"), newDelivery(2, false))
	r.Wake(box("u", "depot"))
	o.wait(t, 1)
}

// A router that stops leaves messages in their outboxes.
func TestStop(t *testing.T) {
	t.Parallel()
	began, hold := make(chan struct{}, 10), make(chan struct{})
	d := newFakePeer(t, func(n int, path string) (int, string) {
		began <- struct{}{}
		<-hold
		return ok(n, path)
	})
	defer close(hold)
	o := newFakeOutbox()
	o.put(box("t", "depot"), newDelivery(1, false))
	r := router.New(router.Options{Local: "hive", Peers: peers{"depot": d.peer()}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, o) }()
	<-began
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	r.Wake(box("t", "depot"))
	if len(o.boxes[box("t", "depot")]) != 1 || len(o.failed) > 0 {
		t.Errorf("left %v, failed %q", o.boxes, o.failed)
	}
}
