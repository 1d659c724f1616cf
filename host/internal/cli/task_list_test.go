package cli

import (
	"strings"
	"testing"
	"time"

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

// What the flags of task list say is what is asked for, and what makes no sense is refused.
func TestTaskListFlags(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		flags taskListFlags
		want  client.TaskQuery
		wrong string
	}{
		{flags: taskListFlags{limit: 1}},
		{flags: taskListFlags{limit: 1, since: "90m"}, want: client.TaskQuery{Since: now.Add(-90 * time.Minute)}},
		{flags: taskListFlags{limit: 1, since: "2026-11-20T11:00:00Z"}, want: client.TaskQuery{Since: now.Add(-time.Hour)}},
		{flags: taskListFlags{limit: 1, cost: 0.0125}, want: client.TaskQuery{MinMicroUSD: 12500}},
		{flags: taskListFlags{limit: 1, since: "yesterday"}, wrong: "--since is an RFC 3339 date-time"},
		{flags: taskListFlags{limit: 1, cost: -1}, wrong: "--cost is 0 to"},
		{flags: taskListFlags{limit: 0}, wrong: "--limit is 1 to 500"},
		{flags: taskListFlags{limit: 501}, wrong: "--limit is 1 to 500"},
	} {
		f := c.flags
		err := f.read(now)
		if c.wrong == "" && (err != nil || f.query != c.want) || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%+v: %+v, %v; want %+v %s", c.flags, f.query, err, c.want, c.wrong)
		}
	}
}
