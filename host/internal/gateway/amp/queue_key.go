package amp

import (
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// keyOf is the routing key of messages of a type for an agent. Each byte that a word of a key
// cannot have is %XX.
func keyOf(kind message.Type, agent string) string {
	var key strings.Builder
	key.WriteString(string(kind))
	if agent != "" {
		key.WriteByte('.')
	}
	for _, b := range []byte(agent) {
		if b <= ' ' || b >= 0x7f || strings.IndexByte(".*#%", b) >= 0 {
			fmt.Fprintf(&key, "%%%02X", b)
			continue
		}
		key.WriteByte(b)
	}
	return key.String()
}

// maxKey is the longest routing key, in bytes.
const maxKey = 255

// keys are the routing keys of messages for the host: for the agents that partners with queues
// see, for events to all, and for answers to agents of ours that have asked.
func (q *queue) keys() (list []string) {
	for _, p := range q.g.Partners() {
		if !isQueued(p) {
			continue
		}
		list = append(list, keyOf(message.Event, ""), keyOf(message.Request, registryAgent), keyOf(message.Request, contextAgent))
		for _, a := range q.g.Runtime.ExposedAgents(p.Caller()) {
			list = append(list, keyOf(message.Request, nameOf(a)), keyOf(message.Event, nameOf(a)))
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for sender := range q.senders {
		list = append(list, keyOf(message.Response, sender), keyOf(message.Error, sender))
	}
	return slices.DeleteFunc(list, func(key string) bool { return len(key) > maxKey })
}

// wants reports whether a message of a topic that all hosts read is for this one. An answer is for
// the host whose swarm its agent is of, which may not ask before it was started again; so is what is for
// an agent of that swarm that is not there, whose sender gets an error. It is asked of each record of the
// mesh: it makes no list of keys.
func (q *queue) wants(kind message.Type, agent string) bool {
	if kind == message.Response || kind == message.Error {
		return q.isOwn(agent)
	}
	at := strings.LastIndexByte(agent, '@')
	isMesh := agent == "" && kind == message.Event || kind == message.Request && slices.Contains(reserved, agent)
	if !isMesh && at < 0 {
		return false
	}
	return slices.ContainsFunc(q.g.Partners(), func(p gateway.Partner) bool {
		return isQueued(p) && (isMesh || q.isOwn(agent) || slices.ContainsFunc(q.g.Runtime.ExposedAgents(p.Caller()), func(a gateway.ExposedAgent) bool {
			return a.Name == agent[:at] && a.Swarm == agent[at+1:]
		}))
	})
}

func (q *queue) isOwn(agent string) bool { return strings.HasSuffix(agent, "@"+q.swarm) }
