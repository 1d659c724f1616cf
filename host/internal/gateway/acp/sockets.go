package acp

import (
	"slices"
	"sync"

	"github.com/coder/websocket"

	"skep/host/internal/gateway"
)

// sockets are the open WebSockets.
type sockets struct {
	// each bounds one realm's sockets.
	each int

	mu      sync.Mutex
	byRealm map[realmKey][]*socket // oldest first
	count   int
	closed  bool
}

type realmKey struct{ tenant, realm string }

func realmOf(c gateway.Caller) realmKey { return realmKey{c.Principal.Tenant, c.Realm} }

func newSockets(each int) *sockets {
	return &sockets{each: each, byRealm: map[realmKey][]*socket{}}
}

// add registers a socket, unless its realm has as many as it may have, or the host stops:
// then it returns how the socket is closed.
func (all *sockets) add(s *socket) (refused *websocket.CloseError) {
	all.mu.Lock()
	defer all.mu.Unlock()
	key := realmOf(s.caller)
	switch {
	case all.closed:
		return &websocket.CloseError{Code: websocket.StatusGoingAway, Reason: stopping}
	case len(all.byRealm[key]) >= all.each:
		return &websocket.CloseError{Code: websocket.StatusTryAgainLater, Reason: "too many connections: raise sessions of [gateways.acp]"}
	}
	all.byRealm[key] = append(all.byRealm[key], s)
	all.count++
	return nil
}

// stopping is why sockets end with the host.
const stopping = "the host stops"

func (all *sockets) remove(s *socket) {
	all.mu.Lock()
	defer all.mu.Unlock()
	key := realmOf(s.caller)
	list := slices.DeleteFunc(all.byRealm[key], func(other *socket) bool { return other == s })
	if all.byRealm[key] = list; len(list) == 0 {
		delete(all.byRealm, key)
	}
	all.count--
}

// find returns the newest socket of a realm on which an agent has spoken, or else the
// newest of the realm; nil for none.
func (all *sockets) find(c gateway.Caller, agent string) (found *socket) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.byRealm[realmOf(c)] {
		if _, speaks := s.agents[agent]; speaks || found == nil || !found.hasAgent(agent) {
			found = s
		}
	}
	return found
}

// hasAgent is called with sockets.mu held.
func (s *socket) hasAgent(agent string) bool {
	_, has := s.agents[agent]
	return has
}

// maxSocketAgents bounds the agents that are remembered of one socket.
const maxSocketAgents = 256

// speaks remembers that an agent has spoken on a socket.
func (all *sockets) speaks(s *socket, agent string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(s.agents) < maxSocketAgents {
		s.agents[agent] = struct{}{}
	}
}

func (all *sockets) len() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.count
}

// close ends all sockets, and refuses further ones.
func (all *sockets) close() {
	var closing sync.WaitGroup
	defer closing.Wait()
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closed = true
	for _, list := range all.byRealm {
		for _, s := range list {
			closing.Go(func() {
				_ = s.conn.Close(websocket.StatusGoingAway, stopping) // Read ends with it
			})
		}
	}
}
