package verb

// amp are the verbs of AMP: what agents do with shared contexts. Those lie in the host.
func amp() []Verb {
	const id = 256
	object := func(about string) map[string]any {
		return map[string]any{"type": "object", "description": about}
	}
	list := func(most int, about string) map[string]any {
		return map[string]any{"type": "array", "maxItems": most, "items": map[string]any{"type": "string", "minLength": 1, "maxLength": id}, "description": about}
	}
	context := text(id, "Id of the context.")
	shared := object("Memory that all readers see. In an update members are changed one by one, and null removes one.")
	own := object("Memory that only the agents of this swarm see.")
	read := list(100, "Who may read: AGENT of the partner, AGENT@PARTNER, *@SWARM for the agents of a swarm, or * for all.")
	write := list(100, "Who may write, and read.")
	seconds := map[string]any{"type": "integer", "minimum": 1, "maximum": 86400, "description": "Seconds until the context is gone."}
	made := map[string]any{"shared_memory": shared, "own_memory": own, "read": read, "write": write, "expires_in": seconds, "session": text(id, "Session that the context belongs to.")}
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
	return []Verb{
		{Name: "context_create", Description: "Makes a context that agents share: its id, version and memory.", parameters: made},
		{Name: "context_get", Description: "Reads a shared context: its memory, version and who may read and write it.", Reads: true, parameters: map[string]any{"context": context}, required: []string{"context"}},
		{Name: "context_update", Description: "Changes a shared context.", parameters: update, required: []string{"context"}},
		{Name: "context_fork", Description: "Makes a context that begins as a copy of another.", parameters: with("context", context), required: []string{"context"}},
		{Name: "context_merge", Description: "Makes one context of several; the later one counts where they differ.", parameters: with("sources", list(16, "Ids of the contexts, in order.")), required: []string{"sources"}},
	}
}
