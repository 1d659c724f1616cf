// Package verb owns what actions can do at the partners of gateways: the verbs of each
// gateway, and the parameters that models are shown. It must not know how a verb is done.
package verb

import (
	"encoding/json"
	"slices"
)

// Verb is what an action with source = "gateway:GATEWAY/NAME" does.
type Verb struct {
	Name, Description string
	// Reads is set for a verb that changes nothing at the partner.
	Reads bool
	// Mail is the type of the message that the verb writes, as "request"; empty for a verb
	// that is done within the turn. The message is the outbox's, its answer comes as mail.
	Mail string
	// parameters are the properties of its arguments besides partner; required are those
	// that a call must have.
	parameters map[string]any
	required   []string
}

// byGateway are the verbs of the gateways that have some.
var byGateway = map[string][]Verb{"a2a": a2a(), "acp": acp(), "amp": amp(), "uamp": uamp()}

// Of lists the verbs of a gateway.
func Of(gateway string) []Verb { return slices.Clone(byGateway[gateway]) }

// Find returns a verb of a gateway by its name.
func Find(gateway, name string) (Verb, bool) {
	all := byGateway[gateway]
	i := slices.IndexFunc(all, func(v Verb) bool { return v.Name == name })
	if i < 0 {
		return Verb{}, false
	}
	return all[i], true
}

// Names lists the names of a gateway's verbs.
func Names(gateway string) (names []string) {
	for _, v := range byGateway[gateway] {
		names = append(names, v.Name)
	}
	return names
}

// Parameters is the JSON Schema of a call's arguments. A call names its partner where the
// action has more than one.
func (v Verb) Parameters(partners []string) json.RawMessage {
	properties, required := map[string]any{}, v.required
	for name, about := range v.parameters {
		properties[name] = about
	}
	if len(partners) != 1 {
		properties["partner"] = map[string]any{"enum": partners, "description": "Whom it is done with."}
		required = append([]string{"partner"}, required...)
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	raw, _ := json.Marshal(schema) // maps, lists and texts
	return raw
}

// text is the schema of a text.
func text(most int, about string) map[string]any {
	return map[string]any{"type": "string", "minLength": 1, "maxLength": most, "description": about}
}
