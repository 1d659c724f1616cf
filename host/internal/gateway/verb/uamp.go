package verb

// The verbs that write envelopes of UAMP. Their names are the intents, and the types in
// routing_info.gateway.
const (
	UAMPPropose = "propose"
	UAMPNotify  = "notify"
)

// uamp are the verbs of UAMP: what mail cannot say.
func uamp() []Verb {
	message := map[string]any{
		"agent":   text(512, "Name of the partner's agent, as in an address NAME@PARTNER."),
		"message": text(256<<10, "The content. An object or array in JSON is sent as JSON."),
		"subject": text(1024, "What it is about."),
	}
	return []Verb{
		{
			Name: UAMPPropose, Description: "Offers an agent of the partner a contract or a plan, and goes on: the result is a request_id, and the agreement or the refusal, [DENIED], comes as mail.", Mail: "request",
			parameters: message, required: []string{"agent", "message"},
		},
		{
			Name: UAMPNotify, Description: "Pushes an event to an agent of the partner, without an answer.", Mail: "broadcast",
			parameters: message, required: []string{"agent", "message"},
		},
	}
}
