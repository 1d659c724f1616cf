package uamp_test

import (
	"context"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp/envelope"
)

// TestTenantsWithOnePartner (U-056, D-U11): one foreign agent is a partner's of two tenants, with a
// credential for each. What it has sent to one of them it can neither read, repeat nor withdraw
// with the credential for the other, under the same ids.
func TestTenantsWithOnePartner(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	shop := gatewaytest.Realm("other", "lab-at-shop")
	shop.May = gateway.Rights{gateway.MayAsk, gateway.MayTell}
	h.rt.Admit("shop-token", shop)
	h.rt.AddPartner(gateway.Partner{
		Name: "lab-at-shop", Tenant: "other", IDs: []string{"did:web:lab.example:*"}, May: shop.May,
		Options: map[string]any{"keys": []string{string(h.own.Public().JWK())}},
	})
	h.rt.Expose("other", gateway.ExposedAgent{Swarm: "hive", Name: "calc", Entrypoint: true}, func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Body: "of the shop"}
	})
	ask := newAsk("calc", "of the hive")
	ask.Stream = "mine"
	text := signedBy(t, h.own, ask)
	at := h.take(t, ask).location
	unsigned(t, "the stream of the other tenant", h.call(t, "GET", at, "shop-token", ""), envelope.UnknownRecipient)
	cancel := newAsk("calc", "")
	cancel.Intent, cancel.ReplyTo = envelope.Cancel, ask.ID
	h.refusedBy(t, "a cancel at the other tenant", h.post(t, "shop-token", signedBy(t, h.own, cancel)), envelope.UnknownRecipient, hostDID, calcDID)
	cited := newAsk("calc", "go on")
	cited.ReplyTo = ask.ID
	if r := h.post(t, "shop-token", signedBy(t, h.own, cited)); r.status != 202 {
		t.Errorf("an ask about what is not known here: %d %s", r.status, r.text)
	}
	if r := h.post(t, "shop-token", text); r.status != 202 || r.location != at {
		t.Fatalf("the same envelope to the other tenant: %d %s", r.status, r.text)
	}
	for token, want := range map[string]string{"lab-token": "of the hive", "shop-token": "of the shop"} {
		if r := h.call(t, "GET", at, token, ""); !strings.Contains(r.text, want) {
			t.Errorf("%s reads %s, want %s", token, r.text, want)
		}
	}
	slow := newAsk("slow", "x")
	h.take(t, slow)
	h.refusedBy(t, "an agent of the other tenant", h.post(t, "shop-token", signedBy(t, h.own, slow)), envelope.UnknownRecipient, hostDID, agentDID("slow"))
}
