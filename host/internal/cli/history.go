package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"skep/host/client"
	"skep/spec/mail"
)

const taskHistoryHelp = `History prints what one agent remembers of a task: the messages it took, its calls
and their results, and its notes, each with the number of its turn. It is what the
agent's next turn begins with.

-o json and --export write one JSON object a line. An export to a file that has
some lines already goes on behind the last.`

const taskHistoryExample = `  skep task history 3b0e4c1a-… --agent supervisor
  skep task history 3b0e4c1a-… --agent supervisor -o json | jq -r 'select(.call).call.name'
  skep task history 3b0e4c1a-… --agent supervisor --export supervisor.jsonl`

func (a *app) taskHistoryCommand() *cobra.Command {
	var after int64
	var agent, file string
	cmd := &cobra.Command{
		Use: "history ID", Short: "Print or export what an agent remembers", Args: exactArguments("the ID of a task"),
		Long: taskHistoryHelp, Example: taskHistoryExample,
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent's `NAME`")
	cmd.Flags().Int64Var(&after, "after", 0, "begin behind the entry with the seq `N`")
	cmd.Flags().StringVar(&file, "export", "", "write JSON lines to `FILE`, behind those it has")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		switch {
		case agent == "":
			return usagef("task history needs --agent NAME")
		case after < 0:
			return usagef("--after is the seq of an entry, not %d", after)
		}
		// A file is not touched for a task or an agent that is not there.
		if _, err := c.History(cmd.Context(), args[0], agent, after, 1); err != nil {
			return err
		}
		if file == "" && !a.json() {
			return a.printHistory(cmd.Context(), c, args[0], agent, after)
		}
		return a.exportHistory(cmd.Context(), c, exportLabels{args[0], agent}, after, file)
	})
	return cmd
}

func (a *app) exportHistory(ctx context.Context, c *client.Client, head exportLabels, after int64, file string) error {
	x, err := a.openExport(file, head)
	if err != nil {
		return err
	}
	return a.exported(x, "line", func() error {
		if after, err = x.startAfter(after); err != nil {
			return err
		}
		for e, err := range c.Entries(ctx, head.Task, head.Agent, after) {
			if err != nil {
				return err
			}
			if err := x.write(e.Raw); err != nil {
				return err
			}
			x.last = e.Seq
		}
		return nil
	})
}

func (a *app) printHistory(ctx context.Context, c *client.Client, task, agent string, after int64) error {
	st := a.dataStyle()
	room := max(cmp.Or(a.env.Width, defaultWidth), minWide) - 21
	for e, err := range c.Entries(ctx, task, agent, after) {
		if err != nil {
			return err
		}
		left := st.dim(fmt.Sprintf("%5d", e.Seq)) + "  " + st.dim(pad(turnOfEntry(e), 8)) + "  "
		if err := a.printf("%s%s\n", left, entryText(st, e, room)); err != nil {
			return err
		}
	}
	return nil
}

func turnOfEntry(e client.Entry) string {
	if e.Turn == 0 {
		return "-"
	}
	return fmt.Sprintf("turn %d", e.Turn)
}

// entryText gives an entry in one line.
func entryText(st style, e client.Entry, room int) string {
	var m mail.Message
	switch {
	case e.Kind == "in" && json.Unmarshal(e.Message, &m) == nil:
		left := kindName(m.Type) + " from " + sender(m) + ": "
		return left + st.mailText(m, room-len(left))
	case e.Call != nil:
		return clip(oneLine(e.Call.Name+" "+string(e.Call.Args)), room)
	case e.Result != nil && e.Result.OK:
		return st.dim(clip("→ "+oneLine(e.Result.Text), room))
	case e.Result != nil:
		return st.red(clip("→ "+oneLine(e.Result.Text), room))
	case e.Note != "":
		return clip("note: "+oneLine(e.Note), room)
	}
	return clip(inLine(e.Kind), room)
}
