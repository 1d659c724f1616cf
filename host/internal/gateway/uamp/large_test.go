package uamp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/hosttest"
)

// placed is a runtime that shows how many places of large envelopes are held while it keeps one.
type placed struct {
	gateway.Runtime
	held func() int
	seen chan int
}

func (p *placed) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	p.seen <- p.held()
	return p.Runtime.Ask(ctx, c, a)
}

// TestLargeEnvelopes: a large envelope holds a place while it is kept, and none while a
// document is fetched; a small one holds none.
func TestLargeEnvelopes(t *testing.T) {
	t.Parallel()
	rt := &placed{seen: make(chan int, 1)}
	fetches := make(fetching, 1)
	h := newHive(t, func(o *uamp.Options) {
		rt.Runtime = o.Runtime
		o.Runtime, o.Fetch = rt, fetches
	})
	rt.held = h.g.LargeHeld
	for text, want := range map[string]bool{"2+2": false, strings.Repeat("x", 2*wire.LargeMessage): true} {
		r := h.post(t, "lab-token", signedBy(t, h.own, newAsk("calc", text)))
		if got := <-rt.seen; r.status != http.StatusAccepted || (got > 0) != want {
			t.Errorf("%d bytes: %d, %d places were held; want any: %t", len(text), r.status, got, want)
		}
		hosttest.Eventually(t, "the place has rested", func() bool { return h.g.LargeHeld() == 0 })
	}
	far := gatewaytest.Realm("default", "far")
	far.May = gateway.Rights{gateway.MayAsk}
	h.rt.Admit("far-token", far)
	h.rt.AddPartner(gateway.Partner{Name: "far", Tenant: "default", IDs: []string{"did:web:far.example"}, May: far.May})
	e := newAsk("calc", strings.Repeat("x", 2*wire.LargeMessage))
	e.From = "did:web:far.example"
	fetched := make(chan struct{})
	go func() {
		defer close(fetched)
		fetch := <-fetches
		defer close(fetch)
		hosttest.Eventually(t, "no place is held while the document is fetched", func() bool { return h.g.LargeHeld() == 0 })
	}()
	r := h.post(t, "far-token", signedBy(t, key(t, e.From, private("f")), e))
	if <-fetched; r.status == http.StatusAccepted {
		t.Errorf("a sender whose document cannot be fetched: %d", r.status)
	}
	hosttest.Eventually(t, "the place has rested", func() bool { return h.g.LargeHeld() == 0 })
}

// fetching shows a test each request, which fails when the test closes its channel.
type fetching chan chan struct{}

func (f fetching) RoundTrip(r *http.Request) (*http.Response, error) {
	over := make(chan struct{})
	select {
	case f <- over:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	select {
	case <-over:
	case <-r.Context().Done():
	}
	return nil, errors.New("there is no such document")
}
