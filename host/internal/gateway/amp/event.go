package amp

import (
	"context"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
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
	agents := g.Runtime.ExposedAgents(c)
	if p.Type == contextUpdate {
		updated, err := g.updateByEvent(ctx, c, in, a.Digest, func(updated sharedContext) error {
			_, err := eventRecipients(c, in, readersAmong(agents, updated))
			return err
		})
		if err != nil {
			return reply{}, err
		}
		if agents = readersAmong(agents, updated); len(agents) == 0 {
			return reply{}, nil
		}
	}
	agents, err = eventRecipients(c, in, agents)
	if err == nil && len(agents) == 0 {
		err = message.Faultf(message.AgentNotFound, "", "there is no such agent")
	}
	if err != nil {
		return reply{}, err
	}
	return g.tell(ctx, c, a, agents)
}

// eventRecipients returns the agents that an event is for. It refuses an event that its sender may
// not tell them.
func eventRecipients(c gateway.Caller, in message.Received, agents []gateway.ExposedAgent) ([]gateway.ExposedAgent, error) {
	if in.Destination.Agent != "" {
		a, err := findAgent(agents, in.Destination.Agent)
		if err != nil {
			return nil, err
		}
		agents = []gateway.ExposedAgent{a}
	}
	switch {
	case len(agents) > 1:
		return agents, checkRight(c, gateway.MayBroadcast)
	case len(agents) == 1:
		return agents, checkRight(c, gateway.MayTell)
	}
	return nil, nil
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
