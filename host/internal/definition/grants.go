package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/host/internal/definition/config"
)

// missingGrants lists what a module needs and the file does not grant. An optional
// request is no fault: its calls are refused.
func missingGrants(cfg *config.Config, g grantee, d *abi.Descriptor) config.Faults {
	var faults config.Faults
	for _, r := range d.Requests {
		meant := withParams(r, g.params)
		if r.Optional || granted(g.allow, meant) {
			continue
		}
		text := fmt.Sprintf("the module %s %s needs to %s (%s) and is not granted it; add to %s: allow = { %s = %s }",
			d.Name, d.Version, May(meant), r.Reason, g.table(), r.Allow, tomlValue(r, meant))
		if !grantable(r.Allow) {
			text = fmt.Sprintf("the module %s %s needs %q (%s), which this version of skep does not know",
				d.Name, d.Version, r.Allow, r.Reason)
		}
		faults = append(faults, cfg.Fault(text, g.section, g.name, "allow", r.Allow))
	}
	return faults
}

// Keys of an agent's allow table.
const (
	allowLLM     = "llm"
	allowHTTP    = "http"
	allowKV      = "kv"
	allowSecrets = "secrets"

	// No module requests this key: which servers take no idempotency key is known to the operator alone.
	allowHTTPNoKey = "http_no_key"
)

func grantable(key string) bool {
	return slices.Contains([]string{allowLLM, allowHTTP, allowKV, allowSecrets}, key)
}

// kvScopes are the scopes of allow.kv; each includes the scopes before it.
var kvScopes = []string{"task", "agent", "instance"}

// granted reports whether an allow table meets a request. A request without values is met
// by any grant of its kind.
func granted(allow config.Allow, r abi.Request) bool {
	have := map[string][]string{allowLLM: allow.LLM, allowHTTP: slices.Concat(allow.HTTP, allow.HTTPNoKey), allowSecrets: allow.Secrets}[r.Allow]
	wanted := values(r)
	if r.Allow == allowKV {
		has := slices.Index(kvScopes, allow.KV)
		return has >= 0 && !slices.ContainsFunc(wanted, func(scope string) bool { return slices.Index(kvScopes, scope) > has })
	}
	meets := slices.Contains[[]string]
	if r.Allow == allowHTTP {
		meets = includes
	}
	return len(have) > 0 && !slices.ContainsFunc(wanted, func(v string) bool { return !meets(have, v) })
}

// withParams is a request whose references to params are the URLs, or the scopes of kv, there. A
// reference to nothing asks for nothing: the module may have a URL or scope of its own.
func withParams(r abi.Request, params json.RawMessage) abi.Request {
	fromParams := config.FromParams
	switch {
	case len(r.Value) == 0:
		return r
	case r.Allow == allowKV:
		fromParams = config.ScopeFromParams
	case r.Allow != allowHTTP:
		return r
	}
	meant := []string{}
	for _, v := range values(r) {
		if grant, reason := fromParams(v, params); reason == "" {
			meant = append(meant, grant)
		}
	}
	r.Value, _ = json.Marshal(meant) // strings always encode
	return r
}

// values are the values of a request: one text, a list of texts, or none.
func values(r abi.Request) []string {
	var one string
	if json.Unmarshal(r.Value, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(r.Value, &many) != nil {
		return nil
	}
	return many
}

// May describes what a request would let the module do, as in "call https://api.example".
func May(r abi.Request) string {
	named := strings.Join(values(r), ", ")
	either := func(any, these string) string {
		if named == "" {
			return any
		}
		return these + named
	}
	switch r.Allow {
	case allowLLM:
		return either("spend model tokens", "spend tokens of the models ")
	case allowHTTP:
		return either("call what the operator names", "call ")
	case allowKV:
		return either("keep data", "keep data for each ")
	case allowSecrets:
		return either("have secrets added to its calls", "have secrets added to its calls: ")
	}
	return either(fmt.Sprintf("use %q", r.Allow), fmt.Sprintf("use %q: ", r.Allow))
}

// tomlValue is the TOML value that would grant a request, which means as much with the grantee's params.
func tomlValue(r, meant abi.Request) string {
	named := values(r)
	if r.Allow == allowKV {
		scope := "agent"
		if wanted := values(meant); len(wanted) > 0 {
			scope = slices.MaxFunc(wanted, func(a, b string) int {
				return cmp.Compare(slices.Index(kvScopes, a), slices.Index(kvScopes, b))
			})
		}
		return fmt.Sprintf("%q", scope)
	}
	if len(named) == 0 {
		named = map[string][]string{allowLLM: {"default"}, allowHTTP: {"https://…"}}[r.Allow]
	}
	quoted := make([]string, len(named))
	for i, v := range named {
		quoted[i] = fmt.Sprintf("%q", v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
