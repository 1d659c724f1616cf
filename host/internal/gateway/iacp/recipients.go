package iacp

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// recipients are whom a message is for.
type recipients struct {
	// names are exposed agents of a swarm, members foreign agents.
	swarm   string
	names   []string
	members []member
	// unwanted is set where an agent is left out that does not want the event.
	unwanted bool
}

type member struct {
	of   gateway.Caller
	id   string
	load float64 // 0 where it is not known
}

// recipients returns the exposed agents and the members that a message is for: the ones that
// it names, of a group all, or for a question the least loaded, or all of a swarm and of the
// realm but for the sender (I-021, I-022).
func (g *Gateway) recipients(c gateway.Caller, m message.Message) (to recipients, err error) {
	several := m.Recipient.Broadcast || len(m.Recipient.IDs) > 0
	switch {
	case several && m.Owed():
		return to, refusedf(codeInvalid, "a message to several agents gets no response: set requires_response to false")
	case m.To() != "":
		to.add(g, c, m.To())
	case len(m.Recipient.IDs) > 0:
		for _, id := range m.Recipient.IDs {
			if !to.add(g, c, id) {
				return to, g.unknownAgent(c, id)
			}
		}
	default:
		to = g.group(c, m)
	}
	switch {
	case len(to.names)+len(to.members) == 0 && m.To() != "":
		return to, g.unknownAgent(c, m.To())
	case len(to.names)+len(to.members) == 0 && !to.unwanted: // one may come
		return to, &fault{code: codeUnknown, text: noMember(m.Recipient), retry: true}
	case len(to.members) > 0 && len(to.names)+len(to.members) > 1 && !c.May.Has(gateway.MayBroadcast):
		return to, refusedf(codeDenied, "a message to %d agents needs the right %q", len(to.names)+len(to.members), gateway.MayBroadcast)
	}
	return to, nil
}

// noMember is why a message to a group, or to all, reaches no agent now.
func noMember(to *message.Recipient) string {
	if g := to.Group; g != nil {
		return fmt.Sprintf("no agent is in the group now: capabilities %.200q, agent_types %.200q", g.Capabilities, g.Types)
	}
	return "there is no agent now that the message could reach"
}

// unknownAgent refuses a message for an agent that there is not for its sender: a repeat finds
// none either (I-071). The message went to no other of its recipients.
func (g *Gateway) unknownAgent(c gateway.Caller, id string) error {
	var members []string
	for _, a := range g.members(c) {
		members = append(members, a.ID)
	}
	if name, noSwarm := strings.CutSuffix(id, "@"); noSwarm {
		return &fault{code: codeUnknown, text: fmt.Sprintf("there is no agent %q: after the @ comes the name of a swarm; an agent alone is %q", id, name)}
	}
	return &fault{
		code: codeUnknown, text: fmt.Sprintf("there is no agent %q: the message went to none", id) + gateway.SuggestAgent(id, g.Runtime.ExposedAgents(c), members...),
	}
}

// add adds the agent of an id: an exposed one as NAME or NAME@SWARM, or else a member.
func (to *recipients) add(g *Gateway, c gateway.Caller, id string) bool {
	name, at, hasSwarm := strings.Cut(id, "@")
	for _, a := range g.Runtime.ExposedAgents(c) {
		if a.Name == name && (!hasSwarm || a.Swarm == at) && (to.swarm == "" || to.swarm == a.Swarm) {
			to.swarm, to.names = a.Swarm, append(to.names, a.Name)
			return true
		}
	}
	of, is := g.relays.member(c, id)
	if is {
		to.members = append(to.members, member{of: of, id: id})
	}
	return is
}

