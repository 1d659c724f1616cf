package config

// unimplemented lists what the grammar has and this version cannot do yet, by
// capability. A setting that needs one is a single fault, because it would have no
// effect; other faults of that setting are not reported. Delete a row when its
// capability is built.
var unimplemented = map[string]string{
	"gateways.behind_proxy":    "a protocol that asks for TLS is",
	"gateways.hmac_key":        "a shared key that binds messages in this protocol is",
	"gateways.hold":            "a caller that waits for its answer in this protocol is",
	"gateways.ids":             "a check of senders' ids in this protocol is",
	"gateways.profile":         "a strict profile of this protocol is",
	"gateways.rights":          "a right to registrations or contexts is",
	"gateways.sessions":        "a bound on this protocol's sessions is",
	"history":                  "a limit on histories is",
	"lock":                     "the lock file is",
	"oci":                      "the source oci: is",
	"postgres":                 "the store driver postgres is",
	"tenants.memory":           "a quota of memory is",
	"tenants.turns_per_second": "a quota of turns per second is",
}
