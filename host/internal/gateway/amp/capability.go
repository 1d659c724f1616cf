package amp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/schema"
	"skep/host/internal/spelling"
	"skep/spec/gateways/amp/taxonomy"
)

// mailCapability brings a text to an agent as it is. Each exposed agent has it (M-113).
const mailCapability = "mail.message"

// mailTexts is the capability that the gateway gives each agent.
var mailTexts = gateway.Capability{
	ID: mailCapability, Version: "1.0", Description: "Takes a text, and answers with one.",
	Input:  json.RawMessage(`{"type":"object","required":["body"],"properties":{"subject":{"type":"string"},"body":{"type":"string","minLength":1}}}`),
	Output: json.RawMessage(`{"type":"object"}`),
}

// capabilitiesOf are the capabilities of an exposed agent: its own, and mail.
func capabilitiesOf(a gateway.ExposedAgent) []gateway.Capability {
	return append(slices.Clone(a.Capabilities), mailTexts)
}

func findCapability(a gateway.ExposedAgent, id string) (gateway.Capability, bool) {
	all := capabilitiesOf(a)
	i := slices.IndexFunc(all, func(c gateway.Capability) bool { return c.ID == id })
	if i < 0 {
		return gateway.Capability{}, false
	}
	return all[i], true
}

// target is an agent and what it is asked for.
type target struct {
	agent      gateway.ExposedAgent
	capability gateway.Capability
}

// targetOf finds the agent that a message names and its capability, or without a name of the
// agents with the capability, and constraints that the input fits, the one that has the least
// to do (M-020, M-022, M-114).
func (g *Gateway) targetOf(c gateway.Caller, agent, capability string, in func() input) (target, error) {
	agents := g.Runtime.ExposedAgents(c)
	if agent != "" {
		a, err := findAgent(agents, agent)
		if err != nil {
			return target{}, err
		}
		agents = []gateway.ExposedAgent{a}
	}
	var found []target
	for _, a := range agents {
		if own, has := findCapability(a, capability); has {
			found = append(found, target{a, own})
		}
	}
	if len(found) == 0 {
		return target{}, capabilityFault(agents, capability)
	}
	if capability == mailCapability && slices.ContainsFunc(found, isEntrypoint) {
		found = slices.DeleteFunc(found, func(t target) bool { return !isEntrypoint(t) })
	}
	if len(found) > 1 {
		fits := func(t target) bool { return g.checkConstraints(t.capability, in) == nil }
		if slices.ContainsFunc(found, fits) {
			found = slices.DeleteFunc(found, func(t target) bool { return !fits(t) })
		}
	}
	return slices.MinFunc(found, func(a, b target) int {
		return g.measures.compare(c.Principal.Tenant, nameOf(a.agent), nameOf(b.agent), capability)
	}), nil
}

func isEntrypoint(t target) bool { return t.agent.Entrypoint }

// findAgent returns the agent NAME or NAME@SWARM. One that the caller may not see is as
// unknown as any.
func findAgent(agents []gateway.ExposedAgent, id string) (gateway.ExposedAgent, error) {
	name, swarm := id, ""
	if at := strings.LastIndexByte(id, '@'); at >= 0 {
		name, swarm = id[:at], id[at+1:]
	}
	for _, a := range agents {
		if a.Name == name && (a.Swarm == swarm || swarm == "" && name == id && !slices.Contains(reserved, name)) {
			return a, nil
		}
	}
	return gateway.ExposedAgent{}, message.Faultf(message.AgentNotFound, "", "there is no agent %q%s", id, gateway.SuggestAgent(id, agents))
}

// The agents of the mesh itself. An agent of ours with such a name is reached as NAME@SWARM
// (G-012).
const (
	registryAgent = "registry"
	contextAgent  = "context"
)

var reserved = []string{registryAgent, contextAgent}

// nameOf is an agent in AMP.
func nameOf(a gateway.ExposedAgent) string { return a.Name + "@" + a.Swarm }

// capabilityFault refuses a capability, and lists those that there are (M-039).
func capabilityFault(agents []gateway.ExposedAgent, capability string) error {
	var available []string
	for _, a := range agents {
		for _, c := range capabilitiesOf(a) {
			available = append(available, c.ID)
		}
	}
	slices.Sort(available)
	return capabilityFaultAmong(slices.Compact(available), capability)
}

