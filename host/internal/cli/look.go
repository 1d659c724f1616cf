package cli

import (
	"github.com/spf13/cobra"

	"skep/host/client"
)

const lookHelp = `Look shows what happened in a task of somebody else, with all that was said, as skep task
show does of your own. Admins look at tasks of their tenant, operators at any.

The host's file must allow it, by [console] look = "reason". The owner reads in the task who
looks, and the reason; the audit log has both. A look is of one task and over after 30
minutes. Until then --look reads the task again, without another line in its log.`

const lookExample = `  skep look 3b0e4c1a-… --owner user:bob --reason "ticket 17: no answer came"
  skep look 3b0e4c1a-… --tenant acme --owner user:bob --reason "ticket 17" -o json
  skep look 3b0e4c1a-… --owner user:bob --look "$LOOK"`

func (a *app) lookCommand() *cobra.Command {
	var of client.TaskOf
	var reason, token string
	full := false
	cmd := &cobra.Command{
		Use: "look ID", Short: "Show what was said in somebody else's task", GroupID: groupHost, Args: exactArguments("the ID of a task"),
		Long: lookHelp, Example: lookExample,
	}
	ownerFlags(cmd, &of)
	cmd.Flags().StringVar(&reason, "reason", "", "why you look; the owner reads this `TEXT`")
	cmd.Flags().StringVar(&token, "look", "", "go on with the look that this `TOKEN` is of")
	cmd.Flags().BoolVar(&full, "full", false, "show every text in full")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		of.ID = args[0]
		switch {
		case of.Instance == "":
			return usagef("look needs --owner ROLE:ID, whose task it is, as user:alice")
		case (reason == "") == (token == ""):
			return usagef("look needs --reason TEXT, which the owner reads, or --look TOKEN of an earlier one")
		}
		if token == "" {
			l, err := c.BeginLook(cmd.Context(), of, reason)
			if err != nil {
				return err
			}
			token = l.Token
			a.notef("the owner reads that you look; until %s `%s` reads it again", localTime(l.Until), a.sameSwarm(againText(of, token)))
		}
		c = c.Looking(of, token)
		t, err := c.Task(cmd.Context(), of.ID)
		if err != nil {
			return err
		}
		if a.json() {
			return a.showJSON(cmd.Context(), c, t)
		}
		return a.showTask(cmd.Context(), c, t, full)
	})
	return cmd
}

// againText is the command that reads a task with a look that was begun.
func againText(of client.TaskOf, token string) string {
	text := "skep look " + argument(of.ID) + " --owner " + argument(of.Instance)
	if of.Tenant != "" {
		text += " --tenant " + argument(of.Tenant)
	}
	return text + " --look " + argument(token)
}
