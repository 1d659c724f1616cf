package cli

import "github.com/spf13/cobra"

func (a *app) agentCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "agent", Short: "Look at modules, release agents from quarantine", GroupID: groupCheck,
		Long: "Agent commands look at modules, the WebAssembly files that agents are made of, and try them;\nquarantine lists the agents that a host has stopped, and release lets one run again.",
	}, a.agentInspectCommand(), a.agentCheckCommand(), a.agentQuarantineCommand(), a.withCallFlags(a.agentReleaseCommand()))
}
