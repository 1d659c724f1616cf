package host

import (
	"strings"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
)

// TestQuestionsWithoutWebhook: what hosts with [questions] have left in outboxes waits for one of them, with a reason
// for the tenant. No tenant's agent writes to the webhook.
func TestQuestionsWithoutWebhook(t *testing.T) {
	t.Parallel()
	h := &Host{opt: Options{Config: &config.Config{}}}
	peer, ok := h.partnerPeer(swarm.QuestionsPeer)
	if !ok || peer.Tenant != swarm.QuestionsPeer {
		t.Fatalf("%t %+v", ok, peer)
	}
	got := peer.Carrier.Carry(t.Context(), swarm.Delivery{})
	if got.State != router.Later || !strings.Contains(got.Reason, "[questions]") {
		t.Errorf("%+v", got)
	}
}
