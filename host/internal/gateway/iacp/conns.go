package iacp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"skep/host/internal/gateway"
)

// conns are the connections whose peers are known.
type conns struct {
	// each bounds the connections of one realm, held the bytes of its large frames, of the small ones in
	// its queues, and of its large answers.
	each int
	held int64

	mu      sync.Mutex
	byRealm map[realmKey][]*conn // oldest first
	// bytes are what the agents of each realm have registered.
	bytes map[realmKey]int
	// rooms are what is held for each realm.
	rooms  map[realmKey]*room
	count  int
	closed bool
}

type realmKey struct{ tenant, realm string }

// room is the room of a realm, in bytes: of large frames and of small ones in queues until their messages
// are taken, and of answers until they are acknowledged.
type room struct{ frames, queued, answers *semaphore.Weighted }

func realmOf(c gateway.Caller) realmKey { return realmKey{c.Principal.Tenant, c.Realm} }

func newConns(each int, held int64) *conns {
	return &conns{each: each, held: held, byRealm: map[realmKey][]*conn{}, bytes: map[realmKey]int{}, rooms: map[realmKey]*room{}}
}

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
	if all.rooms[key] == nil {
		all.rooms[key] = &room{semaphore.NewWeighted(all.held), semaphore.NewWeighted(all.held), semaphore.NewWeighted(all.held)}
	}
	c.room = all.rooms[key]
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
		delete(all.rooms, key)
	}
	for _, a := range c.agents {
		_ = all.reserve(key, -a.bytes()) // to give room back is not refused
	}
	all.count--
}

// find returns the newest connection of a realm on which an agent has spoken, or else the
// newest of the realm; nil for none.
func (all *conns) find(c gateway.Caller, agent string) (found *conn) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, one := range all.byRealm[realmOf(c)] {
		if one.ctx.Err() == nil && (found == nil || one.has(agent) || !found.has(agent)) {
			found = one
		}
	}
	return found
}

// maxAgents bounds the agents that are remembered of one connection.
const maxAgents = 256

// has reports whether an agent has spoken on the connection. conns.mu is held.
func (c *conn) has(agent string) bool { return c.agents[agent] != nil }

// speaks remembers that an agent has spoken on a connection. It returns true for one that had not
// spoken there.
func (all *conns) speaks(c *conn, agent string) (begins bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if c.agents[agent] != nil || len(c.agents) >= maxAgents {
		return false
	}
	c.agents[agent] = &spoken{}
	return true
}

// setLoad notes how much of what it can do a registered agent does (D-I13).
func (all *conns) setLoad(c *conn, agent string, load float64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if a := c.agents[agent]; a != nil && a.registered != nil {
		info := *a.registered
		info.Load = &load
		a.registered = &info
	}
}

// spoken is an agent that has spoken on a connection.
type spoken struct {
	// registered is what the agent has registered, nil without a registration.
	registered *agentInfo
	// events are the types of events that it wants, nil for all (D-I12).
	events []string
}

// speaker returns the newest connection of a realm on which an agent has spoken, nil for
// none. A hub is asked for any agent of its realm.
func (all *conns) speaker(c gateway.Caller, agent string, hub bool) *conn {
	found := all.find(c, agent)
	all.mu.Lock()
	defer all.mu.Unlock()
	if found != nil && (hub || found.has(agent)) {
		return found
	}
	return nil
}

// registered lists the agents that have registered at the connections of some realms of a
// tenant, by their names.
func (all *conns) registered(tenant string, wanted func(realm string) bool) (list []agentInfo) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for key, open := range all.byRealm {
		if key.tenant != tenant || !wanted(key.realm) {
			continue
		}
		for _, one := range slices.Backward(open) {
			for id, a := range one.agents {
				if a.registered != nil && !slices.ContainsFunc(list, func(b agentInfo) bool { return b.ID == id }) {
					info := *a.registered
					info.events = a.events
					list = append(list, info)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b agentInfo) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// leaves forgets that an agent has spoken on a connection.
func (all *conns) leaves(c *conn, agent string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if a := c.agents[agent]; a != nil {
		_ = all.reserve(realmOf(c.caller), -a.bytes())
	}
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
