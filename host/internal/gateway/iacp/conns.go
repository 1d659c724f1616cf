package iacp

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"skep/host/internal/gateway"
)

// conns are the connections whose peers are known.
type conns struct {
	// each bounds those of one realm.
	each int

	mu      sync.Mutex
	byRealm map[realmKey][]*conn // oldest first
	count   int
	closed  bool
}

type realmKey struct{ tenant, realm string }

func realmOf(c gateway.Caller) realmKey { return realmKey{c.Principal.Tenant, c.Realm} }

func newConns(each int) *conns { return &conns{each: each, byRealm: map[realmKey][]*conn{}} }

// add registers a connection, unless its realm has as many as it may have, or the host
// stops.
func (all *conns) add(c *conn) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	key := realmOf(c.caller)
	switch {
	case all.closed:
		return fmt.Errorf("the host stops: %w", gateway.ErrDraining)
	case len(all.byRealm[key]) >= all.each:
		return fmt.Errorf("%d connections of %s are open; raise sessions of [gateways.iacp]: %w", all.each, key.realm, gateway.ErrBusy)
	}
	all.byRealm[key] = append(all.byRealm[key], c)
	all.count++
	return nil
}

func (all *conns) remove(c *conn) {
	all.mu.Lock()
	defer all.mu.Unlock()
	key := realmOf(c.caller)
	all.byRealm[key] = slices.DeleteFunc(all.byRealm[key], func(other *conn) bool { return other == c })
	if len(all.byRealm[key]) == 0 {
		delete(all.byRealm, key)
	}
	all.count--
}

// find returns the newest connection of a realm on which an agent has spoken, or else the
// newest of the realm; nil for none.
func (all *conns) find(c gateway.Caller, agent string) (found *conn) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, one := range all.byRealm[realmOf(c)] {
		if one.ctx.Err() == nil && (found == nil || one.agents[agent] || !found.agents[agent]) {
			found = one
		}
	}
	return found
}

// maxAgents bounds the agents that are remembered of one connection.
const maxAgents = 256

// speaks remembers that an agent has spoken on a connection.
func (all *conns) speaks(c *conn, agent string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(c.agents) < maxAgents {
		c.agents[agent] = true
	}
}

// leaves forgets that an agent has spoken on a connection.
func (all *conns) leaves(c *conn, agent string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(c.agents, agent)
}

// agents lists those that have spoken on the connections of a realm.
func (all *conns) agents(c gateway.Caller) (names []string, connected bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	list := all.byRealm[realmOf(c)]
	names = []string{}
	for _, one := range list {
		names = slices.AppendSeq(names, maps.Keys(one.agents))
	}
	slices.Sort(names)
	return slices.Compact(names), len(list) > 0
}

func (all *conns) len() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.count
}

// close lets all connections end, and refuses further ones.
func (all *conns) close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closed = true
	for _, list := range all.byRealm {
		for _, c := range list {
			go c.leave(stopping)
		}
	}
}

// stopping is why connections end with the host.
const stopping = "the host stops"
