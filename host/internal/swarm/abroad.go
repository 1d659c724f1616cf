package swarm

import (
	"context"
	"encoding/json"
	"slices"

	"skep/abi"
	"skep/spec/mail"
)

// audience is who gets a message: local agents by name, and those of other
// swarms.
type audience struct {
	local []string
	away  []party
}

// party is the agents of one other swarm, by their whole addresses.
type party struct {
	swarm string
	names []string
}

// size counts the messages that it takes.
func (a audience) size() int { return len(a.local) + len(a.away) }

// first is the whole address of one who gets it.
func (a audience) first() string {
	if len(a.local) > 0 {
		return a.local[0]
	}
	return a.away[0].names[0]
}

func (a *audience) add(name, swarm string) {
	if swarm == "" {
		if !slices.Contains(a.local, name) {
			a.local = append(a.local, name)
		}
		return
	}
	address := mail.FormatAddr(name, swarm)
	i := slices.IndexFunc(a.away, func(p party) bool { return p.swarm == swarm })
	if i < 0 {
		a.away = append(a.away, party{swarm, []string{address}})
	} else if !slices.Contains(a.away[i].names, address) {
		a.away[i].names = append(a.away[i].names, address)
	}
}

// mayLeave says why a message for an agent of another swarm cannot be taken. That
// the agent exists is known there only.
func (t *Turn) mayLeave(e *effect, name, swarm string) *abi.Error {
	if t.again != nil {
		return nil
	}
	target := mail.FormatAddr(name, swarm)
	err := t.rt.forward.Check(context.Background(), t.task.key.InstanceKey, swarm)
	switch {
	case name == mail.ReservedAll:
		return t.complain(e, abi.CodeInvalid, "target",
			"error sending message: %q is no agent; name those of another swarm one by one", target)
	case err != nil:
		return t.complain(e, abi.CodeUnavailable, "router", "cannot send to %q: %v", target, err)
	case !t.agent.Interswarm:
		return t.complain(e, abi.CodeDenied, "interswarm",
			"agent %q may not write to other swarms; set [agents.%s] enable_interswarm = true", t.agent.Name, t.agent.Name)
	}
	return nil
}

// letter makes one message for agents of another swarm (contract 6.3).
func (t *Turn) letter(kind mail.Type, payloadID string, to party, subject, body string) Letter {
	var recipients []mail.Address
	for _, name := range to.names {
		recipients = append(recipients, mail.Address{Type: mail.Agent, Name: name})
	}
	m := t.compose(kind, payloadID, recipients, subject, body)
	m.Payload.RecipientSwarms = []string{to.swarm}
	m.Payload.RoutingInfo = routing("remote_swarm", to.swarm)
	return Letter{ID: m.ID, Peer: to.swarm, Message: m, Trace: t.row.Trace}
}

// routing is a routing_info of names and values.
func routing(pairs ...string) json.RawMessage {
	info := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		info[pairs[i]] = pairs[i+1]
	}
	raw, _ := json.Marshal(info) // strings always encode
	return raw
}
