package verb

// ACPQuery is the verb that writes a QUERY. Its name is the type in routing_info.gateway.
const ACPQuery = "query"

// acp are the verbs of ACP: what mail cannot say.
func acp() []Verb {
	return []Verb{{
		Name: ACPQuery, Description: "Asks an agent of the partner for information, and goes on: the result is a request_id, and the answer comes as mail.", Mail: "request",
		parameters: map[string]any{
			"agent":   text(512, "Name of the partner's agent, as in an address NAME@PARTNER."),
			"message": text(256<<10, "The question."),
			"subject": text(1024, "What it is about."),
		},
		required: []string{"agent", "message"},
	}}
}
