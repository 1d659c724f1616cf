package iacp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// nested is an object of so many levels, with a text at the end.
func nested(levels int) string {
	return strings.Repeat(`{"in":`, levels-1) + `{"at":"end"}` + strings.Repeat("}", levels-1)
}

// TestQuestionTooDeep (I-007, I-040, V-I19): the error_response to a question that is too deep names the
// question, its sender and its conversation, and the connection goes on.
func TestQuestionTooDeep(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dial(t)
	m := task("deep")
	m.Conversation = uuid.NewString()
	m.Payload["parameters"] = json.RawMessage(nested(message.MaxDepth))
	got := exchange(t, c, m, "error_response")
	if got.Parent != m.ID || got.Conversation != m.Conversation || got.Recipient == nil || got.Recipient.ID != "depot-1" || got.Sender.ID != "echo" {
		t.Errorf("got %s", got.Raw)
	}
	if text := fmt.Sprint(got.Payload["error_message"]); !strings.Contains(text, "max_depth of [gateways.iacp]") {
		t.Errorf("got %s", got.Raw)
	}
	exchange(t, c, task("and on"), "task_response")
}

// TestAnswerTooDeep (I-007, I-031, I-035): what an agent answers is a message of at most ten levels,
// which strict readers take, on the connection and where a hub has handed the question on. What is
// deeper is a text of JSON, in the answer's result or in a member of a payload that the agent has
// written itself.
func TestAnswerTooDeep(t *testing.T) {
	t.Parallel()
	deep := nested(message.MaxDepth)
	for name, c := range map[string]struct{ answer, status, member, want string }{
		"a result of nine levels": {nested(9), "completed", "result", nested(9)},
		"a result of ten levels":  {deep, "completed", "result", deep},
		"a payload of ten levels": {`{"status":"rejected","result":` + nested(9) + `}`, "rejected", "result", nested(9)},
		"a deeper payload":        {`{"status":"failed","error":"stuck","result":` + deep + `}`, "failed", "result", deep},
		"another member":          {`{"status":"completed","x":[` + deep + `]}`, "completed", "x", "[" + deep + "]"},
		"two readings":            {`{"status":"failed","status":"completed"}`, "completed", "result", `{"status":"failed","status":"completed"}`},
	} {
		for _, hops := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, %d hops", name, hops), func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				agent := newSlowAgent(s)
				peer := s.dial(t, "ack")
				m := slowTask(0)
				m.Metadata = map[string]any{"hops": hops}
				exchange(t, peer, m, "ack")
				agent.answers <- c.answer
				carried := make(chan gateway.Carried, 1)
				carried <- gateway.Carried{State: gateway.Taken}
				if hops > 0 {
					carried = s.carryAnswer(t, m.ID)
				}
				got := read(t, peer, "task_response")
				if sent := <-carried; sent.State != gateway.Taken {
					t.Errorf("carried %+v", sent)
				}
				if _, err := (message.Reader{Strict: true, Depth: message.MaxDepth}).Read([]byte(got.Raw)); err != nil {
					t.Errorf("a strict peer refuses %s: %v", got.Raw, err)
				}
				if got.Parent != m.ID || got.Payload["status"] != c.status || textOf(t, got.Payload[c.member]) != c.want {
					t.Errorf("got %s, want %s", got.Raw, c.want)
				}
			})
		}
	}
}

// carryAnswer takes the answer to a question to the outbox, which sends it.
func (s *site) carryAnswer(t *testing.T, question string) (carried chan gateway.Carried) {
	t.Helper()
	hosttest.Eventually(t, "it is answered", func() bool { return s.outcomeOf(t, question) == gateway.Done })
	d := delivery(question)
	d.Wrapper.Type, d.Answers, d.Wrapper.Payload.ID = mail.Response, question, question
	p, _ := s.rt.Partner("depot")
	carried = make(chan gateway.Carried, 1)
	go func() { carried <- s.g.Carry(t.Context(), p, d) }()
	return carried
}

// textOf is a text, or the JSON of another value.
func textOf(t *testing.T, value any) string {
	t.Helper()
	if text, is := value.(string); is {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAnswerThatIsNone (I-007, I-061): where an answer to our agent is no message, that is the reason
// why there is none in time, and another one that comes in time counts.
func TestAnswerThatIsNone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dial(t)
	p, _ := s.rt.Partner("depot")
	carry := func() (question iacptest.Message, carried chan gateway.Carried) {
		carried = make(chan gateway.Carried, 1)
		go func() { carried <- s.g.Carry(t.Context(), p, delivery(uuid.NewString())) }()
		question = read(t, c, "task_request")
		none := answerOf("depot-1", question.ID)
		none.Payload["result"] = json.RawMessage(nested(message.MaxDepth))
		if got := exchange(t, c, none, "error_response"); got.Parent != none.ID {
			t.Errorf("got %s", got.Raw)
		}
		return question, carried
	}
	question, carried := carry()
	if err := c.Send(answerOf("depot-1", question.ID).Text()); err != nil {
		t.Fatal(err)
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("another answer: %+v", got)
	}
	const want = "that is a message of IaCP: the message is nested deeper"
	for p.Timeout = time.Second; ; p.Timeout *= 4 { // on a busy machine the answer may come after it
		_, carried = carry()
		got := <-carried
		if got.State == gateway.Refused && strings.Contains(got.Reason, want) {
			break
		}
		if p.Timeout > time.Minute {
			t.Fatalf("carried %+v, want %q", got, want)
		}
	}
}
