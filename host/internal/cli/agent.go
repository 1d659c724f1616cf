package cli

import "github.com/spf13/cobra"

func (a *app) agentCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "agent", Short: "Look at an agent's module, release an agent", GroupID: groupCheck,
		Long: "Agent commands look at modules, the WebAssembly files that agents are made of, and try them;\nrelease lets an agent run again that a host has put into quarantine.",
	}, a.agentInspectCommand(), a.agentCheckCommand(), a.agentReleaseCommand())
}
