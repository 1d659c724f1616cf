package host

import (
	"context"
	"fmt"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/peer/router"
	"skep/host/internal/peer/webhook"
	"skep/host/internal/swarm"
)

// questionsHold is how long a message about questions is tried with backoff. Then it is deferred: one message at
// a time is tried, until the receiver answers or the message is a day old.
const questionsHold = time.Minute

// openQuestions makes the carrier of messages about questions, if the file names a webhook.
func (h *Host) openQuestions(context.Context) error {
	q := h.opt.Config.Questions
	if q.Webhook == "" {
		return nil
	}
	transport, closeConns, err := operatorTransport("[questions]", q.Origin(), h.opt.Network)
	if err != nil {
		return fmt.Errorf("questions.webhook: %w", err)
	}
	h.closeWebhook = closeConns
	h.webhook = webhook.New(webhook.Options{URL: q.Webhook, Key: q.Key(), Transport: transport, Now: time.Now})
	return nil
}

// questionsPeer is how the router reaches the webhook of questions. A host without one may still have messages for
// it, from before, or from a host that shares its store.
func (h *Host) questionsPeer() router.Peer {
	return router.Peer{Carrier: webhookCarrier{h.webhook, h.opt.Config.Questions.Origin(), h.outages}, GiveUp: questionsHold, Tenant: swarm.QuestionsPeer}
}

// webhookCarrier carries messages about questions. Its webhook is nil for none.
type webhookCarrier struct {
	webhook *webhook.Carrier
	origin  string
	outages *gateway.OutageLog
}

// Carry implements [router.Carrier]. Tenants see the reason of a dead letter, and the operator's webhook
// is none of their concern.
func (c webhookCarrier) Carry(ctx context.Context, d swarm.Delivery) router.Carried {
	if c.webhook == nil {
		return router.Carried{State: router.Later, Reason: "the host has no [questions] in swarm.toml"}
	}
	got := c.webhook.Carry(ctx, d)
	c.outages.Record(ctx, "questions", gateway.Partner{Name: swarm.QuestionsPeer, URL: c.origin, GiveUp: d.GiveUpAt.Sub(d.Since)}, d, got)
	if got.State != gateway.Taken {
		got.Reason = "the host's webhook does not take it; its log says why"
	}
	return routerCarried(got)
}
