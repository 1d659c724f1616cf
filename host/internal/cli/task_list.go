package cli

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"skep/host/client"
)

func (a *app) taskListCommand() *cobra.Command {
	limit, before := 20, ""
	cmd := &cobra.Command{
		Use: "list", Short: "List tasks, newest first", Args: atMost(0),
		Example: "  skep task list\n  skep task list -o json | jq -r '.tasks[].task_id'\n  skep task list --limit 500 --before \"$NEXT\"",
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "list at most `N` tasks")
	cmd.Flags().StringVar(&before, "before", "", "go on where a list ended, by its `NEXT`")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		if limit < 1 || limit > 500 {
			return usagef("--limit is 1 to 500, not %d", limit)
		}
		tasks, next, err := c.Tasks(cmd.Context(), before, limit)
		if err != nil {
			return err
		}
		if a.json() {
			return a.printRecords(tasks, next)
		}
		if err := a.printTasks(tasks); err != nil {
			return err
		}
		if next != "" {
			a.notef("there are more: `%s`", a.sameSwarm("skep task list --before "+argument(next)))
		}
		return nil
	})
	return cmd
}

// printRecords prints the records as the host wrote them.
func (a *app) printRecords(tasks []client.Task, next string) error {
	out := struct {
		Tasks []json.RawMessage `json:"tasks"`
		Next  *string           `json:"next"`
	}{Tasks: make([]json.RawMessage, len(tasks))}
	for i, t := range tasks {
		out.Tasks[i] = t.Raw
	}
	if next != "" {
		out.Next = &next
	}
	return a.printJSON(out)
}

func (a *app) printTasks(tasks []client.Task) error {
	if len(tasks) == 0 {
		a.notef("no tasks")
		return nil
	}
	wide := len("TASK")
	for _, t := range tasks {
		wide = max(wide, utf8.RuneCountInString(inLine(t.ID)))
	}
	st := a.dataStyle()
	if err := a.printf("%s\n", st.dim(pad("TASK", wide)+"  STATE      STARTED              TURNS  FUEL   ENTRYPOINT")); err != nil {
		return err
	}
	for _, t := range tasks {
		err := a.printf("%s  %s  %s  %5d  %s  %s\n", pad(inLine(t.ID), wide), st.state(pad(inLine(t.State), 9), t.State),
			pad(localTime(t.Started()), 19), t.Usage.Turns, pad(quantity(t.Usage.Fuel), 5), inLine(t.Entrypoint))
		if err != nil {
			return err
		}
	}
	return nil
}

// state renders a text in the colour of a task's state.
func (s style) state(text, state string) string {
	switch state {
	case "completed":
		return s.green(text)
	case "running", "paused":
		return s.yellow(text)
	}
	return s.red(text)
}

func localTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

func ago(t time.Time) string {
	if t.IsZero() {
		return "at an unknown time"
	}
	return fmt.Sprintf("%s (%s ago)", localTime(t), span(max(0, time.Since(t))))
}
