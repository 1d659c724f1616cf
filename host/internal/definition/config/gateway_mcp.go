package config

import "time"

// MCPGateway has the keys that only [gateways.mcp] has.
type MCPGateway struct {
	SessionIdle time.Duration
}

var mcpProtocol = protocol{users: true, lacks: []string{"profile", "ids"}, rights: []string{"ask"}, keys: func() Keys { return new(MCPGateway) }}

// Settings are the keys of the gateway.
func (m *MCPGateway) Settings() []Setting {
	return []Setting{
		span(&m.SessionIdle, "session_idle", 10*time.Minute, time.Second, day, "Time without a request after which a session ends."),
	}
}
