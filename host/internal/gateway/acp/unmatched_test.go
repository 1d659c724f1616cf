package acp_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/spec/mail"
)

// TestUnmatchedAnswers (D-A4, G-024): an answer that belongs to nothing is refused with the field
// and the reason. A message to another partner is as unknown as one that never was.
func TestUnmatchedAnswers(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.admit("zeta-token", "zeta", "z*")
	o.does(func(m acptest.Message) (*acptest.Message, int) {
		answer := m.Reply("RESPONSE", "done")
		return &answer, 0
	})
	for id, kind := range map[string]mail.Type{"told": mail.Broadcast, "asked": mail.Request} {
		if got := o.g.Carry(t.Context(), o.p, outgoing(id, kind, "agentB", "news")); got.State != gateway.Taken {
			t.Fatalf("%+v", got)
		}
	}
	told := o.gets(t, 2)[0]
	thread, _, _ := strings.Cut(told.Header.ID, ".") // of both
	never := strings.Repeat("0", len(thread)) + ".m1"
	const unknown = "no question with this id was sent to you"
	for _, c := range []struct {
		name, token, sender, kind, replyTo, conversation, want string
	}{
		{"told", "acme-token", "agentB", "RESPONSE", thread + ".told", "", "the question waits for no answer"},
		{"another in it", "acme-token", "agentB", "INFORM", thread + ".m7", "", "the question waits for no answer"},
		{"no id of ours", "acme-token", "agentB", "RESPONSE", "m1", "", `"m1": ` + unknown},
		{"never sent", "acme-token", "agentB", "RESPONSE", never, "", `"` + never + `": ` + unknown},
		{"another's", "zeta-token", "z1", "RESPONSE", thread + ".asked", "", `"` + thread + `.asked": ` + unknown},
		{"inform", "acme-token", "agentB", "INFORM", "m1", "", `there is no receiver "nobody"; and reply_to "m1": ` + unknown},
		{"conversation", "acme-token", "agentB", "RESPONSE", "", "elsewhere", `in conversation_id "elsewhere" you were asked nothing`},
		{"question", "acme-token", "agentB", "REQUEST", "m1", "", `there is no receiver "nobody"`},
	} {
		m := acptest.New(c.kind, c.sender, "nobody", "x")
		m.Header.ReplyTo, m.Header.ConversationID = c.replyTo, c.conversation
		client := o.Client
		client.Token = c.token
		r, err := client.Send(m.Text())
		reason := r.Text
		if r.Message != nil {
			reason = r.Message.Body
		}
		if err != nil || r.Status != http.StatusNotFound || !strings.Contains(reason, c.want) || c.kind == "REQUEST" && strings.Contains(reason, "reply_to") {
			t.Errorf("%s: %d %s, %v; want %s", c.name, r.Status, r.Text, err, c.want)
		}
	}
}
