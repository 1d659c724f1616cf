package acp_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
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
		{"told", "acme-token", "agentB", "RESPONSE", thread + ".told", "", `reply_to "` + thread + `.told": ` + unknown},
		{"another in it", "acme-token", "agentB", "INFORM", thread + ".m7", "", `reply_to "` + thread + `.m7": ` + unknown},
		{"mistyped", "acme-token", "agentB", "RESPONSE", thread + ".askedx", "", `reply_to "` + thread + `.askedx": ` + unknown},
		{"no id of ours", "acme-token", "agentB", "RESPONSE", "m1", "", `"m1": ` + unknown},
		{"never sent", "acme-token", "agentB", "RESPONSE", never, "", `"` + never + `": ` + unknown},
		{"another's", "zeta-token", "z1", "RESPONSE", thread + ".asked", "", `"` + thread + `.asked": ` + unknown},
		{"inform", "acme-token", "agentB", "INFORM", "m1", "", `reply_to "m1": ` + unknown},
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
		if err != nil || r.Status != http.StatusNotFound || !strings.Contains(reason, c.want) || strings.Contains(reason, "reply_to \"") == strings.Contains(reason, "no receiver") {
			t.Errorf("%s: %d %s, %v; want %s", c.name, r.Status, r.Text, err, c.want)
		}
	}
}

// TestAnswerForAnother (D-A4, G-024): an answer whose receiver is not the agent that has asked
// is refused and the question waits on; any agent of the partner may answer, in any form of a
// receiver.
func TestAnswerForAnother(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	for n, c := range []struct {
		receiver, sender string
		named, taken     bool
	}{
		{"calc", "agentB", true, false}, {"calc", "agentB", false, false}, {"boss@other", "agentB", true, false}, {"agent://h.example/other/boss", "agentB", true, false},
		{"boss", "agentB", true, true}, {"boss@hive", "agentC", true, true}, {"agent://h.example/hive/b%6Fss", "agentB", true, true}, {"boss", "agentB", false, true},
	} {
		carried := make(chan gateway.Carried, 1)
		go func() {
			carried <- o.g.Carry(t.Context(), o.p, outgoing("m"+strconv.Itoa(n), mail.Request, "agentB", "how many?"))
		}()
		asked := o.gets(t, n+1)[n]
		m := asked.Reply("INFORM", "seven")
		m.Header.Sender, m.Header.Receiver = c.sender, c.receiver
		if !c.named {
			m.Header.ReplyTo = ""
		}
		r := o.send(t, m)
		if want := `receiver "` + c.receiver + `": "` + asked.Header.ID + `" was asked by "boss@hive"`; !c.taken {
			if r.Status != http.StatusNotFound || !strings.Contains(r.Text, want) {
				t.Errorf("%+v: %d %s; want %s", c, r.Status, r.Text, want)
			}
			r = o.send(t, asked.Reply("INFORM", "seven"))
		}
		if got := <-carried; got.State != gateway.Taken || r.Status != http.StatusAccepted {
			t.Errorf("%+v: %d %s, %+v", c, r.Status, r.Text, got)
		}
		if brought := o.rt.take(); len(brought) != 1 || brought[0].Kind != gateway.Answers {
			t.Errorf("%+v: brought %+v", c, brought)
		}
	}
}

// TestFurtherAnswer (D-A4, D-A5, G-024): what could have been an answer and is told needs the right
// to tell: without it the refusal has why it is no answer. The first answer needs no right.
func TestFurtherAnswer(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk}
	o.rt.Admit("ask-token", c)
	o.Token = "ask-token"
	var carried sync.WaitGroup
	for _, id := range []string{"m1", "m2"} {
		carried.Go(func() {
			if got := o.g.Carry(t.Context(), o.p, outgoing(id, mail.Request, "agentB", "how many?")); got.State != gateway.Taken {
				t.Errorf("%s: %+v", id, got)
			}
		})
	}
	asked := o.gets(t, 2)
	const lacks = `"acme" lacks the right "tell": add it to may of [gateways.acp.partners.acme]`
	loose := asked[0].Reply("INFORM", "seven")
	loose.Header.ReplyTo = ""
	want := `reply_to is missing, and several questions in conversation_id "` + loose.Header.ConversationID + `" wait, so this would be told (ambiguous), and ` + lacks
	if r := o.send(t, loose); r.Status != http.StatusForbidden || r.Text != want+"\n" {
		t.Errorf("without reply_to: %d %s; want %s", r.Status, r.Text, want)
	}
	for _, m := range asked {
		if r := o.send(t, m.Reply("INFORM", "seven")); r.Status != http.StatusAccepted {
			t.Errorf("the answer got %d %s", r.Status, r.Text)
		}
	}
	carried.Wait()
	further := asked[0].Reply("INFORM", "eight")
	want = `reply_to "` + further.Header.ReplyTo + `": the question has its answer already, so this would be told (duplicate_answer), and ` + lacks
	if r := o.send(t, further); r.Status != http.StatusForbidden || r.Text != want+"\n" {
		t.Errorf("a further answer: %d %s; want %s", r.Status, r.Text, want)
	}
	if brought := o.rt.take(); len(brought) != 2 {
		t.Errorf("brought %+v", brought)
	}
}
