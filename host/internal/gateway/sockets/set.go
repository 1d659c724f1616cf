package sockets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/coder/websocket"

	"skep/host/internal/gateway"
)

// maxAgents bounds the agents that are remembered of one socket.
const maxAgents = 256

// stopping is why sockets end with the host.
const stopping = "the host stops"

// Set are the open WebSockets of one gateway, each a value of S. It is safe for concurrent use.
type Set[S comparable] struct {
	gatewayName string
	// maxPerRealm bounds one realm's sockets.
	maxPerRealm int

	mu      sync.Mutex
	byRealm map[realmKey][]*entry[S] // oldest first
	count   int
	closed  bool
}

type realmKey struct{ tenant, realm string }

func realmOf(c gateway.Caller) realmKey { return realmKey{c.Principal.Tenant, c.Realm} }

// Conn is the connection of a socket. A [websocket.Conn] is one.
type Conn interface {
	// Ping returns when the other side has answered, where the connection has a word for that.
	Ping(ctx context.Context) error
	Close(code websocket.StatusCode, reason string) error
}

// entry is a socket with its connection, and the agents that have spoken on it.
type entry[S comparable] struct {
	socket S
	conn   Conn
	agents map[string]struct{}
}

func (e *entry[S]) hasAgent(agent string) bool {
	_, has := e.agents[agent]
	return has
}

// New returns a set in which each realm may have so many sockets.
func New[S comparable](gatewayName string, maxPerRealm int) *Set[S] {
	return &Set[S]{gatewayName: gatewayName, maxPerRealm: maxPerRealm, byRealm: map[realmKey][]*entry[S]{}}
}

// Add registers a socket, unless its realm has as many as it may have, or the host stops:
// then it returns how the socket is closed.
func (all *Set[S]) Add(c gateway.Caller, s S, conn Conn) (refused *websocket.CloseError) {
	all.mu.Lock()
	defer all.mu.Unlock()
	key := realmOf(c)
	switch {
	case all.closed:
		return &websocket.CloseError{Code: websocket.StatusGoingAway, Reason: stopping}
	case len(all.byRealm[key]) >= all.maxPerRealm:
		return &websocket.CloseError{Code: websocket.StatusTryAgainLater, Reason: "too many connections: raise sessions of [gateways." + all.gatewayName + "]"}
	}
	all.byRealm[key] = append(all.byRealm[key], &entry[S]{s, conn, map[string]struct{}{}})
	all.count++
	return nil
}

// Remove removes a socket that was added.
func (all *Set[S]) Remove(c gateway.Caller, s S) {
	all.mu.Lock()
	defer all.mu.Unlock()
	key := realmOf(c)
	list := slices.DeleteFunc(all.byRealm[key], func(e *entry[S]) bool { return e.socket == s })
	if all.byRealm[key] = list; len(list) == 0 {
		delete(all.byRealm, key)
	}
	all.count--
}

// Find returns the newest socket of a realm on which an agent has spoken, or else the newest
// of the realm; the zero value for none. speaks reports whether the agent has spoken on it.
func (all *Set[S]) Find(c gateway.Caller, agent string) (found S, speaks bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, e := range all.byRealm[realmOf(c)] {
		if has := e.hasAgent(agent); has || !speaks {
			found, speaks = e.socket, has
		}
	}
	return found, speaks
}

// AddAgent remembers that an agent has spoken on a socket.
func (all *Set[S]) AddAgent(c gateway.Caller, s S, agent string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, e := range all.byRealm[realmOf(c)] {
		if e.socket == s && len(e.agents) < maxAgents {
			e.agents[agent] = struct{}{}
		}
	}
}

// Probe waits until each socket of a realm answers a ping. It returns the agents that have
// spoken there.
func (all *Set[S]) Probe(ctx context.Context, c gateway.Caller) (agents []string, open bool, err error) {
	all.mu.Lock()
	list, names := slices.Clone(all.byRealm[realmOf(c)]), map[string]struct{}{}
	for _, e := range list {
		maps.Copy(names, e.agents)
	}
	all.mu.Unlock()
	for _, e := range list {
		if err := e.conn.Ping(ctx); err != nil {
			return nil, false, fmt.Errorf("one of its connections does not answer: %w", err)
		}
	}
	return slices.Sorted(maps.Keys(names)), len(list) > 0, nil
}

// Len is the number of open sockets.
func (all *Set[S]) Len() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.count
}

// Close ends all sockets, and refuses further ones.
func (all *Set[S]) Close() {
	var closing sync.WaitGroup
	defer closing.Wait()
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closed = true
	for _, list := range all.byRealm {
		for _, e := range list {
			closing.Go(func() {
				_ = e.conn.Close(websocket.StatusGoingAway, stopping) // Read ends with it
			})
		}
	}
}
