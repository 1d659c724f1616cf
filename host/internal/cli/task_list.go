package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skep/host/client"
)

const taskListHelp = `List lists your tasks, newest first.

Admins list those of their tenant with --scope tenant, operators those of all with --scope
host or of one with --tenant. Of tasks of others everybody sees the shape: whose they are,
when, how large and how dear, and nothing that was said. --cost and --order cost begin with
the dearest, and leave out what has cost no money.`

const taskListExample = `  skep task list
  skep task list --scope tenant --state failed --since 24h
  skep task list --scope host --order cost
  skep task list -o json | jq -r '.tasks[].task_id'
  skep task list --limit 500 --before "$NEXT"`

// taskListFlags are the flags of task list.
type taskListFlags struct {
	limit         int
	before, since string
	cost          float64
	query         client.TaskQuery
}

func (f *taskListFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.limit, "limit", 20, "list at most `N` tasks")
	flags.StringVar(&f.before, "before", "", "go on where a list ended, by its `NEXT`")
	flags.StringVar(&f.query.Scope, "scope", "", "list the tasks of `SCOPE`: own, tenant, host")
	flags.StringVar(&f.query.Tenant, "tenant", "", "list the tasks of this `TENANT`, for operators")
	flags.StringVar(&f.query.State, "state", "", "list tasks in this `STATE`: running, paused, completed, failed, timed_out, cancelled")
	flags.StringVar(&f.query.Agent, "agent", "", "list tasks whose entrypoint is this `AGENT`")
	flags.StringVar(&f.since, "since", "", "list tasks that began since `TIME`: an RFC 3339 date-time, or a span as 90m before now")
	flags.Float64Var(&f.cost, "cost", 0, "list tasks that have cost at least so many `DOLLARS`")
	flags.StringVar(&f.query.Order, "order", "", "`created` (newest first) or cost (dearest first)")
}

// isFiltered reports whether the list is of other tasks than all of the caller's own.
func (f *taskListFlags) isFiltered() bool { return f.query != client.TaskQuery{} }

// read checks the flags.
func (f *taskListFlags) read(now time.Time) error {
	if f.limit < 1 || f.limit > 500 {
		return usagef("--limit is 1 to 500, not %d", f.limit)
	}
	if f.cost < 0 || f.cost > 1e9 {
		return usagef("--cost is 0 to 1000000000 dollars, not %v", f.cost)
	}
	f.query.MinMicroUSD = int64(math.Round(f.cost * 1e6))
	at, err := readTime("--since", f.since, now)
	f.query.Since = at
	return err
}

func (a *app) taskListCommand() *cobra.Command {
	var f taskListFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List tasks, newest first", Args: atMost(0), Long: taskListHelp, Example: taskListExample,
	}
	f.add(cmd.Flags())
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		if err := f.read(time.Now()); err != nil {
			return err
		}
		tasks, next, err := readTasks(cmd.Context(), c, f)
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
			a.notef("there are more: `%s`", a.sameSwarm("skep task list "+sameFlags(cmd.Flags())+"--before "+argument(next)))
		}
		return nil
	})
	return cmd
}

// sameFlags are the flags that select the same tasks.
func sameFlags(flags *pflag.FlagSet) (text string) {
	for _, name := range []string{"scope", "tenant", "state", "agent", "since", "cost", "order", "limit"} {
		if flag := flags.Lookup(name); flag.Changed {
			text += "--" + name + " " + argument(flag.Value.String()) + " "
		}
	}
	return text
}

// readTasks reads a page. One with filters may be short although others follow: it is filled.
func readTasks(ctx context.Context, c *client.Client, f taskListFlags) (tasks []client.Task, next string, err error) {
	if !f.isFiltered() {
		return c.Tasks(ctx, f.before, f.limit)
	}
	f.query.After = f.before
	for {
		page, next, err := c.SelectTasks(ctx, f.query, f.limit-len(tasks))
		if err != nil {
			return nil, "", err
		}
		if tasks = append(tasks, page...); next == "" || len(tasks) >= f.limit {
			return tasks, next, nil
		}
		f.query.After = next
	}
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
	wide, owner := len("TASK"), 0
	for _, t := range tasks {
		wide = max(wide, utf8.RuneCountInString(inLine(t.ID)))
		if t.Tenant != "" {
			owner = max(owner, utf8.RuneCountInString(ownerOf(t)), len("OWNER"))
		}
	}
	ownerCell := func(text string) string {
		if owner == 0 {
			return ""
		}
		return pad(text, owner) + "  "
	}
	st := a.dataStyle()
	if err := a.printf("%s\n", st.dim(pad("TASK", wide)+"  STATE      STARTED              TURNS  FUEL   COST      "+ownerCell("OWNER")+"ENTRYPOINT")); err != nil {
		return err
	}
	for _, t := range tasks {
		err := a.printf("%s  %s  %s  %5d  %s  %s  %s%s\n", pad(inLine(t.ID), wide), st.state(pad(inLine(t.State), 9), t.State),
			pad(localTime(t.Started()), 19), t.Usage.Turns, pad(quantity(t.Usage.Fuel), 5), pad(moneyText(t.Usage.MicroUSD), 8), ownerCell(ownerOf(t)), inLine(t.Entrypoint))
		if err != nil {
			return err
		}
	}
	return nil
}

// ownerOf names the instance of another's task.
func ownerOf(t client.Task) string { return inLine(t.Tenant + "/" + t.Instance) }

// moneyText renders money, "-" for none.
func moneyText(microUSD int64) string {
	if microUSD == 0 {
		return "-"
	}
	return "$" + strconv.FormatFloat(float64(microUSD)/1e6, 'f', 4, 64)
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
