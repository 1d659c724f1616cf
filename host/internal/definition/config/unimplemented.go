package config

// notBuilt ends the sentence about a capability that a later version may have.
const notBuilt = " is not built into this version of skep yet"

// unimplemented lists what the grammar has and this version cannot do yet, or a protocol
// has no use for, by capability. A setting that needs one is a single fault, because it
// would have no effect; other faults of that setting are not reported. Delete a row when
// its capability is built.
var unimplemented = map[string]string{
	"gateways.behind_proxy":    "a protocol that asks for TLS" + notBuilt,
	"gateways.hmac_key":        "hmac_key binds messages to a shared key; it is for amp alone",
	"gateways.hold":            "hold is for protocols whose callers wait for an answer on their request: a2a, acp, amp, mcp",
	"gateways.ids":             "ids is for protocols whose messages name their senders: acp, amp, iacp, uamp",
	"gateways.profile":         "profile is for protocols whose documents leave things open: acp, amp, iacp, uamp",
	"gateways.sessions":        "sessions is for protocols with sessions or open connections: acp, iacp, mcp, uamp",
	"history":                  "a limit on histories" + notBuilt,
	"lock":                     "the lock file" + notBuilt,
	"oci":                      "the source oci:" + notBuilt,
	"postgres":                 "the store driver postgres" + notBuilt,
	"tenants.memory":           "a quota of memory" + notBuilt,
	"tenants.turns_per_second": "a quota of turns per second" + notBuilt,
}
