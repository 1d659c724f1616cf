package host

import (
	"strings"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// TestWebhookWithEscapedPath: a path that `skep validate` takes is no fault at the start, whose text would have the
// path. The reason why the receiver cannot be reached, which the log has, has neither path nor query.
func TestWebhookWithEscapedPath(t *testing.T) {
	t.Parallel()
	h := &Host{opt: Options{Config: &config.Config{}}}
	h.opt.Config.Questions = config.Questions{Webhook: "http://127.0.0.1:1/%70lanted/planted?sig=planted"}
	if err := h.openQuestions(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer h.closeWebhook()
	got := h.webhook.Carry(t.Context(), swarm.Delivery{Wrapper: mail.Interswarm{Payload: mail.Payload{Body: "{}"}}})
	if !strings.Contains(got.Reason, "refused the connection") || strings.Contains(got.Reason, "planted") {
		t.Errorf("%+v", got)
	}
}

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
