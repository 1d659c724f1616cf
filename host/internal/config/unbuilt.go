package config

// unbuilt lists what the grammar has and this version cannot do yet. A setting
// that asks for it is a fault, because it would have no effect; its keys and
// types are checked all the same. Delete a row when its capability is built.
var unbuilt = map[string]string{
	"actions":        "actions are",
	"allow.http":     "HTTP access of agents is",
	"allow.kv":       "key-value state of agents is",
	"allow.llm":      "model access of agents is",
	"allow.secrets":  "secrets are",
	"auth.endpoints": "authentication by endpoints is",
	"auth.jwt":       "authentication by JWT is",
	"breakpoints":    "breakpoint tools are",
	"debug":          "the debug routes are",
	"exec":           "the source exec: is",
	"expose":         "exposing agents through gateways is",
	"gateways":       "gateways are",
	"history":        "a limit on histories is",
	"interswarm":     "mail between swarms is",
	"keyring":        "sealing the store with a keyring is",
	"lock":           "the lock file is",
	"models":         "models are",
	"oci":            "the source oci: is",
	"peers":          "peers are",
	"postgres":       "the store driver postgres is",
	"quotas":         "quotas of a tenant are",
	"secrets":        "secrets are",
	"tenants":        "tenants other than \"default\" are",
	"tls":            "TLS is",
}
