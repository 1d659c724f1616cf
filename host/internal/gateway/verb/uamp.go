package verb

// The verbs that write envelopes of UAMP. Their names are the intents, and the types in
// routing_info.gateway.
const (
	UAMPPropose     = "propose"
	UAMPNotify      = "notify"
	UAMPSubscribe   = "subscribe"
	UAMPUnsubscribe = "unsubscribe"
)

// MaxTTL bounds the time of a subscription, in seconds.
const MaxTTL = 7 * 24 * 60 * 60

// uamp are the verbs of UAMP: what mail cannot say.
func uamp() []Verb {
	message := map[string]any{
		"agent":   text(512, "Name of the partner's agent, as in an address NAME@PARTNER."),
		"message": text(256<<10, "The content. An object or array in JSON is sent as JSON."),
		"subject": text(1024, "What it is about."),
	}
	topic := text(512, "What the events are about.")
	return []Verb{
		{
			Name: UAMPSubscribe, Description: "Subscribes to events of an agent of the partner, and goes on: the result is a request_id, each event comes as mail without an answer, and a last message when the subscription is over.", Mail: "request",
			parameters: map[string]any{
				"agent": message["agent"], "topic": topic,
				"filter": map[string]any{"description": "Which of the events are wanted, as the partner's agent understands it."},
				"ttl":    map[string]any{"type": "integer", "minimum": 1, "maximum": MaxTTL, "description": "How long, in seconds; without it an hour."},
			},
			required: []string{"agent", "topic"},
		},
		{
			Name: UAMPUnsubscribe, Description: "Ends the subscriptions of the task to a topic of an agent of the partner, without a topic all to that agent.", Mail: "broadcast",
			parameters: map[string]any{"agent": message["agent"], "topic": topic}, required: []string{"agent"},
		},
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
