package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/client"
)

const taskShowHelp = `Show tells what happened in a task, in the order in which it happened: the mail
between the agents, every turn with what it cost, the tools it used and what they
told, what agents showed meanwhile, failures with the limits they ran into, and how
the task ended or what it waits for. Long texts are cut; --full shows all of them.
The last progress of an agent that has several lines, as a workflow's steps, is shown
whole at the end.

Other calls, as those of values, timers and HTTP, and those that were refused, are
counted below their turn, by op. What was asked in each, and what was told, stays
on the host's machine: ` + "`skep replay ID --calls`" + ` there lists every call of all
turns from the data directory, and --turn N those of one.

-o json gives the task's record with its events, its turns, and the history of each
agent.

With --owner, and --tenant for operators, it shows the shape of another's task: who mailed
whom, when, and how much, what turns have cost and how they ended, and nothing that was said.`

const taskShowExample = `  skep task show 3b0e4c1a-…
  skep task show 3b0e4c1a-… --full | less
  skep task show 3b0e4c1a-… --tenant acme --owner user:bob
  skep task show 3b0e4c1a-… -o json | jq .state`

func (a *app) taskShowCommand() *cobra.Command {
	full := false
	var of client.TaskOf
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show what happened in a task", Args: exactArguments("the ID of a task"),
		Long: taskShowHelp, Example: taskShowExample,
	}
	cmd.Flags().BoolVar(&full, "full", false, "show every text in full")
	ownerFlags(cmd, &of)
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if of != (client.TaskOf{}) {
			of.ID = args[0]
			return a.explainTaskNotFound(a.showShape(cmd.Context(), c, of), of)
		}
		t, err := c.Task(cmd.Context(), args[0])
		if err != nil {
			return a.explainTaskNotFound(err, of)
		}
		if a.json() {
			return a.showJSON(cmd.Context(), c, t)
		}
		return a.showTask(cmd.Context(), c, t, full)
	})
	return cmd
}

// showTask prints a task. It holds no more of it than one commit and a page of
// each agent's history at a time.
func (a *app) showTask(ctx context.Context, c *client.Client, t client.Task, full bool) error {
	if err := a.printRows(taskHead(a.dataStyle(), t)); err != nil {
		return err
	}
	if err := a.printf("\n"); err != nil {
		return err
	}
	line := newTimeline(ctx, a, c, t, full)
	defer line.close()
	if err := line.run(ctx); err != nil {
		return err
	}
	if err := a.printf("\n"); err != nil {
		return err
	}
	return a.printRows(append(line.pictureRows(), a.taskEnd(t, full)...))
}

// rowTitle is the width of the titles of rows.
const rowTitle = 8

// printRows prints titles with texts, and leaves out what has no text. The lines
// of a long text stand below each other.
func (a *app) printRows(rows [][2]string) error {
	st := a.dataStyle()
	for _, row := range rows {
		if row[1] == "" {
			continue
		}
		if err := a.printf("%s  %s\n", st.dim(pad(row[0], rowTitle)), indentBelow(row[1], rowTitle+2)); err != nil {
			return err
		}
	}
	return nil
}

func taskHead(st style, t client.Task) [][2]string {
	ended, took := wireTime(t.Ended), ""
	if !ended.IsZero() {
		took = span(max(0, ended.Sub(t.Started())))
	}
	rows := [][2]string{
		{"task", inLine(t.ID)},
		{"state", st.state(inLine(t.State), t.State)},
		{"owner", inLine(t.Owner)},
		{"instance", inLine(t.Instance)},
		{"created", ago(t.Started())},
	}
	if took != "" {
		rows = append(rows, [2]string{"ended", ago(ended)}, [2]string{"duration", took})
	}
	cost := usageText(t.Usage) + " · " + plural(t.Usage.HostCalls, "host call")
	if n := t.Usage.Fetches; n > 0 {
		cost += " · " + httpText(n, t.Usage.FetchBytes)
	}
	if n := t.Usage.Tokens; n > 0 {
		cost += " · " + modelText(n, t.Usage.MicroUSD)
	}
	return append(rows, [2]string{"cost", cost})
}

// wireTime reads a time as a host writes it; what is none is the zero time.
func wireTime(text string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

// taskEnd lists how a task ended, or what it waits for.
func (a *app) taskEnd(t client.Task, full bool) [][2]string {
	switch {
	case t.State == statePaused:
		return a.pendingRows(t)
	case t.Ended == "":
		return [][2]string{{"end", "none yet; `" + a.sameSwarm("skep task cancel "+argument(t.ID)) + "` ends it"}}
	}
	answer := printable(t.Answer)
	if !full {
		answer = clipLines(answer, answerLines)
	}
	return [][2]string{{"end", strings.ReplaceAll(inLine(t.State), "_", " ") + ", by " + inLine(t.Finish)}, {"answer", answer}}
}

// answerLines is how much of an answer is shown.
const answerLines = 20

// clipLines keeps the first n lines of a text.
func clipLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	if len(lines) <= n {
		return text
	}
	return strings.Join(lines[:n], "\n") + fmt.Sprintf("\n… (%d more lines; --full shows them)", len(lines)-n)
}

// pendingRows lists the calls a paused task waits for and how to answer them.
func (a *app) pendingRows(t client.Task) [][2]string {
	var calls []struct {
		ID        string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	if json.Unmarshal([]byte(t.Answer), &calls) != nil || len(calls) == 0 {
		return [][2]string{{"waits", printable(t.Answer)}}
	}
	type answer struct {
		Call    string `json:"call_id"`
		Content string `json:"content"`
	}
	var rows [][2]string
	var answers []answer
	for _, c := range calls {
		rows = append(rows, [2]string{"waits", inLine(c.Name + " " + c.Arguments + ", call " + c.ID)})
		answers = append(answers, answer{c.ID, "TEXT"})
	}
	result, id := "TEXT", argument(t.ID)
	if len(calls) > 1 {
		raw, _ := json.Marshal(answers) // strings always encode
		result = argument(string(raw))
	}
	return append(rows,
		[2]string{"answer", "`" + a.sameSwarm("skep task resume "+id+" --result "+result) + "`"},
		[2]string{"or", "`" + a.sameSwarm("skep task resume "+id+" --response TEXT") + "` calls it off"})
}

// argument quotes a text for a shell where that is needed.
func argument(text string) string {
	plain := func(r rune) bool {
		return r > 127 || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._-/@:%+=,", r)
	}
	text = inLine(text)
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
