package config

import "maps"

// inapplicable lists the keys of a gateway that have no effect with some protocols, each with its
// fault.
var inapplicable = map[string]string{
	"gateways.hmac_key": "hmac_key binds messages to a shared key; it is for amp alone",
	"gateways.hold":     "hold is for protocols whose callers wait for an answer on their request: a2a, acp, amp, mcp",
	"gateways.ids":      "ids is for protocols whose messages name their senders: acp, amp, iacp, uamp",
	"gateways.profile":  "profile is for protocols whose documents leave things open: acp, amp, iacp, uamp",
	"gateways.sessions": "sessions is for protocols with sessions or open connections: acp, amp, iacp, mcp, uamp",
}

// refusedCapabilities returns the rows of [unimplemented] and [inapplicable].
func refusedCapabilities() map[string]string {
	all := maps.Clone(unimplemented)
	maps.Copy(all, inapplicable)
	return all
}
