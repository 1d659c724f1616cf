package cli

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"skep/host/client"
)

const taskResumeHelp = `Resume answers the calls for which a paused task waits, prints the mail as it
flows on stderr and the task's answer alone on stdout.

--result is the answer to the only call there is: a text, or JSON with "content".
For several calls it is a JSON array of objects with "call_id" and "content", one
for each call; a call that is left out gets an error. "skep task show" tells what
the calls are.

--response writes to the task instead: the calls are cancelled, the turn that
made them ends, and the text is the next message to the entrypoint.`

const taskResumeExample = `  skep task resume 3b0e4c1a-… --result "yes, order it"
  skep task resume 3b0e4c1a-… --result '[{"call_id":"t1.c3","content":"yes"}]'
  skep task resume 3b0e4c1a-… --response "Forget it, what else is there?"`

func (a *app) taskResumeCommand() *cobra.Command {
	var result, response string
	cmd := &cobra.Command{
		Use: "resume ID", Short: "Answer what a paused task waits for", Args: exactArguments("the ID of a task"),
		Long: taskResumeHelp, Example: taskResumeExample,
	}
	cmd.Flags().StringVar(&result, "result", "", "`TEXT` or JSON that answers the calls")
	cmd.Flags().StringVar(&response, "response", "", "`TEXT` of a message that goes instead of an answer")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		post := client.Post{Task: args[0], Body: response, Continue: true}
		answers, writes := cmd.Flags().Changed("result"), cmd.Flags().Changed("response")
		switch {
		case answers == writes:
			return usagef("task resume needs one of --result and --response")
		case writes && response == "":
			return usagef("--response must not be empty")
		case answers:
			post.Result = &result
		}
		err := a.converse(cmd.Context(), conversation{
			client: c, post: post, hostStays: true, keptHint: "`" + a.sameSwarm("skep task show %s") + "` tells what becomes of the task",
		})
		return a.explainEnded(cmd.Context(), c, args[0], err)
	})
	return cmd
}

// explainEnded explains a refused answer to a task that has ended.
func (a *app) explainEnded(ctx context.Context, c *client.Client, id string, err error) error {
	var refusal *client.Error
	if !errors.As(err, &refusal) || refusal.Status != http.StatusBadRequest {
		return err
	}
	t, failed := c.Task(ctx, id)
	if failed != nil || t.Running || t.State == statePaused {
		return err // the host's own word is the news
	}
	return failf(exitFailed, "task %s waits for nothing: it is %s", inLine(id), inLine(t.State)).help(
		"`%s` posts to it anew", a.sameSwarm("skep send --task "+printable(id)+" TEXT"))
}
