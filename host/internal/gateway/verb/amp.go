package verb

import (
	"maps"
	"time"
)

// Limits of the arguments of AMP's verbs.
const (
	MaxContextID      = 256 // bytes
	MaxContextAccess  = 100 // entries of a list of access
	MaxContextSources = 16  // contexts that are merged
	MaxAsked          = 64  // capabilities that a mesh is asked for
	MaxContextLife    = 24 * time.Hour
)

// The verbs of AMP that ask the partner's mesh.
const (
	AMPDiscover  = "discover"
	AMPNegotiate = "capability_check"
)

// The verbs of AMP that write messages. Their names are the types in routing_info.gateway.
const (
	AMPDelegate      = "delegate"
	AMPDelegateToAny = "delegate_to_any"
	AMPEvent         = "event"
	AMPEventToAll    = "event_to_all"
)

// ampMail are the verbs of AMP that write messages: what mail cannot say.
func ampMail() []Verb {
	agent := text(512, "Name of the partner's agent, as in an address NAME@PARTNER.")
	event := map[string]any{
		"event_type": text(256, "What has happened, as stock.low."),
		"data":       map[string]any{"type": "object", "description": "Members of the event besides event_type."},
	}
	toOne := map[string]any{"agent": agent, "event_type": event["event_type"], "data": event["data"]}
	subtask := map[string]any{
		"capability": text(256, "Id of the capability, as data-extraction."),
		"parameters": map[string]any{"type": "object", "description": "What the capability takes."},
		"subject":    text(1024, "What it is about."),
	}
	ofOne := maps.Clone(subtask)
	ofOne["agent"] = agent
	return []Verb{
		{Name: AMPDelegate, Description: "Hands on a subtask of this task to an agent of the partner, and goes on: the result is a request_id, and the answer comes as mail.", Mail: "request", parameters: ofOne, required: []string{"agent", "capability"}},
		{Name: AMPDelegateToAny, Description: "Hands on a subtask of this task to any agent of the partner that has the capability, and goes on: the result is a request_id, and the answer comes as mail.", Mail: "request", parameters: subtask, required: []string{"capability"}},
		{Name: AMPEvent, Description: "Tells an agent of the partner that something has happened, without an answer.", Mail: "broadcast", parameters: toOne, required: []string{"agent", "event_type"}},
		{Name: AMPEventToAll, Description: "Tells all agents of the partner that something has happened, without an answer.", Mail: "broadcast", parameters: event, required: []string{"event_type"}},
	}
}

// amp are the verbs of AMP: what agents do with shared contexts, which lie in the host, and what they
// ask a mesh.
func amp() []Verb {
	object := func(about string) map[string]any {
		return map[string]any{"type": "object", "description": about}
	}
	list := func(most int, about string) map[string]any {
		return map[string]any{"type": "array", "maxItems": most, "items": map[string]any{"type": "string", "minLength": 1, "maxLength": MaxContextID}, "description": about}
	}
	context, ofContext := text(MaxContextID, "Id of the context."), []string{"context"}
	shared := object("Memory that all readers see. In an update members are changed one by one, and null removes one.")
	own := object("Memory that only the agents of this swarm see.")
	read := list(MaxContextAccess, "Who may read: AGENT of the partner, AGENT@PARTNER, *@SWARM for the agents of a swarm, or * for all.")
	write := list(MaxContextAccess, "Who may write, and read.")
	seconds := map[string]any{"type": "integer", "minimum": 1, "maximum": int(MaxContextLife / time.Second), "description": "Seconds until the context is gone."}
	made := map[string]any{"shared_memory": shared, "own_memory": own, "read": read, "write": write, "expires_in": seconds, "session": text(MaxContextID, "Session that the context belongs to.")}
	with := func(name string, about any) map[string]any {
		all := map[string]any{name: about}
		for name, about := range made {
			all[name] = about
		}
		return all
	}
	update := with("context", context)
	delete(update, "session")
	update["mode"] = map[string]any{"enum": []string{"merge", "replace"}, "description": "replace puts the memory in the place of what is there."}
	update["if_version"] = map[string]any{"type": "integer", "minimum": 1, "description": "The version that the context must have."}
	capabilities := list(MaxAsked, "Ids of capabilities, as translation.")
	number := func(about string) map[string]any {
		return map[string]any{"type": "number", "minimum": 0, "description": about}
	}
	return append(ampMail(), []Verb{
		{Name: AMPDiscover, Description: "Finds agents of the partner's mesh that have capabilities: agents with all of them, partial_matches with some.", Reads: true, parameters: map[string]any{
			"capabilities": capabilities, "match": map[string]any{"enum": []string{"all", "any"}, "description": "any lists agents with one of them, too."},
			"max_latency_ms": number("The latency that is taken."), "min_success_rate": number("The least share of successes, up to 1."),
		}, required: []string{"capabilities"}},
		{Name: AMPNegotiate, Description: "Asks the partner's mesh whether a task can be done, and by which of its agents.", Reads: true, parameters: map[string]any{
			"capabilities": capabilities, "agent": text(512, "The agent that is asked, without it any."), "estimated_tokens": number("How many tokens the task takes."),
			"deadline": text(64, "When it must be done, as 2025-01-27T11:00:00Z."),
		}, required: []string{"capabilities"}},
		{Name: "context_create", Description: "Makes a context that agents share: its id, version and memory.", parameters: made},
		{Name: "context_get", Description: "Reads a shared context: its memory, version and who may read and write it.", Reads: true, parameters: map[string]any{"context": context}, required: ofContext},
		{Name: "context_update", Description: "Changes a shared context.", parameters: update, required: ofContext},
		{Name: "context_fork", Description: "Makes a context that begins as a copy of another.", parameters: with("context", context), required: ofContext},
		{Name: "context_merge", Description: "Makes one context of several; the later one counts where they differ.", parameters: with("sources", list(MaxContextSources, "Ids of the contexts, in order.")), required: []string{"sources"}},
	}...)
}
