package amp

import (
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// capabilityKey begins the routing key of a request that names a capability and no agent (M-095).
const capabilityKey = "capability"

// keyFor is the routing key of a message of ours.
func (q *queue) keyFor(m message.Message) (string, error) {
	switch {
	case m.Type != message.Request || m.Destination.Agent != "":
		return keyOf(m.Type, m.Destination.Agent), nil
	case q.g.Kafka != nil:
		return "", gateway.Refuse("the request names no agent, and agents at Kafka share no queue: name one")
	}
	return keyOf(capabilityKey, m.Destination.Capability), nil
}

// sharedKeys are the routing keys of requests for a capability that an agent of ours has. Hosts and
// programs that read the queue of such a key share its requests. Each host has
// mail.message, for agents that do not stand for each other: there is no queue for it.
func (q *queue) sharedKeys() (list []string) {
	known := map[string]bool{}
	for _, p := range q.g.Partners() {
		if !isQueued(p) {
			continue
		}
		for _, a := range q.g.Runtime.ExposedAgents(p.Caller()) {
			for _, c := range a.Capabilities {
				if key := keyOf(capabilityKey, c.ID); !known[key] && len(key) <= maxSharedKey {
					known[key] = true
					list = append(list, key)
				}
			}
		}
	}
	return list
}

// maxSharedKey is the longest key of a queue with its name, EXCHANGE.KEY, in bytes: an exchange has at
// most 100.
const maxSharedKey = 150
