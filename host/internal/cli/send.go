package cli

import (
	"context"

	"github.com/spf13/cobra"

	"skep/host/client"
)

const sendHelp = `Send posts BODY to a host that runs, prints the mail as it flows on stderr and
the answer alone on stdout.

The host is that of --url, or the one that "skep serve" runs with the same
swarm.toml. On its machine the operator's key is found beside that file; from
elsewhere give a token in SKEP_TOKEN or --token-file.

A broken connection loses nothing: the post is repeated under the same
idempotency key and gets the answer to the first one. Ctrl-C stops waiting, the
task goes on.

A post that a limit or quota refuses (429) is tried again for 30 seconds, then the
exit code is 6; with --no-wait it is at once.

Without BODY the text is read from stdin.`

const sendExample = `  skep send "What is 6 times 7?"
  id=$(skep send --async "A long job") && skep task show $id
  skep send --task $id "And by 8?"
  SKEP_TOKEN=… skep send --url https://hive.example "hello"`

func (a *app) sendCommand() *cobra.Command {
	var flags postFlags
	var async bool
	cmd := &cobra.Command{
		Use: "send [BODY]", Short: "Send a task and print its answer", GroupID: groupHost,
		Long: sendHelp, Example: sendExample, Args: atMost(1),
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&a.noWait, "no-wait", false, "do not try again for 30 s when a limit or quota refuses the post")
	cmd.Flags().BoolVar(&async, "async", false, "do not wait: print the task's id and return")
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		body, err := a.readBody(cmd.Context(), cmd, "BODY", args)
		if err != nil {
			return err
		}
		post, err := flags.post(cmd, body)
		if err != nil {
			return err
		}
		c, err := a.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		if async {
			return a.sendAsync(cmd.Context(), c, post)
		}
		return a.converse(cmd.Context(), conversation{client: c, post: post, hostStays: true, keptHint: "`" + a.sameSwarm("skep task show %s") + "` tells what becomes of the task"})
	})
	return cmd
}

func (a *app) sendAsync(ctx context.Context, c *client.Client, post client.Post) error {
	receipt, err := c.PostAsync(ctx, post)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(map[string]string{"task_id": receipt.Task, "status": "accepted"})
	}
	return a.print(receipt.Task)
}
