package config

// Section is a table of the file with all its settings.
type Section struct {
	Name     string // as in the file: [agents.NAME]
	About    string
	Settings []Setting
	Network  bool // a definition over the network may have it
}

// Sections are the tables of the file in the order of the page
// host/docs/settings.md.
func Sections() []Section {
	var c Config
	var agent Agent
	var action Action
	operator := func(name string, settings []Setting, about string) Section {
		return Section{Name: name, About: about, Settings: settings}
	}
	network := func(name string, settings []Setting, about string) Section {
		return Section{Name: name, About: about, Settings: settings, Network: true}
	}
	return []Section{
		network("[swarm]", c.Swarm.Settings(), "What the swarm is. Another `name` takes a restart."),
		network("[agents.NAME]", agent.Settings(), "An agent, see [Compose a swarm](compose.md#agents)."),
		network("[actions.NAME]", append(action.Settings(), action.Files.Settings()...), "An action, see [Give agents actions](actions.md)."),
		operator("[models.NAME]", new(Model).Settings(), "A model, see [Give agents models](models.md)."),
		operator("[secrets.NAME]", new(SecretGrant).Settings(), "A secret, see [Compose a swarm](compose.md#grants)."),
		operator("[mcp.NAME]", new(MCP).Settings(), "An MCP server, see [Use the tools of MCP servers](mcp.md)."),
		operator("[limits]", c.Limits.Settings(), "Limits of the host and of tasks. `turns`, `turn_buffers`, `waiting_turns`, `process_idle` and `[limits.module]` take a restart."),
		operator("[tenants.NAME]", new(Tenant).Settings(), "A tenant and its quotas, see [Host several tenants](tenants.md). Tenants that come or go and `weight` take a restart. The tenant `default` is there without being named."),
		operator("[server]", c.Server.Settings(), "The listeners, see [Put it on the internet](serve.md). Changes take a restart."),
		operator("[[auth.keys]]", new(AuthKey).Settings(), "A caller's key, see [Say who may call](auth.md). Changes here and in the next two tables take a restart."),
		operator("[auth.jwt]", c.Auth.JWT.Settings(), "Callers with JSON Web Tokens."),
		operator("[auth.endpoints]", c.Auth.Endpoints.Settings(), "Callers with the reference implementation's tokens."),
		operator("[peers.NAME]", new(Peer).Settings(), "Another MAIL server, see [Work with other swarms](peers.md)."),
		operator("[store]", c.Store.Settings(), "Where tasks are kept, see [Keep its data](data.md). Changes take a restart."),
		operator("[cluster]", c.Cluster.Settings(), "Hosts that share a PostgreSQL server, see [Run several hosts](cluster.md). Changes take a restart."),
		operator("[telemetry]", c.Telemetry.Settings(), "What is logged, and where the log and traces of tasks go. All but `log_level` takes a restart."),
		operator("[console]", c.Console.Settings(), "What operators see, see [Find out what a tenant's tasks do](operate.md). Changes take a restart."),
		operator("[questions]", c.Questions.Settings(), "Where the host says that calls wait for people, see [Let a person decide](ask-people.md#be-told). Changes take a restart."),
		operator("[gateways.NAME]", new(Gateway).Settings(), "A protocol besides MAIL, see [Serve agents over other protocols](gateways.md): `a2a`, `acp`, `amp`, `iacp`, `mcp` or `uamp`. Changes here and in the tables up to `[gateways.uamp]` take a restart."),
		operator("[gateways.a2a]", new(A2A).Settings(), "What the gateway to A2A has besides."),
		operator("[gateways.acp]", new(ACP).Settings(), "What the gateway to ACP has besides."),
		operator("[gateways.amp]", new(AMP).Settings(), "What the gateway to AMP has besides."),
		operator("[gateways.iacp]", new(IACP).Settings(), "What the gateway to IaCP has besides."),
		operator("[gateways.mcp]", new(MCPGateway).Settings(), "What the gateway to MCP clients has besides."),
		operator("[gateways.uamp]", new(UAMP).Settings(), "What the gateway to UAMP has besides."),
		operator("[gateways.NAME.partners.NAME]", new(Partner).Settings(), "Another party that the gateway knows."),
		operator("[gateways.acp.partners.NAME]", new(ACPPartner).Settings(), "What a partner of `acp` has besides."),
		operator("[gateways.amp.partners.NAME]", new(AMPPartner).Settings(), "What a partner of `amp` has besides."),
		operator("[gateways.a2a.partners.NAME]", new(A2APartner).Settings(), "What a partner of `a2a` has besides."),
		operator("[gateways.uamp.partners.NAME]", new(UAMPPartner).Settings(), "What a partner of `uamp` has besides."),
	}
}

// Built reports whether this version has what the setting asks for.
func (s Setting) Built() bool { return unimplemented[s.capability] == "" }
