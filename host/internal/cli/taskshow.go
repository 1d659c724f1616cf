package cli

import (
	"github.com/spf13/cobra"

	"skep/host/client"
)

func (a *app) taskShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show what happened in a task", Args: takes("the ID of a task"),
		Long: `Show prints a task's state, what it has cost, and its log: the mail between the
agents and every call they made.`,
		Example: "  skep task show 3b0e4c1a-…\n  skep task show 3b0e4c1a-… -o json | jq .state",
		RunE: a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
			t, err := c.Record(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(t.Raw)
			}
			return a.printTask(t)
		}),
	}
}

func (a *app) printTask(t client.Task) error {
	st := a.dataStyle()
	rows := [][2]string{
		{"task", printable(t.ID)},
		{"state", st.state(printable(t.State), t.State)},
		{"owner", printable(t.Owner)},
		{"started", ago(t.Started())},
		{"cost", usageText(t.Usage)},
		{"answer", printable(lastAnswer(t))},
	}
	for _, row := range rows {
		if row[1] == "" {
			continue
		}
		if err := a.printf("%s  %s\n", st.dim(pad(row[0], 7)), row[1]); err != nil {
			return err
		}
	}
	if err := a.printf("\n"); err != nil {
		return err
	}
	view := newMailview(a.env.Stdout, st, a.env.Width, "you")
	view.all = true
	for _, e := range t.Events {
		view.event(e)
	}
	return view.err
}

// lastAnswer is the text of the last event that carries one.
func lastAnswer(t client.Task) string {
	for i := len(t.Events) - 1; i >= 0; i-- {
		if t.Events[i].Ends() {
			return t.Events[i].Response
		}
	}
	return ""
}
