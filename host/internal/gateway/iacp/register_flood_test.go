package iacp_test

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// TestRegisterFlood (I-036, I-054): a connection has a bounded number of agents, each with a bounded
// registration. One for which there is no place is refused with the reason, and is registered when
// another has left.
func TestRegisterFlood(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dial(t)
	register := func(agent, version string) iacptest.Message {
		return iacptest.New("agent_register", agent, "", map[string]any{"agent_info": map[string]any{"agent_id": agent, "version": version}})
	}
	refused := func(m iacptest.Message, code, reason string) {
		t.Helper()
		got := exchange(t, c, m, "error_response")
		details, _ := got.Payload["details"].(map[string]any)
		if got.Payload["error_code"] != code || details["reason"] != reason || got.Parent != m.ID {
			t.Errorf("got %s", got.Raw)
		}
	}
	refused(register("depot-0", strings.Repeat("1", 16<<10)), "INVALID_MESSAGE_FORMAT", "too_large")
	for n := range 256 {
		exchange(t, c, register(fmt.Sprint("depot-", n), "1"), "agent_register_response")
	}
	exchange(t, c, register("depot-7", "2"), "agent_register_response")
	refused(register("depot-256", "1"), "TIMEOUT", "busy")
	if err := c.Send(iacptest.New("agent_unregister", "depot-9", "", map[string]any{}).Text()); err != nil {
		t.Fatal(err)
	}
	exchange(t, c, register("depot-256", "1"), "agent_register_response")
}

// TestRegisterFloodOfRealm (I-036, I-054): what the agents of one realm register over all connections,
// events among it, is bounded. What is more is refused with the reason, another realm has its own, and
// there is room again when an agent registers less, one unregisters or a connection ends.
func TestRegisterFloodOfRealm(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.dial(t, "ack"), s.dial(t, "ack")
	fill := func(t *testing.T, c *iacptest.Conn, begin int) (next int) {
		t.Helper()
		for next = begin; next < begin+256; next++ {
			if err := c.Send(registration(fmt.Sprint("depot-", next), 15<<10).Text()); err != nil {
				t.Fatal(err)
			}
			got, err := c.Read()
			if err != nil {
				t.Fatal(err)
			}
			if got.Type == "error_response" {
				details, _ := got.Payload["details"].(map[string]any)
				if text := fmt.Sprint(got.Payload["error_message"]); details["reason"] != "busy" || !strings.Contains(text, "the agents of depot have registered") || !strings.Contains(text, "of the 4194304") {
					t.Errorf("got %s", got.Raw)
				}
				return next
			}
		}
		return next
	}
	if n := fill(t, first, 0); n != 256 {
		t.Fatalf("the first connection has %d agents", n)
	}
	full := fill(t, second, 256)
	if full < 260 || full > 280 {
		t.Errorf("the realm has %d agents with 15 KiB each", full)
	}
	exchange(t, second, iacptest.New("event_subscribe", "depot-256", "", map[string]any{"event_types": manyTypes()}), "error_response")
	admitRealm(s.rt, "mill", "token-of-mill", nil)
	s.spoke(t, "token-of-mill", "mill-1")
	exchange(t, second, registration("depot-256", 10), "agent_register_response")
	exchange(t, second, iacptest.New("event_subscribe", "depot-256", "", map[string]any{"event_types": manyTypes()}), "ack")
	if again := fill(t, second, full); again != full {
		t.Errorf("events take no room: %d agents", again)
	}
	exchange(t, second, iacptest.New("agent_unregister", "depot-256", "", map[string]any{}), "ack")
	if again := fill(t, second, full); again != full+1 {
		t.Errorf("one has left, and %d more have room", again-full)
	}
	_ = first.Close()
	hosttest.Eventually(t, "there is room again", func() bool {
		if err := second.Send(registration("depot-900", 15<<10).Text()); err != nil {
			t.Fatal(err)
		}
		got, err := second.Read()
		return err == nil && got.Type == "agent_register_response"
	})
}

// TestRegisteredID (I-005, I-036): an agent registers under an id that could be a sender's: 1 to 64
// characters. Another is refused, and is not found.
func TestRegisteredID(t *testing.T) {
	t.Parallel()
	c := newSite(t, relaying).dial(t)
	longest := "depot-" + strings.Repeat("é", 58)
	register := func(id string) iacptest.Message {
		return iacptest.New("agent_register", "depot-1", "", map[string]any{"agent_info": map[string]any{"agent_id": id}})
	}
	exchange(t, c, register(longest), "agent_register_response")
	for name, id := range map[string]string{"65 characters": longest + "x", "a line": "depot-\n1", "a sign of control": "depot-\x1b[2J", "no sign of Unicode": "depot-\u200b"} {
		got := exchange(t, c, register(id), "error_response")
		if got.Payload["error_code"] != "INVALID_MESSAGE_FORMAT" || got.Payload["error_message"] != "agent_info.agent_id must be 1 to 64 characters that can be printed" {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
	found := exchange(t, c, iacptest.New("agent_discover", "depot-1", "", map[string]any{"discovery_type": "all"}), "agent_discover_response")
	if found.Payload["total"] != 2.0 || !strings.Contains(found.Raw, longest) {
		t.Errorf("found %s", found.Raw)
	}
}

// registration registers an agent with a description of some bytes.
func registration(agent string, bytes int) iacptest.Message {
	return iacptest.New("agent_register", agent, "", map[string]any{"agent_info": map[string]any{"agent_id": agent, "description": strings.Repeat("d", bytes)}})
}

// manyTypes are 40 types of events of 256 bytes each.
func manyTypes() (types []string) {
	for n := range 40 {
		types = append(types, fmt.Sprintf("%0256d", n))
	}
	return types
}
