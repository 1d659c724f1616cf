package rest_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chatter is a task that shows something once the gate is open.
func chatter(task string, more obj) obj {
	post := obj{"task_id": task, "body": calls(
		"gate", obj{"name": task}, "emit", obj{"progress": obj{"text": "half", "fraction": 0.5}},
		"emit", obj{"chunk": "Hel"}, "emit", obj{"note": "<n>"}, "emit", obj{"chunk": "lo"},
		"task_complete", obj{"finish_message": "done"})}
	for k, v := range more {
		post[k] = v
	}
	return post
}

var chatterEvents = []string{
	"new_message", "agent_progress", "agent_chunk", "agent_note", "agent_chunk", "agent_output",
	"tool_call", "task_complete_call", "new_message", "task_complete",
}

// Volatile events have the shape of all others and no id; the log has their sum.
// Both streams carry them.
func TestEmittedEvents_S17(t *testing.T) {
	t.Parallel()
	doc := document(t)
	for _, c := range []struct{ name, task string }{{"the stream of a post", "posted"}, {"the task's stream", "followed"}} {
		h := newTestHost(t)
		var rsp *http.Response
		if c.task == "posted" {
			rsp = h.send(t.Context(), postRequest(chatter(c.task, obj{"stream": true})))
		} else {
			h.post(chatter(c.task, nil), "Prefer", "respond-async")
			rsp = h.send(t.Context(), request{path: "/skep/v1/tasks/" + c.task + "/events"})
		}
		h.script.open(c.task) // the reader is there: its answer has begun
		all := events(t, read(t, rsp).body)
		if diff := cmp.Diff(chatterEvents, eventNames(all)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
			continue
		}
		for i, e := range all {
			volatile := 1 <= i && i <= 4
			if (e.id == "") != volatile {
				t.Errorf("%s: %s has the id %q", c.name, e.name, e.id)
			}
			if e.name == "task_complete" {
				continue
			}
			valid(t, doc, "EventData", e.data)
			if volatile {
				valid(t, doc, "Emission", extraOf(t, e))
			}
		}
		valid(t, doc, "Output", extraOf(t, all[5]))
		if got := extraOf(t, all[5]); !strings.Contains(got, `"text":"Hello"`) || !strings.Contains(got, `"n":4`) {
			t.Errorf("%s: agent_output has %s", c.name, got)
		}
		record := h.do(request{path: "/task?task_id=" + c.task}).body
		if strings.Contains(record, `"agent_chunk"`) || !strings.Contains(record, `"agent_output"`) {
			t.Errorf("the record is %s", record)
		}
	}
}

func extraOf(t *testing.T, e sse) string {
	t.Helper()
	var data struct {
		Extra json.RawMessage `json:"extra_data"`
	}
	if err := json.Unmarshal([]byte(e.data), &data); err != nil {
		t.Fatal(err)
	}
	return string(data.Extra)
}

// The catalogue of what agents emit is the one that is published.
func TestOpenAPIEmissions(t *testing.T) {
	t.Parallel()
	doc := document(t)
	for _, route := range []string{"POST /message", "GET /skep/v1/tasks/{task_id}/events"} {
		text, _ := doc.Operation(route).Spec["description"].(string)
		for _, name := range []string{"agent_progress", "agent_chunk", "agent_note"} {
			if !slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;.\n", r) }), name) {
				t.Errorf("%s does not tell of %s", route, name)
			}
		}
	}
}
