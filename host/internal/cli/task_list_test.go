package cli

import (
	"strings"
	"testing"

	"skep/host/client"
)

// The columns stand below their titles, however long the ids are.
func TestTaskColumns(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"k"}, {"k", "ümlaut"}, {"a-long-id"}} {
		s := newShell(nil)
		var tasks []client.Task
		for _, id := range ids {
			tasks = append(tasks, client.Task{ID: id, State: "completed", Entrypoint: "boss"})
		}
		if err := newApp(s.Env).printTasks(tasks); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(s.stdout.String(), "\n"), "\n")
		for title, cell := range map[string]string{"STATE": "completed", "ENTRYPOINT": "boss"} {
			want := column(lines[0], title)
			for _, line := range lines[1:] {
				if got := column(line, cell); got != want || got < 0 {
					t.Errorf("%s stands at %d, its title at %d:\n%s", cell, got, want, s.stdout.String())
				}
			}
		}
	}
}

// column counts the characters before a text.
func column(line, text string) int {
	before, _, ok := strings.Cut(line, text)
	if !ok {
		return -1
	}
	return len([]rune(before))
}
