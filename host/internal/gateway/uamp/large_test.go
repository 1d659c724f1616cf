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
	for text, want := range map[string]int{"2+2": 0, strings.Repeat("x", 2*wire.LargeMessage): 1} {
		r := h.post(t, "lab-token", signedBy(t, h.own, newAsk("calc", text)))
		if got := <-rt.seen; r.status != http.StatusAccepted || got != want || h.g.LargeHeld() != 0 {
			t.Errorf("%d bytes: %d, %d places were held and %d are; want %d", len(text), r.status, got, h.g.LargeHeld(), want)
		}
	}
	far := gatewaytest.Realm("default", "far")
	far.May = gateway.Rights{gateway.MayAsk}
	h.rt.Admit("far-token", far)
	h.rt.AddPartner(gateway.Partner{Name: "far", Tenant: "default", IDs: []string{"did:web:far.example"}, May: far.May})
	e := newAsk("calc", strings.Repeat("x", 2*wire.LargeMessage))
	e.From = "did:web:far.example"
	held := make(chan int, 1)
	go func() {
		fetch := <-fetches
		held <- h.g.LargeHeld()
		close(fetch)
	}()
	r := h.post(t, "far-token", signedBy(t, key(t, e.From, private("f")), e))
	if got := <-held; r.status == http.StatusAccepted || got != 0 || h.g.LargeHeld() != 0 {
		t.Errorf("a sender whose document cannot be fetched: %d, %d places were held and %d are", r.status, got, h.g.LargeHeld())
	}
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
