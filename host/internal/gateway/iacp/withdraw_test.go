package iacp_test

import (
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
)

// withdrawing is a workflow_cancel of a message of depot-1.
func withdrawing(from, id string) iacptest.Message {
	return iacptest.New("workflow_cancel", from, "slow", map[string]any{"workflow_id": "w", "message_id": id})
}

// TestWithdraw (I-096): a workflow_cancel that names a message calls it off for its sender, without
// the right workflows: the message is answered as cancelled, and so is a repeat. Another member's
// message, one that is unknown and one that has ended stay as they are.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	newSlowAgent(s)
	c, asked := s.dial(t), slowTask(0)
	if err := c.Send(asked.Text()); err != nil {
		t.Fatal(err)
	}
	for _, m := range []iacptest.Message{withdrawing("depot-2", asked.ID), withdrawing("depot-1", "none")} {
		if got := exchange(t, c, m, "error_response"); got.Parent != m.ID {
			t.Errorf("%s is answered with %s", m.Text(), got.Raw)
		}
	}
	for n, first := range []bool{true, false} {
		m := withdrawing("depot-1", asked.ID)
		if err := c.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
		answers := map[string]iacptest.Message{}
		for len(answers) < 2-n {
			got := read(t, c, "task_response")
			answers[got.Parent] = got
		}
		if result, _ := answers[m.ID].Payload["result"].(map[string]any); result["state"] != "cancelled" || result["message_id"] != asked.ID {
			t.Errorf("the workflow_cancel is answered with %s", answers[m.ID].Raw)
		}
		failure, _ := answers[asked.ID].Payload["error"].(map[string]any)
		if first && failure["code"] != "CANCELLED" {
			t.Errorf("the message is answered with %s", answers[asked.ID].Raw)
		}
	}
	ended := task("hello")
	exchange(t, c, ended, "task_response")
	got := exchange(t, c, withdrawing("depot-1", ended.ID), "task_response")
	if result, _ := got.Payload["result"].(map[string]any); result["state"] != "ended" {
		t.Errorf("a message that has ended is withdrawn with %s", got.Raw)
	}
}
