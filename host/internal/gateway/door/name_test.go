package door

import (
	"strings"
	"testing"

	"skep/spec/mail"
)

// A conversation is a task of its own; under the id of its task it goes on.
func TestTaskOfAConversation(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []string{"c", "a b", strings.Repeat("x", 257), "line\nbreak", "~short", "~" + strings.Repeat("0", 64), strings.Repeat("é", 256)} {
		id := taskID(c)
		if !mail.ValidTaskID(id) || taskID(c) != id || taskID(id) != id {
			t.Errorf("%.20q became %q, and that %q", c, id, taskID(id))
		}
		if other, taken := seen[id]; taken {
			t.Errorf("%.20q and %.20q are one task", c, other)
		}
		seen[id] = c
	}
	if first := taskID(""); first == taskID("") {
		t.Error("two new conversations are one task")
	}
}
