package amp

import (
	"context"
	"encoding/json"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/swarm"
)

// event brings an event to the agent that it names, or to all of a swarm (M-038). Nothing
// is owed for it.
func (g *Gateway) event(ctx context.Context, c gateway.Caller, in message.Received, text []byte) (reply, error) {
	var p struct {
		Type string          `json:"event_type"`
		Data json.RawMessage `json:"data"`
	}
	if err := readPayload(in.Payload, &p); err != nil {
		return reply{}, err
	}
	if p.Type == "" {
		return reply{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.event_type is missing")
	}
	agents := g.Runtime.ExposedAgents(c)
	if p.Type == contextUpdate {
		updated, err := g.updateByEvent(ctx, c, in)
		if err != nil {
			return reply{}, err
		}
		agents = readersAmong(agents, updated)
		if len(agents) == 0 && in.Destination.Agent == "" {
			return reply{}, nil
		}
	}
	if in.Destination.Agent != "" {
		a, err := findAgent(agents, in.Destination.Agent)
		if err != nil {
			return reply{}, err
		}
		agents = []gateway.ExposedAgent{a}
	}
	if len(agents) == 0 {
		return reply{}, message.Faultf(message.AgentNotFound, "", "there is no such agent")
	}
	a := gateway.Ask{
		Kind: gateway.Tells, ID: in.ID, From: in.Source.Agent, Swarm: agents[0].Swarm, Conversation: conversationOf(in, nil), Raw: text,
		Subject: "event: " + gateway.Excerpt(p.Type), Body: compact(in.Payload), Info: infoOf(in), Hops: gateway.ExtensionHops(in.Headers.Hints[hintHops]),
		Trace: swarm.ParseTrace(gateway.ExtensionText(in.Headers.Hints[hintTrace]), gateway.ExtensionText(in.Headers.Hints[hintState])),
	}
	for _, agent := range agents {
		if agent.Swarm == a.Swarm {
			a.To = append(a.To, agent.Name)
		}
	}
	a.Info["event_type"] = p.Type
	if p.Type == mailCapability {
		setMail(&a, in.Payload)
	}
	if len(a.Body) > gateway.MaxText {
		a.Parts, a.Body = []gateway.Part{{Name: "payload", Type: "application/json", Data: []byte(a.Body)}}, ""
	}
	if a.From == c.Realm {
		a.From = ""
	}
	var err error
	if a.Digest, err = in.Digest(hopHints...); err != nil {
		return reply{}, err
	}
	x, err := g.Runtime.Ask(ctx, c, a)
	return reply{exchange: x}, err
}
