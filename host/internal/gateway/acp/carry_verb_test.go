package acp_test

import (
	"encoding/json"
	"testing"

	"skep/host/internal/gateway"
	"skep/spec/mail"
)

// TestCarryVerbs (A-024, A-025, G-060): what the verbs acknowledge and error have written
// leaves as an ACKNOWLEDGE and an ERROR about the message that they name, and no answer is
// waited for. A question of the same form stays one.
func TestCarryVerbs(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	for name, c := range map[string]struct {
		info, body, kind, replyTo, want string
	}{
		"acknowledge": {`"type":"acknowledge","reply_to":"msg1"`, "read", "ACKNOWLEDGE", "msg1", "read"},
		"silent":      {`"type":"acknowledge","reply_to":"msg1"`, "", "ACKNOWLEDGE", "msg1", ""},
		"error":       {`"type":"error","reply_to":"msg1","code":"sold_out"`, "nothing left", "ERROR", "msg1", `{"code":"sold_out","message":"nothing left","retry":false}`},
		"unrelated":   {`"type":"error","code":"sold_out"`, "nothing left", "ERROR", "", `{"code":"sold_out","message":"nothing left","retry":false}`},
		"no verb":     {`"type":"inform","reply_to":"msg1"`, "news", "INFORM", "", "news"},
	} {
		d := outgoing(name, mail.Broadcast, "agentB", c.body)
		d.Wrapper.Payload.Subject = ""
		d.Wrapper.Payload.RoutingInfo = json.RawMessage(`{"remote_swarm":"acme","gateway":{"protocol":"acp",` + c.info + `}}`)
		if got := o.g.Carry(t.Context(), o.p, d); got.State != gateway.Taken {
			t.Errorf("%s: %+v", name, got)
		}
		all := o.agent.Got()
		if m := all[len(all)-1]; m.Header.Type != c.kind || m.Header.ReplyTo != c.replyTo || m.Body != c.want {
			t.Errorf("%s left as %+v", name, m)
		}
	}
}
