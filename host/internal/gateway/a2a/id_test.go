package a2a

import (
	"testing"
	"testing/quick"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// TestTaskIDs: each message has one task id, from which it is found again, and an id that
// taskID does not make leads to none.
func TestTaskIDs(t *testing.T) {
	t.Parallel()
	back := func(message string) bool {
		return message == "" || len(message) > maxID || messageID(taskID(message)) == message
	}
	if err := quick.Check(back, nil); err != nil {
		t.Error(err)
	}
	once := func(task string) bool {
		message := messageID(a2a.TaskID(task))
		return message == "" || taskID(message) == a2a.TaskID(task)
	}
	if err := quick.Check(once, nil); err != nil {
		t.Error(err)
	}
	for message, want := range map[string]a2a.TaskID{"7d3e-4F": "7d3e-4F", "..": "~Li4", "a/b": "~YS9i", "~": "~fg", "a:cancel": "~YTpjYW5jZWw"} {
		if got := taskID(message); got != want || messageID(got) != message {
			t.Errorf("message %q has task %q, want %q", message, got, want)
		}
	}
	for _, task := range []a2a.TaskID{"", "~", "~!", "~N2QzZQ", "a b", "~Li4="} {
		if got := messageID(task); got != "" {
			t.Errorf("task %q leads to message %q", task, got)
		}
	}
}
