package definition

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skep/abi"
	"skep/host/internal/definition/config"
)

// Values of the member x-skep in a schema of params: what the text at its place names.
const (
	namesModel = "model" // a model of [models] that allow.llm grants
	namesOp    = "op"    // an op of the host, with _ for the dot
	namesTool  = "tool"  // a MAIL tool, an action of the agent, or an op that its params name
)

// reference is a text in params that names a model, op or tool.
type reference struct {
	kind, name string
	at         []any
	absent     bool // the text is the schema's default
}

// nameFaults lists references in an agent's params to what the agent does not have. The
// params fit their schema.
func nameFaults(cfg *config.Config, a config.Agent, shape, params json.RawMessage) (faults config.Faults) {
	var in, value any
	if json.Unmarshal(shape, &in) != nil || json.Unmarshal(params, &value) != nil {
		return nil
	}
	found := references(in, value, nil)
	tools := a.Tools()
	for _, n := range found {
		if n.kind == namesOp {
			tools = append(tools, n.name)
		}
	}
	for _, n := range found {
		if why := referenceFault(a, n, tools); why != "" {
			faults = append(faults, cfg.ParamFault("agents", a.Name, n.at, why, nil))
		}
	}
	return faults
}

// referenceFault is the fault of a reference, empty if the agent has what it names.
func referenceFault(a config.Agent, n reference, tools []string) string {
	switch {
	case n.kind == namesModel && n.name != "" && !slices.Contains(a.Allow.LLM, n.name):
		is := "names"
		if n.absent {
			is = "is not set and means"
		}
		return fmt.Sprintf("%s the model %q, which [agents.%s] allow.llm does not grant; it grants %s", is, n.name, a.Name, quotedList(a.Allow.LLM))
	case n.kind == namesOp && strings.HasPrefix(n.name, "kv_") && a.Allow.KV == "":
		return fmt.Sprintf(`names %s, which needs a grant; add to [agents.%s]: allow = { kv = "agent" }`, n.name, a.Name)
	case n.kind == namesOp && n.name == "http_fetch" && len(a.Allow.HTTP)+len(a.Allow.HTTPNoKey) == 0:
		return fmt.Sprintf(`names %s, which needs a grant; add to [agents.%s]: allow = { http = ["https://…"] }`, n.name, a.Name)
	case n.kind == namesOp && !isBuiltOp(n.name):
		return fmt.Sprintf("names the operation %q, which there is not", n.name)
	case n.kind == namesTool && !slices.Contains(tools, n.name):
		return fmt.Sprintf("names the tool %q, which the agent does not have; it has %s", n.name, strings.Join(tools, ", "))
	}
	return ""
}

func isBuiltOp(name string) bool {
	info, known := abi.LookupName(strings.Replace(name, "_", ".", 1))
	return known && info.Built && !strings.Contains(name, ".")
}

func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	if len(quoted) == 0 {
		return "none"
	}
	return strings.Join(quoted, ", ")
}

// references are the texts in a value whose schema has x-skep, in the order of their
// keys.
func references(shape, value any, at []any) (found []reference) {
	node, _ := shape.(map[string]any)
	kind, _ := node["x-skep"].(string)
	switch v := value.(type) {
	case string:
		if kind != "" {
			found = append(found, reference{kind: kind, name: v, at: at})
		}
	case []any:
		for i, item := range v {
			found = append(found, references(node["items"], item, append(slices.Clone(at), i))...)
		}
	case map[string]any:
		members, _ := node["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(members)) {
			step := append(slices.Clone(at), key)
			if member, there := v[key]; there {
				found = append(found, references(members[key], member, step)...)
				continue
			}
			for _, n := range references(members[key], defaultOf(members[key]), step) {
				n.absent = true
				found = append(found, n)
			}
		}
	}
	return found
}

func defaultOf(shape any) any {
	node, _ := shape.(map[string]any)
	return node["default"]
}
