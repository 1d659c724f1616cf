package host

import (
	"context"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/catalog"
	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
)

// partnerPeer is how the router reaches a realm, by the carrier of its gateway, and the webhook of questions.
func (h *Host) partnerPeer(name string) (router.Peer, bool) {
	if name == swarm.QuestionsPeer {
		return h.questionsPeer(), true
	}
	for _, g := range h.gateways {
		if p, ok := g.Catalog.Partner(name); ok {
			return router.Peer{
				Gateway: g.Name(), Carrier: carrier{g, p, g.Catalog, h.outages}, AttemptTime: p.Timeout + attemptMargin, Tenant: p.Tenant, GiveUp: p.GiveUp, FailInDoubt: !p.RetryInDoubt,
			}, true
		}
	}
	return router.Peer{}, false
}

// attemptMargin is what an attempt may take beyond the partner's time for an answer, so
// that the gateway notices the end of that first.
const attemptMargin = 15 * time.Second

// carrier carries messages to one partner.
type carrier struct {
	gateway gateway.Gateway
	partner gateway.Partner
	catalog *catalog.Catalog
	outages *gateway.OutageLog
}

// Carry implements [router.Carrier].
func (c carrier) Carry(ctx context.Context, d swarm.Delivery) router.Carried {
	ctx, end := c.catalog.WhilePartner(ctx, c.partner)
	defer end()
	got := c.gateway.Carry(ctx, c.partner, d)
	c.outages.Record(ctx, c.gateway.Name(), c.partner, d, got)
	return routerCarried(got)
}

// routerCarried converts the outcome of an attempt for the router.
func routerCarried(got gateway.Carried) router.Carried {
	carried := router.Carried{State: router.Unanswered, Reason: got.Reason, Wait: got.Wait}
	switch got.State {
	case gateway.Taken:
		carried.State = router.Taken
	case gateway.Refused:
		carried.State = router.Refused
	case gateway.Later:
		carried.State = router.Later
	}
	return carried
}
