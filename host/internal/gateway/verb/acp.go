package verb

// The verbs that write messages of ACP. Their names are the types in routing_info.gateway.
const (
	ACPQuery       = "query"
	ACPAcknowledge = "acknowledge"
	ACPError       = "error"
)

// acp are the verbs of ACP: what mail cannot say.
func acp() []Verb {
	agent := text(512, "Name of the partner's agent, as in an address NAME@PARTNER.")
	about := text(256, "Id of the agent's message, its message_id in routing_info.gateway.")
	return []Verb{
		{
			Name: ACPQuery, Description: "Asks an agent of the partner for information, and goes on: the result is a request_id, and the answer comes as mail.", Mail: "request",
			parameters: map[string]any{
				"agent":   agent,
				"message": text(256<<10, "The question."),
				"subject": text(1024, "What it is about."),
			},
			required: []string{"agent", "message"},
		},
		{
			Name: ACPAcknowledge, Description: "Confirms to an agent of the partner that its message has come. It is no answer.", Mail: "broadcast",
			parameters: map[string]any{"agent": agent, "reply_to": about, "message": text(64<<10, "What is said with it.")},
			required:   []string{"agent", "reply_to"},
		},
		{
			Name: ACPError, Description: "Reports an error to an agent of the partner. It does not take the place of an answer.", Mail: "broadcast",
			parameters: map[string]any{
				"agent":    agent,
				"code":     map[string]any{"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$", "description": "What kind of error it is, as out_of_stock."},
				"message":  text(64<<10, "What went wrong."),
				"reply_to": about,
			},
			required: []string{"agent", "code", "message"},
		},
	}
}
