package question_test

import (
	"testing"

	"skep/plugins/internal/question"
	skep "skep/sdk/go"
)

func TestIsLong(t *testing.T) {
	t.Parallel()
	for routing, want := range map[string]bool{`{"gateway":{"parts":[{}]}}`: true, `{"gateway":{"parts":[]}}`: false, `{}`: false, ``: false} {
		if got := question.IsLong(&skep.Message{Routing: []byte(routing)}); got != want {
			t.Errorf("%q: %t", routing, got)
		}
	}
	if question.IsLong(&skep.Message{Body: "x", Routing: []byte(`{"gateway":{"parts":[{}]}}`)}) {
		t.Error("a message with a body is too long for one")
	}
}

func TestWithdrawn(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"message_type":"workflow_cancel","payload":{"message_id":"m1"}}`: "m1 true",
		`{"message_type":"workflow_cancel"}`:                               " true",
		`{"message_type":"workflow_status","payload":{}}`:                  " false",
		`cancel`: " false",
	} {
		id, withdraws := question.Withdrawn(body)
		if got := id + map[bool]string{true: " true", false: " false"}[withdraws]; got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"four": "four", "fives": "five…", "äöü": "äö…", "aäöü": "aä…"} {
		if got := question.Clip(text, 4); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
