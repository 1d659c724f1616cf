package config

// notBuilt ends the sentence about a capability that a later version may have.
const notBuilt = " is not built into this version of skep yet"

// unimplemented lists what the grammar has and this version cannot do yet, by capability. A
// setting that needs one is a single fault, because it would have no effect; other faults of
// that setting are not reported. Delete a row when its capability is built.
var unimplemented = map[string]string{
	"gateways.behind_proxy":    "a protocol that asks for TLS" + notBuilt,
	"history":                  "a limit on histories" + notBuilt,
	"lock":                     "the lock file" + notBuilt,
	"oci":                      "the source oci:" + notBuilt,
	"tenants.memory":           "a quota of memory" + notBuilt,
	"tenants.turns_per_second": "a quota of turns per second" + notBuilt,
}
