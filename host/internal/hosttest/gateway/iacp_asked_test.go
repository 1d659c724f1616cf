package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// TestAskerIsAskedOverIACP (I-023, I-057, I-059): an agent of ours asks who asked it, before it answers.
// A peer whose connection ended meanwhile gets the question on its next one, after a restart of the
// host, and its answer reaches the same task: the answer to its own question comes on that connection.
func TestAskerIsAskedOverIACP(t *testing.T) {
	t.Parallel()
	s, addr := newFramedSite(t, false)
	first := iacptest.New("task_request", "depot-1", "boss", map[string]any{
		"task_type": "mail.message", "parameters": map[string]any{"body": hosttest.RequestOf("depot-1@depot", "red or blue?")},
	})
	first.Conversation = uuid.NewString()
	c := dialFramed(t, addr)
	c.send(t, first)
	c.next(t, "ack")
	_ = c.Close()
	s.Restart()
	c = dialFramed(t, addr)
	if _, err := c.Register("depot-1"); err != nil {
		t.Fatal(err)
	}
	question := c.next(t, "task_request")
	if asked, _ := question.Payload["parameters"].(map[string]any); asked["body"] != "red or blue?" || question.Sender.ID != "boss" || question.Conversation != first.Conversation {
		t.Errorf("the question is %s", question.Raw)
	}
	answer := question.Reply("task_response", map[string]any{"status": "completed", "result": "blue"})
	c.send(t, answer)
	c.send(t, answer) // a repeat changes nothing
	if got := c.next(t, "task_response"); got.Parent != first.ID || got.Payload["status"] != "completed" || !strings.HasSuffix(fmt.Sprint(got.Payload["result"]), " blue") {
		t.Errorf("then the peer gets %s", got.Raw)
	}
	c.send(t, iacptest.New("heartbeat", "depot-1", "", map[string]any{}))
	c.next(t, "heartbeat_ack")
}
