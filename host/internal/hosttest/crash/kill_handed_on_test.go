package crash_test

import (
	"fmt"
	"testing"
	"time"

	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// dialHub connects to a host as its partner hive, a hub.
func (f *framedHosts) dialHub(name string) *iacptest.Conn {
	f.t.Helper()
	var c *iacptest.Conn
	hosttest.Eventually(f.t, "the host lets its partner in", func() (is bool) {
		var err error
		c, err = iacptest.Dial(f.address(name), "a-token-of-the-realm-hive", "ack")
		return err == nil
	})
	f.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// nextAbout reads what comes about a message, past registrations of the host's agents.
func nextAbout(t *testing.T, c *iacptest.Conn, id string) iacptest.Message {
	t.Helper()
	for {
		m, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		if m.Parent == id {
			return m
		}
	}
}

// TestKillHandedOnLate (I-004, I-027, I-057): the time of a question that a hub has handed on is over
// while the host that has accepted it is dead. The host that starts then calls it off, without a repeat
// of the question, and the hub gets one answer, TIMEOUT, also to a repeat.
func TestKillHandedOnLate(t *testing.T) {
	t.Parallel()
	f := &framedHosts{t, map[string]*hosttest.Process{}, map[string]string{}}
	f.start("depot", f.partner("hive", "hive-*"))
	hub := f.dialHub("depot")
	wait := hosttest.Script(hosttest.Step{"timer.set", hosttest.Args{"after": "1h", "body": "too late"}})
	question := iacptest.New("task_request", "hive-teller", "depot-clerk", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"body": wait}})
	question.Metadata = map[string]any{"hops": 1, "response_timeout": 10}
	if err := hub.Send(question.Text()); err != nil {
		t.Fatal(err)
	}
	if got := nextAbout(t, hub, question.ID); got.Type != "ack" {
		t.Fatalf("got %s", got.Raw)
	}
	over := time.Now().Add(10 * time.Second) // the host's limit began before
	f.hosts["depot"].Kill()
	hosttest.Eventually(t, "the time of the question is over", func() bool { return time.Now().After(over) })
	f.hosts["depot"].Start()
	hub = f.dialHub("depot")
	register := iacptest.New("agent_register", "hive-teller", "", map[string]any{"agent_info": map[string]any{"agent_id": "hive-teller"}})
	if err := hub.Send(register.Text()); err != nil {
		t.Fatal(err)
	}
	answer := nextAbout(t, hub, question.ID)
	failure, _ := answer.Payload["error"].(map[string]any)
	if answer.Type != "task_response" || answer.Payload["status"] != "failed" || failure["code"] != "TIMEOUT" {
		t.Errorf("got %s", answer.Raw)
	}
	for _, m := range []iacptest.Message{answer.Reply("ack", map[string]any{"message_id": answer.ID}), question} {
		if err := hub.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	if got := nextAbout(t, hub, question.ID); got.Type != "ack" {
		t.Errorf("the repeat has %s", got.Raw)
	}
	if again := nextAbout(t, hub, question.ID); again.ID != answer.ID || fmt.Sprint(again.Payload) != fmt.Sprint(answer.Payload) {
		t.Errorf("first %s, then %s", answer.Raw, again.Raw)
	}
}
