package iacp_test

import (
	"testing"
	"time"

	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// TestRelaySilent (I-027, V-I23): a message that a member does not acknowledge is sent three
// times under its id. Then its sender hears of a TIMEOUT, and what is behind it waits for the next
// connection; an answer waits for it too.
func TestRelaySilent(t *testing.T) {
	t.Parallel()
	s := newSite(t, relaying, func(o *iacp.Options) { o.Ack = 200 * time.Millisecond })
	from, to := s.spoke(t, token, "depot-1"), s.spoke(t, token, "depot-2")
	lost, next := iacptest.New("context_share", "depot-1", "depot-2", map[string]any{"n": 1}), iacptest.New("context_share", "depot-1", "depot-2", map[string]any{"n": 2})
	exchange(t, from, lost, "ack")
	exchange(t, from, next, "ack")
	for n := range 3 {
		if got := read(t, to, "context_share"); got.ID != lost.ID {
			t.Errorf("attempt %d is %s", n, got.Raw)
		}
	}
	got := read(t, from, "error_response")
	if got.Parent != lost.ID || got.Payload["error_code"] != "TIMEOUT" || got.Payload["retry_allowed"] != true || got.Sender.ID != "depot-2" {
		t.Errorf("got %s", got.Raw)
	}
	if got, err := to.Read(); err == nil {
		t.Errorf("got %s, want the end", got.Raw)
	}
	if got := read(t, s.spoke(t, token, "depot-2"), "context_share"); got.ID != next.ID {
		t.Errorf("got %s, want %s", got.Raw, next.ID)
	}
	asker := s.spoke(t, token, "depot-4")
	answer := iacptest.New("task_response", "depot-3", "depot-4", map[string]any{"status": "completed", "result": 17})
	answer.Parent = lost.ID
	exchange(t, s.spoke(t, token, "depot-3"), answer, "ack")
	for range 3 {
		readSilently(t, asker, "task_response")
	}
	if got, err := asker.Read(); err == nil {
		t.Errorf("got %s, want the end", got.Raw)
	}
	if got := readSilently(t, s.spoke(t, token, "depot-4"), "task_response"); got.ID != answer.ID {
		t.Errorf("got %s", got.Raw)
	}
}
