package iacp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// Limits of the types of events that an agent of a peer names.
const (
	maxEventTypes = 100
	maxEventType  = 256 // bytes
)

// subscribe changes which events reach a registered agent of the peer through a group or a
// broadcast: all before its first event_subscribe, none after an event_unsubscribe without types
// (I-025, D-I12).
func (c *conn) subscribe(caller gateway.Caller, m message.Message) {
	types, err := eventTypesOf(m)
	if err == nil {
		err = c.g.checkSender(caller, m.Sender.ID)
	}
	if err == nil {
		err = c.g.conns.changeEvents(c, m.Sender.ID, m.Type, types)
	}
	c.g.record(caller, m, m.Payload, gateway.Exchange{}, err)
	if err != nil {
		c.refuse(m, err)
		return
	}
	c.acknowledge(m)
}

// eventTypesOf returns the types that a message names: whole ones, and beginnings with a * behind.
func eventTypesOf(m message.Message) ([]string, error) {
	var p struct {
		Types []string `json:"event_types"`
	}
	wrong := func(t string) bool { return t == "" || len(t) > maxEventType }
	if json.Unmarshal(m.Payload, &p) != nil || m.Type == message.EventSubscribe && len(p.Types) == 0 || slices.ContainsFunc(p.Types, wrong) {
		return nil, &fault{
			code: codeInvalid, text: fmt.Sprintf("event_types must be a list of types, each of 1 to %d bytes", maxEventType), expected: `event_types as in ["build.done", "deploy.*"]`,
		}
	}
	return p.Types, nil
}

// changeEvents adds types to what a registered agent wants, or takes them away.
func (all *conns) changeEvents(c *conn, agent string, change message.Type, types []string) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	a := c.agents[agent]
	if a == nil || a.registered == nil {
		return refusedf(codeInvalid, "the agent is not registered on this connection: send agent_register first")
	}
	wanted := slices.Clone(a.events)
	switch {
	case change == message.EventSubscribe:
		wanted = append(wanted, types...)
	case len(types) == 0:
		wanted = []string{}
	case wanted == nil:
		return refusedf(codeInvalid, "the agent has not subscribed and gets all events: send event_unsubscribe without event_types for none")
	default:
		wanted = slices.DeleteFunc(wanted, func(t string) bool { return slices.Contains(types, t) })
	}
	slices.Sort(wanted)
	if wanted = slices.Compact(wanted); len(wanted) > maxEventTypes {
		return refusedf(codeInvalid, "an agent subscribes to at most %d types of events", maxEventTypes)
	}
	if err := all.reserve(realmOf(c.caller), textBytes(wanted...)-textBytes(a.events...)); err != nil {
		return err
	}
	a.events = wanted
	return nil
}

// wants reports whether a message that names no agent is for one, as its subscription has it.
func (a agentInfo) wants(m message.Message) bool {
	var p struct {
		Type string `json:"event_type"`
	}
	if m.Type != message.EventNotification || a.events == nil {
		return true
	}
	_ = json.Unmarshal(m.Payload, &p) // without a type it is of none
	return slices.ContainsFunc(a.events, func(t string) bool {
		begin, open := strings.CutSuffix(t, "*")
		return t == p.Type || open && strings.HasPrefix(p.Type, begin)
	})
}
