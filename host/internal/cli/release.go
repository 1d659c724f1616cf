package cli

import (
	"github.com/spf13/cobra"

	"skep/host/client"
)

const releaseHelp = `Release takes an agent out of quarantine, on a host that runs.

When a host dies, the turns that were computing are suspects: the next host runs
them one at a time. One that was computing at three more deaths is ended with
::agent_error:: and its agent put into quarantine: for that tenant every turn of it
ends the same way, and nothing of it runs. Find out first what it does to the host,
and replace the module; the host's log names the turn. "skep agent quarantine" lists
who is in it, and why.

It takes an operator's key.`

func (a *app) agentReleaseCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "release NAME", Short: "Let an agent in quarantine run again", Long: releaseHelp,
		Example: "  skep agent release math\n  skep agent release math --tenant acme",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs the NAME of an agent", path(cmd)).help("`skep agent quarantine` lists those that are in quarantine")
			}
			return atMost(1)(cmd, args)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "the `TENANT` it is in quarantine for (default that of the key)")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if err := c.ReleaseAgent(cmd.Context(), tenant, args[0]); err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(map[string]any{"agent": args[0], "released": true})
		}
		a.notef("agent %s runs again", printable(args[0]))
		return nil
	})
	return cmd
}
