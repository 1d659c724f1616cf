package pluginpb

// ProtocolVersion is the version of the service that both sides name when they
// meet, and with Cookie a program knows that a host has started it.
const (
	ProtocolVersion = 1
	CookieKey       = "SKEP_PLUGIN"
	CookieValue     = "3f1d27c7-skep-agent"
)

// Name is the agent's name in a set of plugins.
const Name = "agent"
