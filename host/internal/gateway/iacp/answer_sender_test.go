package iacp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// answerOf is a completed answer of an agent to a question.
func answerOf(agent, question string) iacptest.Message {
	m := iacptest.New("task_response", agent, "echo", map[string]any{"status": "completed", "result": "of " + agent})
	m.Parent = question
	return m
}

// refusals counts the refused events about a message.
func refusals(s *site, id string) (n int) {
	for _, e := range s.rt.Events() {
		if e.Foreign == id && e.Verdict == "refused" && strings.Contains(e.Reason, `was sent to "depot-1"`) {
			n++
		}
	}
	return n
}

// TestAnswerOfAnother (I-031, I-026, I-073): a response of another agent of the partner than the asked
// one is refused, with an event, and does not count, as no progress of it does; the asked agent's then
// counts. An error_response of another counts, as one of a hub that finds no agent.
func TestAnswerOfAnother(t *testing.T) {
	t.Parallel()
	open, taken := make(chan struct{}), make(chan string, 10)
	close(open)
	s := newSite(t, func(o *iacp.Options) { o.Runtime = &gated{o.Runtime, open, taken} })
	p, _ := s.rt.Partner("depot")
	c := s.dial(t, "ack")
	carry := func(id string) <-chan gateway.Carried {
		carried := make(chan gateway.Carried, 1)
		go func() { carried <- s.g.Carry(t.Context(), p, delivery(id)) }()
		return carried
	}
	carried := carry(uuid.NewString())
	m := read(t, c, "task_request")
	for _, status := range []string{"in_progress", "completed"} {
		wrong := answerOf("depot-2", m.ID)
		wrong.Payload["status"] = status
		got := exchange(t, c, wrong, "error_response")
		if text := fmt.Sprint(got.Payload["error_message"]); got.Parent != wrong.ID || got.Payload["error_code"] != "INVALID_MESSAGE_FORMAT" || !strings.Contains(text, `sent to "depot-1", and this task_response is of "depot-2"`) {
			t.Errorf("%s: %s", status, got.Raw)
		}
		if refusals(s, wrong.ID) != 1 {
			t.Errorf("%s: the events are %+v", status, s.rt.Events())
		}
	}
	exchange(t, c, answerOf("depot-1", m.ID), "ack")
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("the asked agent's answer: %+v", got)
	}
	carried = carry(uuid.NewString())
	m = read(t, c, "task_request")
	no := iacptest.New("error_response", "depot-hub", "echo", map[string]any{"error_code": "AGENT_NOT_FOUND", "error_message": "none", "retry_allowed": false})
	no.Parent = m.ID
	exchange(t, c, no, "ack")
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("the hub's error: %+v", got)
	}
	close(taken)
	var bodies []string
	for body := range taken {
		bodies = append(bodies, body)
	}
	if want := []string{"of depot-1", "none"}; !slices.Equal(bodies, want) || len(s.rt.Shown()) != 0 {
		t.Errorf("the agent got %q, and was shown %+v", bodies, s.rt.Shown())
	}
}

// TestAnswerNotTaken (I-026, I-077): where the only answer to a question was refused, the agent that has
// asked gets why, and not that there was none.
func TestAnswerNotTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p, _ := s.rt.Partner("depot")
	p.Timeout = 3 * time.Second
	c := s.dial(t, "ack")
	carried := make(chan gateway.Carried, 1)
	go func() { carried <- s.g.Carry(t.Context(), p, delivery(uuid.NewString())) }()
	m := read(t, c, "task_request")
	if err := c.Send(m.Reply("ack", map[string]any{"message_id": m.ID}).Text()); err != nil {
		t.Fatal(err)
	}
	exchange(t, c, answerOf("depot-2", m.ID), "error_response")
	const want = `depot sent no answer within 3s that was taken: the message that parent_message_id names was sent to "depot-1"`
	if got := <-carried; got.State != gateway.Refused || !strings.Contains(got.Reason, want) {
		t.Errorf("got %+v", got)
	}
}

// TestRecipientOfNobody (I-073): what is for an agent that is none of the partner's is refused at once, with
// the line to change: its answer would not count.
func TestRecipientOfNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p, _ := s.rt.Partner("depot")
	d := delivery(uuid.NewString())
	d.Wrapper.Payload.Recipients[0].Name = "shop-1@depot"
	const want = `"shop-1" is none of the agents of depot, so its answer would not count; add it to ids in [gateways.iacp.partners.depot]`
	if got := s.g.Carry(t.Context(), p, d); got.State != gateway.Refused || got.Reason != want {
		t.Errorf("got %+v", got)
	}
}

// TestEarlyAnswerOfAnother (I-026, I-057): of the answers that come before their question is sent again,
// the asked agent's is taken, also after another agent's, which is refused.
func TestEarlyAnswerOfAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p, _ := s.rt.Partner("depot")
	c := s.dial(t, "ack")
	d := delivery(uuid.NewString())
	wrong, right := answerOf("depot-2", d.Wrapper.MessageID), answerOf("depot-1", d.Wrapper.MessageID)
	for _, m := range []iacptest.Message{wrong, right} {
		if err := c.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack") // both are read
	if got := s.g.Carry(t.Context(), p, d); got.State != gateway.Taken {
		t.Fatalf("carried %+v", got)
	}
	if got := read(t, c, "error_response"); got.Parent != wrong.ID {
		t.Errorf("got %s", got.Raw)
	}
	if got := read(t, c, "ack"); got.Parent != right.ID || refusals(s, wrong.ID) != 1 {
		t.Errorf("got %s", got.Raw)
	}
}
