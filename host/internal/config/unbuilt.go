package config

// unbuilt lists what the grammar has and this version cannot do yet. A setting
// that asks for it is one fault, because it would have no effect; what else is
// wrong with that setting is not told. Delete a row when its capability is built.
var unbuilt = map[string]string{
	"expose":                   "exposing agents through gateways is",
	"gateways":                 "gateways are",
	"history":                  "a limit on histories is",
	"lock":                     "the lock file is",
	"oci":                      "the source oci: is",
	"postgres":                 "the store driver postgres is",
	"tenants.memory":           "a quota of memory is",
	"tenants.turns_per_second": "a quota of turns per second is",
}
