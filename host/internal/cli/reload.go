package cli

import (
	"github.com/spf13/cobra"

	"skep/host/client"
)

const reloadHelp = `Reload makes a running host read its file again and take it over, all of it or
nothing, and prints what has changed. New tasks go by the new file; tasks that run or
are paused finish on what they were begun with, within what the new file grants. What
only a restart can change, as addresses, keys, tenants and the store, is named, and
then nothing is changed. "skep plan" shows before what would be.

It takes an operator's key.`

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Make a running host take its file over", Long: reloadHelp, GroupID: groupHost, Args: atMost(0),
		Example: "  skep validate && skep plan && skep reload",
		RunE: a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			changes, err := c.Reload(cmd.Context())
			if err != nil {
				return fileFault(err)
			}
			return a.printChanges(changes, "nothing has changed: the host runs what is in its file")
		}),
	}
}
