package cli

import (
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
)

const quarantineHelp = `Quarantine lists the agents that must not run, because turns of theirs have killed
the host three times, and why. It reads the data directory or its server, whether or
not a host runs on it. "skep agent release" lets one run again.`

func (a *app) agentQuarantineCommand() *cobra.Command {
	return &cobra.Command{
		Use: "quarantine", Short: "List the agents in quarantine", Long: quarantineHelp, Args: atMost(0),
		Example: "  skep agent quarantine\n  skep agent quarantine -o json | jq -r '.agents[].agent'",
		RunE: a.withData(func(cmd *cobra.Command, d datadir.Data, _ []string) error {
			list, err := d.Quarantine(cmd.Context())
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(confinedOf(list))
			}
			return a.printConfined(list)
		}),
	}
}

// confinedJSON is the JSON of an agent in quarantine.
type confinedJSON struct {
	Agent  string    `json:"agent"`
	Tenant string    `json:"tenant"`
	Swarm  string    `json:"swarm"`
	Since  time.Time `json:"since"`
	Why    string    `json:"why"`
}

func confinedOf(list []datadir.Confined) any {
	out := struct {
		Agents []confinedJSON `json:"agents"`
	}{[]confinedJSON{}}
	for _, c := range list {
		out.Agents = append(out.Agents, confinedJSON{c.Agent, c.Tenant, c.Swarm, c.Since, c.Why})
	}
	return out
}

func (a *app) printConfined(list []datadir.Confined) error {
	if len(list) == 0 {
		a.notef("no agent is in quarantine")
		return nil
	}
	agent, tenant := len("AGENT"), len("TENANT")
	for _, c := range list {
		agent, tenant = max(agent, len(inLine(c.Agent))), max(tenant, len(inLine(c.Tenant)))
	}
	head := pad("AGENT", agent) + "  " + pad("TENANT", tenant) + "  " + pad("SINCE", 19) + "  WHY"
	if err := a.printf("%s\n", a.dataStyle().dim(head)); err != nil {
		return err
	}
	for _, c := range list {
		line := pad(inLine(c.Agent), agent) + "  " + pad(inLine(c.Tenant), tenant) + "  " + pad(localTime(c.Since), 19) + "  " + oneLine(c.Why)
		if err := a.printf("%s\n", line); err != nil {
			return err
		}
	}
	return nil
}
