package uamp

import (
	"context"
	"errors"
	"math"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
)

// maxAsked is how many agents an envelope reaches that wants an answer.
const maxAsked = 16

// maxAgents is how many agents an envelope may reach. The end of a subscription is one agent's.
func maxAgents(intent envelope.Intent, kind gateway.Kind) int {
	switch {
	case intent == envelope.Subscribe:
		return 1
	case kind == gateway.Asks:
		return maxAsked
	}
	return math.MaxInt
}

// exchangesOf are the exchanges of an envelope, one for each agent that it has reached.
func (g *Gateway) exchangesOf(ctx context.Context, x gateway.Exchange, n note) ([]gateway.Exchange, error) {
	list := []gateway.Exchange{x}
	for _, agent := range n.Agents {
		if agent == x.Agent {
			continue
		}
		other, err := g.Runtime.Find(ctx, x.Caller, gateway.OtherID(x.Message(), agent))
		if errors.Is(err, gateway.ErrUnknown) {
			err = unknownStream // a part of it is gone
		}
		if err != nil {
			return nil, err
		}
		list = append(list, other)
	}
	return list, nil
}

// look is the answer to an envelope, as [gateway.Runtime] has it: of several agents the answer
// of one that has done its work, or of the last one, when all have answered.
func (g *Gateway) look(ctx context.Context, x gateway.Exchange, n note) (a gateway.Answer, ok bool, err error) {
	each, err := g.exchangesOf(ctx, x, n)
	if err != nil {
		return a, false, err
	}
	for _, one := range each {
		of, ok, err := g.Runtime.Look(ctx, one)
		if err != nil || !ok || !isFinal(of) {
			return of, ok, err
		}
		if a.Outcome != gateway.Done {
			a = of
		}
	}
	return a, true, nil
}

// cancelEach withdraws an envelope from each agent that has not answered it.
func (g *Gateway) cancelEach(ctx context.Context, c gateway.Caller, x gateway.Exchange, n note) error {
	each, err := g.exchangesOf(ctx, x, n)
	if err != nil {
		return err
	}
	for _, one := range each {
		err := g.Runtime.Cancel(ctx, c, one.ID, "")
		if err != nil && !(len(each) > 1 && errors.Is(err, gateway.ErrConflict)) {
			return err
		}
	}
	return nil
}

// addSender adds the DID of the agent to the payload of a delta, if several are asked (U-069).
func (d *deltas) addSender(agent string, payload map[string]any) map[string]any {
	if agent != "" {
		payload["from"], _ = d.g.didOf(address{d.x.Task.Swarm, agent}) // it was asked by its DID
	}
	return payload
}

// endOne shows the end of one of several agents: a delta of progress with what its own stream
// would end with. The last delta of all names each agent and how it has ended. It is no done
// where no agent has answered.
func (d *deltas) endOne(ctx context.Context, agent string, a gateway.Answer, show func(envelope.Delta) error) (last bool, err error) {
	kind, payload, err := d.ending(ctx, agent, a, show)
	if err != nil {
		return false, err
	}
	d.answered = d.answered || kind == envelope.DeltaDone
	d.ended = append(d.ended, d.addSender(agent, map[string]any{"type": kind}))
	told := d.addSender(agent, map[string]any{"pct": 100 * len(d.ended) / d.agents, string(kind): payload})
	if err := d.show(envelope.DeltaProgress, a.At, told, show); err != nil || len(d.ended) < d.agents {
		return false, err
	}
	if d.answered {
		done := map[string]any{"answer": d.ended, "type": "application/json"}
		d.addSum(done)
		kind, payload = envelope.DeltaDone, done
	}
	return true, d.show(kind, a.At, payload, show)
}

// progress is the payload of progress.
func (d *deltas) progress(p gateway.Piece) map[string]any {
	told := map[string]any{}
	if p.Text != "" {
		told["text"] = p.Text
	}
	if p.Fraction != nil {
		told["pct"] = *p.Fraction * 100
	}
	return d.addSender(p.Agent, told)
}
