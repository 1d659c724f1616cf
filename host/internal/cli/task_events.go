package cli

import (
	"context"

	"github.com/spf13/cobra"

	"skep/host/client"
)

const taskEventsHelp = `Events prints a task's log as it is now. Each event has an id, its cursor; --after
begins behind one.

-o json and --export write one JSON object a line. An export to a file that has
some lines already goes on behind the last, so that it can be repeated after a
break, or while the task runs. With both, the lines go to the file, and one object
on stdout tells what the file has come to.`

const taskEventsExample = `  skep task events 3b0e4c1a-…
  skep task events 3b0e4c1a-… --after 40 -o json
  skep task events 3b0e4c1a-… --export log.jsonl`

func (a *app) taskEventsCommand() *cobra.Command {
	var after int64
	var file string
	cmd := &cobra.Command{
		Use: "events ID", Short: "Print or export a task's log", Args: exactArguments("the ID of a task"),
		Long: taskEventsHelp, Example: taskEventsExample,
	}
	cmd.Flags().Int64Var(&after, "after", 0, "begin behind the event with the id `N`")
	cmd.Flags().StringVar(&file, "export", "", "write JSON lines to `FILE`, behind those it has")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if after < 0 {
			return usagef("--after is the id of an event, not %d", after)
		}
		t, err := c.Task(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if file == "" && !a.json() {
			return a.printEvents(cmd.Context(), c, t, after)
		}
		return a.exportEvents(cmd.Context(), c, t, after, file)
	})
	return cmd
}

func (a *app) printEvents(ctx context.Context, c *client.Client, t client.Task, after int64) error {
	v := newMailview(a.env.Stdout, a.dataStyle(), a.env.Width, "you")
	v.all, v.start = true, t.Started()
	for e, err := range c.Log(ctx, t.ID, after, t.Cursor) {
		if err != nil {
			return err
		}
		v.printEvent(e)
	}
	return v.err
}

func (a *app) exportEvents(ctx context.Context, c *client.Client, t client.Task, after int64, file string) error {
	x, err := a.openExport(file, exportLabels{Task: t.ID})
	if err != nil {
		return err
	}
	return a.exported(x, "event", func() error {
		if after, err = x.startAfter(after); err != nil {
			return err
		}
		for e, err := range c.Log(ctx, t.ID, after, t.Cursor) {
			if err != nil {
				return err
			}
			if err := x.write(e); err != nil {
				return err
			}
			x.last = e.Cursor
		}
		return nil
	})
}

// exported runs an export and reports the file's size.
func (a *app) exported(x *export, what string, run func() error) error {
	if err := x.close(run()); err != nil {
		return err
	}
	switch {
	case x.file == nil:
	case a.json():
		return a.printJSON(struct {
			File string `json:"file"`
			exportLabels
			Added int   `json:"added"`
			Last  int64 `json:"last"`
		}{x.file.Name(), x.labels, x.n, x.last})
	default:
		a.notef("%s: %s more, the last is %d", x.file.Name(), plural(int64(x.n), what), x.last)
	}
	return nil
}
