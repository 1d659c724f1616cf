package cli

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/spelling"
)

func (a *app) gatewayCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "gateway", Short: "Look at gateways to other protocols, and ask their partners", GroupID: groupHost,
		Long: `A gateway is another protocol through which the agents that name it in expose are
reached. Gateways stand in swarm.toml under [gateways.NAME], and the partners that they
know under [gateways.NAME.partners.PARTNER].`,
	}, a.withCallFlags(a.gatewayListCommand()), a.withCallFlags(a.gatewayShowCommand()), a.withCallFlags(a.gatewayPingCommand()), a.gatewayLogCommand(), a.gatewayKeyCommand(), a.gatewayHubCommand(), a.gatewayTokenCommand())
}

// tenantFlag adds the flag with which an operator names a tenant.
func tenantFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("tenant", "", "what this `TENANT` has, for operators")
}

func (a *app) gatewayListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the gateways that run", Args: atMost(0),
		Long: `List shows the gateways of the running host: whether each is well, how many agents of
your tenant are exposed through it, how many partners it has, and what is open now.`,
		Example: "  skep gateway list\n  skep gateway list -o json | jq -r '.gateways[] | select(.healthy | not) | .name'",
	}
	tenant := tenantFlag(cmd)
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		list, err := c.Gateways(cmd.Context(), *tenant)
		if err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(map[string]any{"gateways": append([]client.Gateway{}, list...)})
		}
		if len(list) == 0 {
			a.notef("there are no gateways")
			return nil
		}
		return a.printGateways(list)
	})
	return cmd
}

func (a *app) printGateways(list []client.Gateway) error {
	wide := []int{8, 8, 6, 8, 11, 8, 7}
	head := alignCells([]string{"GATEWAY", "STATE", "AGENTS", "PARTNERS", "CONNECTIONS", "SESSIONS", "STREAMS", "DETAIL"}, wide)
	if err := a.printf("%s\n", a.dataStyle().dim(head)); err != nil {
		return err
	}
	for _, g := range list {
		cells := []string{inLine(g.Name), gatewayState(g)}
		for _, n := range []int{len(g.Agents), len(g.Partners), g.Connections, g.Sessions, g.Streams} {
			cells = append(cells, strconv.Itoa(n))
		}
		if err := a.printf("%s\n", strings.TrimRight(alignCells(append(cells, inLine(g.Detail)), wide), " ")); err != nil {
			return err
		}
	}
	return nil
}

func gatewayState(g client.Gateway) string {
	if g.Healthy {
		return "well"
	}
	return "not well"
}

func (a *app) gatewayShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show one gateway with its agents and partners", Args: exactArguments("the NAME of a gateway, which `skep gateway list` shows"),
		Long: `Show prints the agents that your tenant exposes through a gateway, and its partners
with what they may see and do. Users reach the agents that are entrypoints.`,
		Example: "  skep gateway show mcp\n  skep gateway show a2a -o json | jq -r '.partners[].name'",
	}
	tenant := tenantFlag(cmd)
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		g, err := c.Gateway(cmd.Context(), args[0], *tenant)
		if err != nil {
			return a.unknownGateway(err, args[0])
		}
		if a.json() {
			return a.printJSON(g)
		}
		return a.printGateway(g)
	})
	return cmd
}

// unknownGateway adds to the refusal of a gateway the one that its name probably stands for.
func (a *app) unknownGateway(err error, name string) error {
	f := explain(err)
	if f.code != exitNotFound {
		return err
	}
	if near := spelling.Nearest(name, config.GatewayNames()); near != "" {
		return f.help("did you mean `%s`?", a.sameSwarm("skep gateway show "+near))
	}
	return f.help("`%s` lists those that run", a.sameSwarm("skep gateway list"))
}

func (a *app) printGateway(g client.Gateway) error {
	name := len("PARTNER")
	for _, one := range g.Agents {
		name = max(name, utf8.RuneCountInString(inLine(one.Name)))
	}
	for _, p := range g.Partners {
		name = max(name, utf8.RuneCountInString(inLine(p.Name)))
	}
	lines := []string{a.dataStyle().dim(alignCells([]string{"AGENT", "REACHED BY", "VERSION", "WHAT IT IS"}, []int{name, 16, 8}))}
	for _, one := range g.Agents {
		by := "partners"
		if one.Entrypoint {
			by = "users, partners"
		}
		lines = append(lines, alignCells([]string{inLine(one.Name), by, inLine(one.Version), inLine(one.Description)}, []int{name, 16, 8}))
	}
	lines = append(lines, "", a.dataStyle().dim(alignCells([]string{"PARTNER", "TENANT", "MAY", "SEES", "URL"}, []int{name, 12, 16, 16})))
	for _, p := range g.Partners {
		sees := inLine(strings.Join(p.Agents, ", "))
		if len(p.Agents) == 0 {
			sees = "all of them"
		}
		lines = append(lines, alignCells([]string{inLine(p.Name), inLine(p.Tenant), inLine(strings.Join(p.May, ", ")), sees, inLine(p.URL)}, []int{name, 12, 16, 16}))
	}
	for _, line := range lines {
		if err := a.printf("%s\n", strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) gatewayPingCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ping PARTNER", Short: "Ask a partner which agents it has", Args: exactArguments("the PARTNER, which `skep gateway show` shows"),
		Long: `Ping has the running host ask a partner now which agents it has. One of ACP has no list
of them: the host looks whether it answers at its url, whether the broker takes a
connection for its topics, and whether its own connections answer, and shows the agents
that have spoken on these. Ping ends with 1 when the partner does not answer as it should.`,
		Example: "  skep gateway ping shop\n  skep gateway ping shop -o json | jq -r '.agents[]'",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		p, err := c.PingPartner(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := a.showPartnerPing(p); err != nil {
			return err
		}
		if !p.Active {
			return reported(exitFailed)
		}
		return nil
	})
	return cmd
}

func (a *app) showPartnerPing(p client.PartnerPing) error {
	if a.json() {
		return a.printJSON(struct {
			client.PartnerPing
			Error *string `json:"error"`
		}{p, orNull(p.Error)})
	}
	state, detail := "active", inLine(strings.Join(p.Agents, ", "))
	if !p.Active {
		state, detail = "inactive", inLine(p.Error)
	}
	return a.printf("%s  %s  %s  %s\n", inLine(p.Partner), inLine(p.Gateway), pad(state, 8), strings.TrimSpace(pad(latencyText(p.Latency), 8)+"  "+detail))
}
