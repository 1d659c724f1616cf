package amp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// event brings an event to the agent that it names, or to all (M-038), and one about a context to
// its readers among them (M-037). Nothing is owed for it.
func (g *Gateway) event(ctx context.Context, c gateway.Caller, in message.Received, text []byte) (reply, error) {
	var p struct {
		Type string `json:"event_type"`
	}
	if err := readPayload(in.Payload, &p); err != nil {
		return reply{}, err
	}
	if p.Type == "" {
		return reply{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.event_type is missing")
	}
	a, err := tellOf(c, in, p.Type, text)
	if err != nil {
		return reply{}, err
	}
	to := recipients{ours: g.Runtime.ExposedAgents(c)}
	if to.others, err = g.otherAgents(ctx, c, in.Source.Agent); err != nil {
		return reply{}, err
	}
	if p.Type == contextUpdate {
		updated, err := g.updateByEvent(ctx, c, in, a.Digest, func(updated sharedContext) error {
			_, err := to.readersOf(c, updated).of(c, in)
			return err
		})
		if err != nil {
			return reply{}, err
		}
		if to = to.readersOf(c, updated); to.count() == 0 {
			return reply{}, nil
		}
	}
	if to, err = to.of(c, in); err == nil && to.count() == 0 {
		err = message.Faultf(message.AgentNotFound, "", "there is no such agent")
	}
	if err == nil {
		err = g.notifyOthers(ctx, c, in, to.others)
	}
	if err != nil {
		return reply{}, err
	}
	return g.tell(ctx, c, a, to.ours)
}

// notifyOthers sends an event on to registered agents of its sender's realm.
func (g *Gateway) notifyOthers(ctx context.Context, c gateway.Caller, in message.Received, agents []string) error {
	if len(agents) == 0 {
		return nil
	}
	p, err := g.partnerOf(c, "an event to registered agents")
	if err != nil {
		return err
	}
	if err := g.Runtime.CheckRate(c); err != nil {
		return err
	}
	hops := gateway.ExtensionHops(in.Headers.Hints[hintHops])
	if hops >= swarm.MaxHops {
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "the event has passed %d swarms, as many as it may", hops)
	}
	m := in.Message
	m.Headers.Hints = maps.Clone(m.Headers.Hints)
	if m.Headers.Hints == nil {
		m.Headers.Hints = map[string]json.RawMessage{}
	}
	m.Headers.Hints[hintHops] = wire.MustEncode(hops + 1)
	return g.notify(ctx, p, in.Token, m, agents)
}

// recipients are whom an event is for: agents of ours, and the ids of registered ones.
type recipients struct {
	ours   []gateway.ExposedAgent
	others []string
}

func (r recipients) count() int { return len(r.ours) + len(r.others) }

// readersOf returns the agents that may read a context.
func (r recipients) readersOf(c gateway.Caller, of sharedContext) recipients {
	others := slices.DeleteFunc(slices.Clone(r.others), func(id string) bool { return !of.canRead(id + "@" + c.Realm) })
	return recipients{readersAmong(r.ours, of), others}
}

// of returns those that an event is for. It refuses an event that its sender may not tell them.
func (r recipients) of(c gateway.Caller, in message.Received) (recipients, error) {
	if id := in.Destination.Agent; slices.Contains(r.others, id) {
		r = recipients{others: []string{id}}
	} else if id != "" {
		a, err := findAgent(r.ours, id)
		if err != nil {
			return recipients{}, err
		}
		r = recipients{ours: []gateway.ExposedAgent{a}}
	}
	switch r.count() {
	case 0:
		return r, nil
	case 1:
		return r, checkRight(c, gateway.MayTell)
	}
	return r, checkRight(c, gateway.MayBroadcast)
}

// tell brings an event to agents, swarm by swarm. Each swarm takes a repeat once.
func (g *Gateway) tell(ctx context.Context, c gateway.Caller, a gateway.Ask, agents []gateway.ExposedAgent) (reply, error) {
	var swarms []string
	to := map[string][]string{}
	for _, agent := range agents {
		if to[agent.Swarm] == nil {
			swarms = append(swarms, agent.Swarm)
		}
		to[agent.Swarm] = append(to[agent.Swarm], agent.Name)
	}
	var r reply
	for _, name := range swarms {
		a.Swarm, a.To = name, to[name]
		var err error
		if r.exchange, err = g.Runtime.Ask(ctx, c, a); err != nil {
			return r, err
		}
	}
	return r, nil
}

// tellOf returns an event as the runtime takes it, without its recipients.
func tellOf(c gateway.Caller, in message.Received, kind string, text []byte) (a gateway.Ask, err error) {
	a = gateway.Ask{
		Kind: gateway.Tells, ID: in.ID, From: in.Source.Agent, Conversation: conversationOf(in, nil), Raw: text,
		Subject: "event: " + gateway.Excerpt(kind), Body: compact(in.Payload), Info: infoOf(in), Hops: gateway.ExtensionHops(in.Headers.Hints[hintHops]),
		Trace: swarm.ParseTrace(gateway.ExtensionText(in.Headers.Hints[hintTrace]), gateway.ExtensionText(in.Headers.Hints[hintState])),
	}
	a.Info["event_type"] = kind
	if kind == mailCapability {
		setMail(&a, in.Payload)
	}
	if len(a.Body) > gateway.MaxText {
		a.Parts, a.Body = []gateway.Part{{Name: "payload", Type: "application/json", Data: []byte(a.Body)}}, ""
	}
	if a.From == c.Realm {
		a.From = ""
	}
	a.Digest, err = in.Digest(hopHints...)
	return a, err
}
