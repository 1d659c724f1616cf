package iacp_test

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
)

// TestEventSubscribe (I-025, D-I12, V-I27): an agent gets the events of a broadcast whose types it
// has named, whole or by their beginnings: all before it names any, and none after it has taken
// all back. An event that names it reaches it in any case.
func TestEventSubscribe(t *testing.T) {
	t.Parallel()
	s := newSite(t, relaying)
	s.rt.Hide("acme", "hive", "echo")
	from, to := s.spoke(t, token, "depot-1"), s.spoke(t, token, "depot-2")
	sends := func(kind, recipient string) iacptest.Message {
		t.Helper()
		m := iacptest.New("event_notification", "depot-1", "", map[string]any{"event_type": kind, "event_data": map[string]any{}})
		if err := from.Send([]byte(strings.Replace(string(m.Text()), `"message_type"`, `"recipient":`+recipient+`,"message_type"`, 1))); err != nil {
			t.Fatal(err)
		}
		read(t, from, "ack")
		return m
	}
	for _, step := range []struct {
		change string
		types  []string
		got    []string
	}{
		{"", nil, []string{"build.done", "build.failed", "deploy", "deploying"}},
		{"event_subscribe", []string{"deploy"}, []string{"deploy"}},
		{"event_subscribe", []string{"build.*"}, []string{"build.done", "build.failed", "deploy"}},
		{"event_unsubscribe", []string{"deploy", "never"}, []string{"build.done", "build.failed"}},
		{"event_unsubscribe", nil, nil},
		{"event_subscribe", []string{"*"}, []string{"build.done", "build.failed", "deploy", "deploying"}},
	} {
		if step.change != "" {
			payload := map[string]any{}
			if step.types != nil {
				payload["event_types"] = step.types
			}
			exchange(t, to, iacptest.New(step.change, "depot-2", "", payload), "ack")
		}
		for _, kind := range []string{"build.done", "build.failed", "deploy", "deploying"} {
			sends(kind, `{"broadcast":true}`)
		}
		last := sends("end of a step", `{"agent_id":"depot-2"}`)
		for n := 0; ; n++ {
			got := read(t, to, "event_notification")
			acknowledge(t, to, got)
			if got.ID == last.ID {
				if n != len(step.got) {
					t.Errorf("%s %v: %d events, want %v", step.change, step.types, n, step.got)
				}
				break
			}
			if n >= len(step.got) || got.Payload["event_type"] != step.got[n] {
				t.Errorf("%s %v: event %d is %s, want %v", step.change, step.types, n, got.Raw, step.got)
			}
		}
	}
}

// TestEventSubscribeRefused (I-025, I-060): what is no subscription is refused with its reason.
func TestEventSubscribeRefused(t *testing.T) {
	t.Parallel()
	many := make([]string, 101)
	for n := range many {
		many[n] = fmt.Sprint("type-", n)
	}
	s := newSite(t, relaying)
	c := s.spoke(t, token, "depot-1")
	for name, x := range map[string]struct {
		kind, sender string
		types        any
		want         string
	}{
		"no types":          {"event_subscribe", "depot-1", nil, "event_types must be a list"},
		"no list":           {"event_subscribe", "depot-1", "build", "event_types must be a list"},
		"an empty type":     {"event_subscribe", "depot-1", []string{""}, "event_types must be a list"},
		"a long type":       {"event_subscribe", "depot-1", []string{strings.Repeat("x", 257)}, "event_types must be a list"},
		"too many":          {"event_subscribe", "depot-1", many, "at most 100 types"},
		"another's agent":   {"event_subscribe", "mill-1", []string{"build"}, "not an agent of the peer"},
		"not registered":    {"event_subscribe", "depot-2", []string{"build"}, "not registered on this connection"},
		"nothing to remove": {"event_unsubscribe", "depot-1", []string{"build"}, "has not subscribed"},
	} {
		payload := map[string]any{}
		if x.types != nil {
			payload["event_types"] = x.types
		}
		if got := exchange(t, c, iacptest.New(x.kind, x.sender, "", payload), "error_response"); !strings.Contains(got.Raw, x.want) {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
}