func capabilityFaultAmong(available []string, capability string) error {
	f := message.Faultf(message.CapabilityNotFound, "", "the requested capability %.100q was not found", capability)
	f.Details = map[string]any{"available_capabilities": available}
	if near := spelling.Nearest(capability, available); near != "" {
		f.Details["suggestion"] = "Try '" + near + "' instead"
	}
	return f
}

// maxSchemas bounds the compiled schemas that are kept.
const maxSchemas = 1000

// schemas are compiled schemas of capabilities, by their texts. It is safe for concurrent
// use.
type schemas struct {
	// definitions are the document's, which schemas may refer to without having them (M-110).
	definitions map[string]json.RawMessage
	mu          sync.Mutex
	compiled    map[string]compiledSchema
}

type compiledSchema struct {
	params *schema.Params
	err    error
}

func newSchemas() *schemas {
	known, err := taxonomy.Read()
	if err != nil {
		panic(err) // the file is a part of the program
	}
	return &schemas{definitions: known.Definitions, compiled: map[string]compiledSchema{}}
}

// resolve adds to a schema the document's definitions that it refers to. Its own ones win (D-M11).
func (s *schemas) resolve(text json.RawMessage) json.RawMessage {
	missing := map[string]json.RawMessage{}
	for name, definition := range s.definitions {
		if bytes.Contains(text, []byte(`"#/definitions/`+name+`"`)) {
			missing[name] = definition
		}
	}
	var doc, own map[string]json.RawMessage
	if len(missing) == 0 || json.Unmarshal(text, &doc) != nil || doc["definitions"] != nil && json.Unmarshal(doc["definitions"], &own) != nil {
		return text // who compiles it reports what is wrong
	}
	maps.Copy(missing, own)
	doc["definitions"] = wire.MustEncode(missing)
	return wire.MustEncode(doc)
}

// check returns what is wrong with a value by a schema; nil is any value. errSchema is
// wrapped for a schema that cannot be checked.
func (s *schemas) check(capability string, text, value json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	s.mu.Lock()
	found, known := s.compiled[string(text)]
	s.mu.Unlock()
	if !known {
		found.params, found.err = schema.CompileTool(capability, s.resolve(text))
		s.mu.Lock()
		if len(s.compiled) >= maxSchemas {
			clear(s.compiled)
		}
		s.compiled[string(text)] = found
		s.mu.Unlock()
	}
	if found.err != nil {
		return errors.Join(errSchema, found.err)
	}
	return found.params.Check(value)
}

// errSchema is met for a schema of a capability that cannot be checked.
var errSchema = errors.New("the schema cannot be checked")

// checkInput refuses parameters that do not fit the capability's schema, with each
// violation (M-021). A schema that cannot be checked is not enforced (D-M11).
func (g *Gateway) checkInput(c gateway.Capability, parameters json.RawMessage) error {
	err := g.schemas.check(c.ID, c.Input, parameters)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errSchema):
		g.Log.Warn("amp: the input of a capability is not checked", "capability", c.ID, "error", err)
		return nil
	}
	f := message.Faultf(message.InvalidSchema, message.ReasonViolations, "the parameters do not fit the input_schema of %q: %v", c.ID, err)
	f.Details = map[string]any{"violations": violationsOf(err)}
	return f
}

// violationsOf lists what is wrong, each with its path.
func violationsOf(err error) (list []string) {
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		for _, one := range all.Unwrap() {
			list = append(list, one.Error())
		}
		return list
	}
	return []string{err.Error()}
}

// described is a capability as lists have it (M-002).
type described struct {
	ID          string          `json:"id"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input_schema,omitempty"`
	Output      json.RawMessage `json:"output_schema,omitempty"`
	Constraints json.RawMessage `json:"constraints,omitempty"`
}

func describe(list []gateway.Capability) []described {
	all := []described{}
	for _, c := range list {
		all = append(all, described{c.ID, cmp.Or(c.Version, "1.0"), c.Description, c.Input, c.Output, c.Constraints})
	}
	return all
}
