package cli

import (
	"strings"
	"testing"

	"skep/host/client"
)

// TestWhoAnswers: who may not answer reads who does, and how the task is ended.
func TestWhoAnswers(t *testing.T) {
	t.Parallel()
	a := &app{}
	if text := a.whoAnswers(nil); !strings.Contains(text, "`skep questions` lists") {
		t.Error(text)
	}
	text := a.whoAnswers([]client.Question{{Tenant: "acme", Instance: "user:bob", Task: "job"}})
	for _, part := range []string{"here acme/user:bob;", "`skep task cancel job --tenant acme --owner user:bob` ends the task"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
}