// group returns who is of a group, or all. One who is asked is the least loaded.
func (g *Gateway) group(c gateway.Caller, m message.Message) (to recipients) {
	for _, a := range g.Runtime.ExposedAgents(c) {
		if isMember(infoOfAgent(a), m.Recipient) && (to.swarm == "" || to.swarm == a.Swarm) {
			to.swarm, to.names = a.Swarm, append(to.names, a.Name)
		}
	}
	if m.Owed() && len(to.names) > 0 {
		fails := func(name string) bool {
			return g.breakers.isOpen(breakerKey{realmOf(c), to.swarm, name}, time.Now())
		}
		if working := slices.DeleteFunc(slices.Clone(to.names), fails); len(working) > 0 {
			to.names = working
		}
		to.names = []string{g.loads.least(c, to.swarm, to.names)}
		return to
	}
	for _, a := range g.members(c) {
		if of, is := g.relays.member(c, a.ID); is && of.Realm == c.Realm && a.ID != m.Sender.ID && isMember(a, m.Recipient) {
			if !a.wants(m) {
				to.unwanted = true
				continue
			}
			one := member{of: of, id: a.ID}
			if a.Load != nil {
				one.load = *a.Load
			}
			to.members = append(to.members, one)
		}
	}
	if m.Owed() && len(to.members) > 0 {
		to.members = []member{leastLoaded(to.members, m.ID)}
	}
	return to
}

// leastLoaded returns the member with the least load that it has told of, and of several the
// one that the message's id chooses: a repeat goes to the same one.
func leastLoaded(list []member, id string) member {
	rank := func(m member) uint64 {
		sum := sha256.Sum256([]byte(id + "\x00" + m.id))
		return binary.BigEndian.Uint64(sum[:])
	}
	return slices.MinFunc(list, func(a, b member) int { return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(rank(a), rank(b))) })
}

// members lists the registered agents that a caller may reach, but for those of a hub that it
// is itself.
func (g *Gateway) members(c gateway.Caller) []agentInfo {
	if !c.May.Has(gateway.MayRelay) {
		return nil
	}
	own, _ := g.Runtime.Partner(c.Realm)
	list := g.conns.registered(c.Principal.Tenant, func(realm string) bool {
		p, is := g.Runtime.Partner(realm)
		return is && p.May.Has(gateway.MayRelay) && (realm == c.Realm || isHub(p) || isHub(own))
	})
	for i := range list {
		list[i].member = true
	}
	return list
}

// isMember reports whether an agent is of a group, or of all (I-021, I-022).
func isMember(a agentInfo, to *message.Recipient) bool {
	group := to.Group
	if group == nil {
		return to.Broadcast
	}
	var has []bool
	for _, capability := range group.Capabilities {
		has = append(has, slices.Contains(a.Capabilities, capability) || slices.Contains(a.tags, capability))
	}
	for _, kind := range group.Types {
		has = append(has, a.Type == kind)
	}
	return slices.Contains(has, true) && (group.Match == "any" || !slices.Contains(has, false))
}

// loads are the questions of callers that our agents have not answered (D-I13).
type loads struct {
	mu   sync.Mutex
	open map[loadKey]int
	// given counts the questions to groups: agents with one load take turns (V-I40).
	given map[loadKey]int
}

type loadKey struct{ tenant, swarm, agent string }

func newLoads() *loads { return &loads{open: map[loadKey]int{}, given: map[loadKey]int{}} }

func (l *loads) begin(x gateway.Exchange) (end func()) {
	key := loadKey{x.Task.Tenant, x.Task.Swarm, x.Agent}
	l.add(key, 1)
	return func() { l.add(key, -1) }
}

func (l *loads) add(key loadKey, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[key] += n; l.open[key] == 0 {
		delete(l.open, key)
	}
}

// of is how many questions an agent has not answered.
func (l *loads) of(tenant, swarm, agent string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[loadKey{tenant, swarm, agent}]
}

// least returns the agent with the fewest questions, and of several the one that was given the
// fewest.
func (l *loads) least(c gateway.Caller, swarm string, names []string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := func(name string) loadKey { return loadKey{c.Principal.Tenant, swarm, name} }
	best := slices.MinFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(l.open[key(a)], l.open[key(b)]), cmp.Compare(l.given[key(a)], l.given[key(b)]))
	})
	l.given[key(best)]++
	return best
}
