package router_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
)

// clock is a time that a test moves on.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) move(d time.Duration) { c.ahead.Add(int64(d)) }

// answerTo is a message without a waiting sender.
func answerTo(n int64) swarm.Delivery {
	p := newDelivery(n, true)
	p.GiveUpAt = p.Since.Add(24 * time.Hour)
	return p
}

// waitDeferred waits until a peer's answers are deferred and no worker has them.
func waitDeferred(t *testing.T, r *router.Router, boxes int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); r.Workers("depot") > 0 || r.Deferred("depot") != boxes; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d workers, and answers of %d outboxes deferred, want those of %d and no worker", r.Workers("depot"), r.Deferred("depot"), boxes)
		}
	}
}

// An answer whose peer does not answer waits for it, and holds up no request: that
// one is given up. When the peer is back the answers come, in their order.
func TestAnswersDeferred(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	d, o := newFakePeer(t, func(n int, path string) (int, string) {
		if !up.Load() {
			return 502, "bad gateway"
		}
		return ok(n, path)
	}), newFakeOutbox()
	var c clock
	r := run(t, o, peers{"depot": d.peer()}, func(o *router.Options) { o.Now, o.PeerWorkers = c.now, 1 })
	o.put(box("t", "depot"), answerTo(1))
	o.put(box("t", "depot"), newDelivery(2, true))
	o.put(box("t", "depot"), answerTo(3))
	o.put(box("u", "depot"), answerTo(4))
	r.Wake(box("t", "depot"))
	r.Wake(box("u", "depot"))
	o.wait(t, 1)
	if why := o.failed[id(2)]; !strings.Contains(why, "did not take it within 400ms ([peers.depot] give_up)") {
		t.Errorf("the request: %q", why)
	}
	waitDeferred(t, r, 2)
	if got := r.Stats(); len(got) != 1 || got[0].Outboxes != 2 || got[0].Dead != 1 {
		t.Errorf("counted %+v", got)
	}
	// The answer behind one that is deferred is deferred untried: it must not overtake.
	if seen := d.requests(); slices.ContainsFunc(seen, func(s string) bool { return strings.HasSuffix(s, id(3)) }) {
		t.Errorf("the third message was tried before the first was taken: %q", seen)
	}
	up.Store(true)
	c.move(time.Hour)
	o.wait(t, 3)
	seen := d.requests()
	if want := []string{id(1) + " swarm:hive@depot", id(3) + " swarm:hive@depot"}; !slices.Equal(slices.DeleteFunc(o.taken, func(s string) bool { return strings.HasPrefix(s, id(4)) }), want) {
		t.Errorf("taken %q of %q, want %q", o.taken, seen, want)
	}
}

// An answer is given up in the end, and one that is refused at once.
func TestAnswersEnd(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	d, o := newFakePeer(t, func(int, string) (int, string) {
		if refuses.Load() {
			return 401, `{"detail":"invalid role"}`
		}
		return 502, "bad gateway"
	}), newFakeOutbox()
	var c clock
	r := run(t, o, peers{"depot": d.peer()}, func(o *router.Options) { o.Now = c.now })
	o.put(box("t", "depot"), answerTo(1))
	r.Wake(box("t", "depot"))
	waitDeferred(t, r, 1)
	c.move(25 * time.Hour)
	o.wait(t, 1)
	if why := o.failed[id(1)]; !strings.Contains(why, "did not take it within 24h0m0s") {
		t.Errorf("given up: %q", why)
	}
	refuses.Store(true)
	late := answerTo(2)
	late.Since, late.GiveUpAt = c.now(), c.now().Add(24*time.Hour)
	o.put(box("u", "depot"), late)
	r.Wake(box("u", "depot"))
	o.wait(t, 1)
	if why := o.failed[id(2)]; !strings.Contains(why, "refuses it: 401") {
		t.Errorf("refused: %q", why)
	}
}
