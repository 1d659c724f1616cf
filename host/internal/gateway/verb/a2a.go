package verb

// a2a are the verbs of Agent2Agent.
func a2a() []Verb {
	const id, long = 1024, 256 << 10
	task := text(id, "Id of the partner's task, from an earlier answer.")
	message := map[string]any{
		"message": text(long, "What the partner's agent is told. An object or array in JSON is sent as data."),
		"task":    text(id, "Id of the partner's task that waits for this input."),
		"context": text(id, "Id of the conversation to continue, from an earlier answer."),
	}
	return []Verb{
		{
			Name: "send", Description: "Sends a message to the partner's agent and waits for its answer: the state of the partner's task, its text, and the ids to go on with. In state input_required call it again with task and the input.",
			parameters: message, required: []string{"message"},
		},
		{
			Name: "tell", Description: "Sends a message to the partner's agent and does not wait: the ids of the partner's task and its state.",
			parameters: message, required: []string{"message"},
		},
		{
			Name: "status", Description: "Looks at a task of the partner: its state, and its text so far.", Reads: true,
			parameters: map[string]any{"task": task}, required: []string{"task"},
		},
		{
			Name: "cancel", Description: "Calls off a task of the partner: the state in which the task is then.",
			parameters: map[string]any{"task": task}, required: []string{"task"},
		},
		{
			Name: "ask", Description: "Writes a message to the partner's agent and goes on: the result is a request_id, and the answer comes as mail, with blobs for what is no text.", Mail: "request",
			parameters: map[string]any{
				"message": message["message"], "subject": text(1024, "What it is about."),
				"agent":    map[string]any{"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$", "description": "A name for the partner's agent: messages under one name are one conversation."},
				"metadata": map[string]any{"type": "object", "maxProperties": 64, "description": "Metadata of the message, for the partner."},
			},
			required: []string{"message"},
		},
		{Name: "card", Description: "Describes the partner's agent: its name, what it does, its version and its skills.", Reads: true},
	}
}
