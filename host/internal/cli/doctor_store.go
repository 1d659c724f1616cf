package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
)

const doctorStoreHelp = `Store connects to the PostgreSQL server of [store] in swarm.toml and says what is wrong
with it: its version, whether it keeps what it acknowledges, a pooler before it, a standby
that is missing, rights that the role lacks. It changes nothing there, and a host may run.
A store in a data directory passes.

The exit code is 8 when a host could not use the server.`

func (a *app) doctorStoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "store", Short: "Look for what is wrong with the PostgreSQL server", Args: atMost(0),
		Long: doctorStoreHelp, Example: "  skep doctor store\n  skep doctor store -o json | jq .failed",
	}
	cmd.RunE = a.command(func(cmd *cobra.Command, _ []string) error {
		cfg, err := a.loadConfig(true)
		if err != nil {
			return err
		}
		if cfg.Store.Driver != config.DriverPostgres {
			return a.printGatewayChecks([]gatewayCheck{{"store", true, "a file in " + a.dataDir()}})
		}
		found, faults, err := datadir.InspectServer(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		var checks []gatewayCheck
		if found.Version != "" {
			standbys := "no synchronous standby"
			if found.Standbys != "" {
				standbys = "synchronous standbys " + found.Standbys
			}
			checks = append(checks, gatewayCheck{"server", true, fmt.Sprintf("PostgreSQL %s, schema %s, %s", found.Version, found.Schema, standbys)})
		}
		for _, f := range faults {
			checks = append(checks, gatewayCheck{f.Path, false, f.String() + ": " + f.Fix})
		}
		return a.printGatewayChecks(checks)
	})
	return cmd
}
