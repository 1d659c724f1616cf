package cli

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"skep/host/client"
)

const questionsHelp = `Questions lists the calls of agents that wait for a person, with what they ask: a
user's own, an admin's those of the tenant, an operator's those of all tenants.

What is asked is shown to who may answer, which "skep answer" does: the owner of the
task, and admins and operators where the task came from a realm, as a partner of a
gateway, and belongs to no person.`

func (a *app) questionsCommand() *cobra.Command {
	var after string
	cmd := &cobra.Command{
		Use: "questions", Short: "List what waits for a person", GroupID: groupHost, Args: atMost(0), Long: questionsHelp,
		Example: "  skep questions\n  skep questions -o json | jq -r '.questions[] | select(.arguments) | .task_id'",
	}
	tenant := tenantFlag(cmd)
	cmd.Flags().StringVar(&after, "after", "", "go on where a list ended, by its `NEXT`")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		list, next, err := c.Questions(cmd.Context(), *tenant, after)
		if err != nil {
			return err
		}
		if a.json() {
			out := map[string]any{"questions": append([]client.Question{}, list...), "next": nil}
			if next != "" {
				out["next"] = next
			}
			return a.printJSON(out)
		}
		if err := a.printQuestions(list); err != nil {
			return err
		}
		if next != "" {
			a.notef("there are more: `%s`", a.sameSwarm("skep questions --after "+argument(next)))
		}
		return nil
	})
	return cmd
}

func (a *app) printQuestions(list []client.Question) error {
	if len(list) == 0 {
		a.notef("nothing waits for a person")
		return nil
	}
	rows := [][]string{{"TASK", "CALL", "OWNER", "SINCE", "AGENT", "ACTION", "ASKS"}}
	for _, q := range list {
		asks := "-"
		if q.Arguments != nil {
			asks = oneLine(*q.Arguments)
		}
		rows = append(rows, []string{
			inLine(q.Task), inLine(q.Call), inLine(q.Tenant + "/" + q.Instance), localTime(q.Since), inLine(q.Agent), inLine(q.Action), asks,
		})
	}
	wide := make([]int, len(rows[0])-1)
	for _, row := range rows {
		for i := range wide {
			wide[i] = max(wide[i], utf8.RuneCountInString(row[i]))
		}
	}
	for i, row := range rows {
		line := alignCells(row, wide)
		if i == 0 {
			line = a.dataStyle().dim(line)
		}
		if err := a.printf("%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

const answerHelp = `Answer gives TEXT to the agent as the result of its call, which "skep questions"
lists. The task goes on when all its calls are answered. Without TEXT it is read from
stdin.

To answer several calls at once, or to write to a task of your own instead, use
"skep task resume".`

func (a *app) answerCommand() *cobra.Command {
	var want client.Question
	cmd := &cobra.Command{
		Use: "answer TASK [TEXT]", Short: "Answer what waits for a person", GroupID: groupHost, Long: answerHelp,
		Example: "  skep answer 3b0e4c1a-… \"yes, order it\"\n  skep answer 3b0e4c1a-… --call t1.c2 \"125\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("answer needs the ID of a task")
			}
			return atMost(2)(cmd, args)
		},
	}
	cmd.Flags().StringVar(&want.Call, "call", "", "answer this `CALL`, where a task waits for several")
	cmd.Flags().Var(ownerFlag{&want.Instance, &want.Tenant}, "owner", "answer in the task of this `ROLE:ID` or TENANT/ROLE:ID, where several have that id")
	cmd.Flags().Var(ownerTenantFlag{&want.Tenant}, "tenant", "answer in a task of this `TENANT`, for operators")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		text, err := a.readBody(cmd.Context(), cmd, "TEXT", args[1:])
		if err != nil {
			return err
		}
		want.Task = args[0]
		q, err := a.findQuestion(cmd.Context(), c, want)
		if err != nil {
			return err
		}
		if err := c.Answer(cmd.Context(), q, text); err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(map[string]string{"task_id": q.Task, "call_id": q.Call, "status": "answered"})
		}
		a.notef("call %s of task %s is answered; it waited for %s", inLine(q.Call), inLine(q.Task), span(max(0, time.Since(q.Since))))
		return nil
	})
	return cmd
}

// findQuestion returns the only question that the caller may answer and that is as wanted.
func (a *app) findQuestion(ctx context.Context, c *client.Client, want client.Question) (client.Question, error) {
	var found, others []client.Question // others are answered by their owners alone
	for after := ""; ; {
		list, next, err := c.Questions(ctx, want.Tenant, after)
		if err != nil {
			return client.Question{}, err
		}
		for _, q := range list {
			switch isWanted := q.Task == want.Task && (want.Call == "" || q.Call == want.Call) && (want.Instance == "" || q.Instance == want.Instance); {
			case isWanted && q.Arguments != nil:
				found = append(found, q)
			case isWanted:
				others = append(others, q)
			}
		}
		if after = next; next == "" {
			break
		}
	}
	switch len(found) {
	case 0:
		what := "nothing"
		if want.Call != "" {
			what = "no call " + inLine(want.Call)
		}
		err := failf(exitFailed, "%s in task %s waits for your answer", what, inLine(want.Task))
		return client.Question{}, err.help("%s", a.whoAnswers(others))
	case 1:
		return found[0], nil
	}
	return client.Question{}, usagef("task %s waits for %d answers: choose one with --call, --owner or --tenant", inLine(want.Task), len(found)).help(
		"`%s` lists them", a.sameSwarm("skep questions"))
}

// whoAnswers says who answers what waits in a task, for a caller who may not.
func (a *app) whoAnswers(others []client.Question) string {
	if len(others) == 0 {
		return "`" + a.sameSwarm("skep questions") + "` lists what does; only the owner of a task answers"
	}
	q := others[0]
	end := "skep task cancel " + argument(q.Task) + " --tenant " + argument(q.Tenant) + " --owner " + argument(q.Instance)
	return "only the owner of a task answers, here " + inLine(q.Tenant+"/"+q.Instance) + "; `" + a.sameSwarm(end) + "` ends the task"
}
