package router_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/peer/router"
	"skep/host/internal/peer/signature"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// The trace goes with the message too, for those that pass it on and drop headers;
// what else routing_info has stays.
func TestTrace(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	run := run(t, o, peers{"depot": d.peer()})
	p := newDelivery(1, false)
	p.Wrapper.Payload.RoutingInfo = json.RawMessage(`{"remote_swarm":"depot","traceparent":"old"}`)
	o.put(box("t", "depot"), p)
	run.Wake(box("t", "depot"))
	o.wait(t, 1)
	var in struct{ Message mail.Interswarm }
	if err := json.Unmarshal([]byte(d.body), &in); err != nil {
		t.Fatal(err)
	}
	if want := `{"remote_swarm":"depot","traceparent":"` + p.Trace.Parent() + `","tracestate":"rojo=1"}`; string(in.Message.Payload.RoutingInfo) != want {
		t.Errorf("routing_info %s, want %s", in.Message.Payload.RoutingInfo, want)
	}
}

// The contributors fit the route: a reference server takes a task as new when they have
// none of its instances, and as known when they have one.
func TestContributors(t *testing.T) {
	t.Parallel()
	const owner, third = "user:alice@hive", "swarm:hive@yard"
	for name, c := range map[string]struct {
		back        bool
		reply       string // to the first request; empty for an acceptance
		owner       string
		named, want []string
	}{
		"a new task":             {false, "", owner, []string{owner, third}, []string{owner, third}},
		"a known task":           {true, "", owner, []string{owner, "swarm:h1@depot"}, []string{owner, "swarm:h1@depot"}},
		"a task it forgot":       {true, `{"detail":"task is not running"}`, owner, []string{owner, "swarm:h1@depot", third}, []string{owner, third}},
		"its own, which it lost": {true, `{"detail":"task is not running"}`, "user:u@depot", []string{"user:u@depot", "swarm:h1@depot"}, []string{"user:u@depot"}},
		"a task it has":          {false, `{"detail":"server failed to receive interswarm forward message: a task with ID 't' already exists in swarm memory"}`, owner, []string{owner}, []string{owner, "swarm:hive@depot"}},
	} {
		d, o := newFakePeer(t, func(n int, path string) (int, string) {
			switch {
			case n > 1 || c.reply == "":
				return ok(n, path)
			case c.back:
				return 400, c.reply
			}
			return 500, c.reply
		}), newFakeOutbox()
		r := run(t, o, peers{"depot": d.peer()})
		p := newDelivery(1, c.back)
		p.Wrapper.TaskOwner, p.Wrapper.TaskContributors = c.owner, c.named
		o.put(box("t", "depot"), p)
		r.Wake(box("t", "depot"))
		o.wait(t, 1)
		var in struct{ Message mail.Interswarm }
		if err := json.Unmarshal([]byte(d.body), &in); err != nil {
			t.Fatal(err)
		}
		if got := in.Message.TaskContributors; !slices.Equal(got, c.want) || len(o.taken) != 1 {
			t.Errorf("%s: contributors %q, want %q; taken %q, failed %q", name, got, c.want, o.taken, o.failed)
		}
	}
}

// A message for a peer with SignRequests has a signature for this attempt and
// this route.
func TestSigned(t *testing.T) {
	t.Parallel()
	k := signature.NewKey()
	var mu sync.Mutex
	now := time.Unix(1e9, 0)
	var d *fakePeer
	d = newFakePeer(t, func(n int, path string) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		var in struct{ Message json.RawMessage }
		if err := json.Unmarshal([]byte(d.body), &in); err != nil {
			t.Error(err)
		}
		way := signature.Route{Back: path == "/interswarm/back", Target: "depot"}
		if err := k.PublicKey().Verify(in.Message, way, now); err != nil {
			t.Errorf("attempt %d: %v", n, err)
		}
		now = now.Add(time.Hour) // the next signature is not this one
		if n == 1 {
			return 400, `{"detail":"task is not running"}`
		}
		return ok(n, path)
	})
	o, peer := newFakeOutbox(), d.peer()
	peer.SignRequests, peer.BodyToken = true, true
	r := run(t, o, peers{"depot": peer, "yard": peer}, func(opt *router.Options) {
		opt.Signer = k
		opt.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	p := newDelivery(1, true)
	p.Wrapper.Metadata = json.RawMessage(`{"kept":1}`)
	o.put(box("t", "depot"), p)
	r.Wake(box("t", "depot"))
	o.wait(t, 1)
	if len(o.taken) != 1 || len(d.requests()) != 2 || !strings.Contains(d.body, `"kept":1`) {
		t.Errorf("taken %q, requests %q, body %s", o.taken, d.requests(), d.body)
	}
}

// Without a key nothing goes out unsigned.
func TestSignedWithoutKey(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	peer := d.peer()
	peer.SignRequests = true
	o.put(box("t", "depot"), newDelivery(1, false))
	run(t, o, peers{"depot": peer})
	o.wait(t, 1)
	if len(d.requests()) != 0 || !strings.Contains(o.failed[id(1)], "cannot be signed") {
		t.Errorf("requests %q, failed %q", d.requests(), o.failed)
	}
}

// awaySigner has its key on a server that is away for a moment.
type awaySigner struct {
	key   signature.Key
	times atomic.Int32
}

func (s *awaySigner) Sign(wrapper []byte, route signature.Route, at time.Time) (string, error) {
	if s.times.Add(-1) >= 0 {
		return "", fmt.Errorf("read the key: %w", swarm.ErrUnavailable)
	}
	return s.key.Sign(wrapper, route, at)
}

// TestSignedLate: a message waits for a key that cannot be read now, and is not given up.
func TestSignedLate(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, ok), newFakeOutbox()
	peer := d.peer()
	peer.SignRequests = true
	signer := &awaySigner{key: signature.NewKey()}
	signer.times.Store(2)
	o.put(box("t", "depot"), newDelivery(1, false))
	run(t, o, peers{"depot": peer}, func(opt *router.Options) { opt.Signer = signer })
	o.wait(t, 1)
	if len(d.requests()) != 1 || len(o.taken) != 1 {
		t.Errorf("requests %q, taken %q, failed %q", d.requests(), o.taken, o.failed)
	}
}
