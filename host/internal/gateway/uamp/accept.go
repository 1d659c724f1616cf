package uamp

import (
	"context"
	"errors"
	"slices"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/lifecycle"
)

// accept does what an envelope wants.
func (g *Gateway) accept(ctx context.Context, c gateway.Caller, s envelope.Signed) (x received, err error) {
	m, own, err := g.findOwn(ctx, c, s.Envelope)
	switch {
	case err != nil:
		return x, err
	case own:
		return g.acceptAbout(ctx, c, s, m)
	}
	if s.Intent == envelope.Notify {
		if x, found, err := g.tellNotify(ctx, c, s); found || err != nil {
			return x, err
		}
	}
	switch s.Intent {
	case envelope.Ask, envelope.Propose, envelope.Subscribe:
		return g.ask(ctx, c, s)
	case envelope.Inform, envelope.Notify:
		return g.deliver(ctx, c, s, gateway.Tells)
	case envelope.Cancel:
		x.Exchange, err = g.cancel(ctx, c, s.Envelope)
		return x, err
	case envelope.Progress:
		// A response has one window: the request for the next acknowledges it (U-065).
		x.Exchange, err = g.cited(ctx, c, s.Envelope)
		return x, err
	}
	return x, envelope.Faultf(envelope.UnknownRecipient, "reply_to names no envelope that waits for an answer")
}

// ask brings an envelope with an answer to its agent. The answer comes on a stream.
func (g *Gateway) ask(ctx context.Context, c gateway.Caller, s envelope.Signed) (x received, err error) {
	end, err := g.reserveStream(ctx, c, s.Envelope)
	if err != nil {
		return x, err
	}
	defer end()
	ttl, err := g.checkSubscribe(ctx, s.Envelope)
	if err != nil {
		return x, err
	}
	if _, _, err := g.recipients(c, s.Envelope); err != nil { // before the record of one that reaches no agent
		return x, err
	}
	if err := g.reserveSubscriber(ctx, c, s.ID, ttl); err != nil {
		return x, err
	}
	if x, err = g.deliver(ctx, c, s, gateway.Asks); err != nil {
		if ttl > 0 {
			err = errors.Join(err, g.releaseSubscriber(ctx, c, s.ID))
		}
		return x, err
	}
	x.stream = streamOf(s.Envelope)
	if err := g.keepSubscriber(ctx, c, s.ID, x.Exchange, ttl); err != nil {
		return x, err
	}
	return x, g.keepStream(ctx, c, x.Exchange, s.Envelope)
}

// deliver brings an envelope to the agents that it names. Those that there are not are told
// to its sender (D-U19).
func (g *Gateway) deliver(ctx context.Context, c gateway.Caller, s envelope.Signed, kind gateway.Kind) (x received, err error) {
	agents, missing, err := g.recipients(c, s.Envelope)
	if err != nil {
		return x, err
	}
	if most := maxAgents(s.Intent, kind); len(agents) > most {
		return x, envelope.Faultf(envelope.Unsupported, "%s reaches at most %d of this host's agents, and to has %d: send several envelopes", s.Intent, most, len(agents))
	}
	conversation, err := g.conversation(ctx, c, s.Envelope)
	if err != nil {
		return x, err
	}
	reply := kind == gateway.Asks && g.calls(ctx, c, s.From)
	release, err := g.large.Acquire(ctx, len(s.Received()))
	if err != nil {
		return x, err
	}
	defer release()
	var names []string
	for _, agent := range agents {
		names = append(names, agent.Name)
	}
	a, err := g.askOf(s, names)
	if err != nil {
		return x, err
	}
	a.Kind, a.Swarm, a.Conversation, a.Reply = kind, agents[0].Swarm, conversation, reply
	x.missing = missing
	x.Exchange, err = g.Runtime.Ask(ctx, c, a)
	return x, err
}

// calls reports whether the host sends envelopes to an agent of a realm: answers are sent,
// besides the stream that has them. Without a url its document has its address, which is
// fetched for no answer alone.
func (g *Gateway) calls(ctx context.Context, c gateway.Caller, agent string) bool {
	p, ok := g.Runtime.Partner(c.Realm)
	if !ok || p.Client == nil || p.URL != "" {
		return ok && p.Client != nil
	}
	if pinned, _ := p.Options[optionKeys].([]string); len(pinned) > 0 {
		return false
	}
	_, _, err := g.findService(ctx, p, agent)
	return err == nil
}

// recipients are the exposed agents here that an envelope names; the host's own DID is its
// entrypoint's. An agent that the caller may not see is as unknown as any (U-105).
func (g *Gateway) recipients(c gateway.Caller, e envelope.Envelope) (list []gateway.ExposedAgent, missing []string, err error) {
	exposed := g.Runtime.ExposedAgents(c)
	for _, id := range e.Recipients() {
		to, here := g.addressOf(id)
		if !here {
			continue // another host has a copy of its own
		}
		i := slices.IndexFunc(exposed, func(a gateway.ExposedAgent) bool {
			return to == address{a.Swarm, a.Name} || to == address{} && a.Entrypoint
		})
		if i < 0 {
			missing = append(missing, id)
			continue
		}
		if !slices.ContainsFunc(list, func(a gateway.ExposedAgent) bool { return a.Swarm == exposed[i].Swarm && a.Name == exposed[i].Name }) {
			list = append(list, exposed[i])
		}
	}
	switch {
	case len(list) == 0 && len(missing) > 0:
		return nil, missing, g.noRecipient(missing[0])
	case len(list) == 0:
		return nil, missing, envelope.Faultf(envelope.UnknownRecipient, "there is no such recipient: none in to is of this host, %s", g.host)
	}
	if slices.ContainsFunc(list, func(a gateway.ExposedAgent) bool { return a.Swarm != list[0].Swarm }) {
		return nil, missing, envelope.Faultf(envelope.Unsupported, "to has agents of several swarms: send each an envelope")
	}
	return list, missing, nil
}

// noRecipient is the same for all recipients that there are not for a caller.
func (g *Gateway) noRecipient(id string) error {
	return envelope.Faultf(envelope.UnknownRecipient, "there is no such recipient: %.200q; agents here are %s:%s:SWARM:AGENT", id, g.host, agentsPart)
}

// conversation is the conversation that an envelope goes on with: what ext names, or that of
// an envelope that it cites. Empty begins a new one.
func (g *Gateway) conversation(ctx context.Context, c gateway.Caller, e envelope.Envelope) (string, error) {
	if name := gateway.ExtensionText(e.Ext[extConversation]); name != "" {
		return name, nil
	}
	cited := []envelope.ID{}
	if e.ReplyTo != "" {
		cited = append(cited, e.ReplyTo)
	}
	for _, r := range slices.Backward(e.Context) {
		cited = append(cited, r.ID)
	}
	for _, id := range cited {
		x, err := g.Runtime.Find(ctx, c, string(id))
		if err == nil {
			return x.Conversation, checkHash(e, id, x)
		}
		if !errors.Is(err, gateway.ErrUnknown) {
			return "", err
		}
	}
	return "", nil
}

// checkHash refuses another hash of a known envelope (D-U16).
func checkHash(e envelope.Envelope, id envelope.ID, x gateway.Exchange) error {
	n, err := readNote(x)
	if err != nil {
		return err
	}
	for _, r := range e.Context {
		if r.ID == id && r.Hash != n.Hash {
			return envelope.Faultf(envelope.IllegalState, "context has another hash of %s than it has here", id)
		}
	}
	return nil
}

// cancel withdraws an envelope that its sender has sent before (U-085, U-092).
func (g *Gateway) cancel(ctx context.Context, c gateway.Caller, e envelope.Envelope) (gateway.Exchange, error) {
	x, err := g.cited(ctx, c, e)
	if err != nil {
		return x, err
	}
	n, err := readNote(x)
	if err != nil {
		return x, err
	}
	now, err := g.stateOf(ctx, x, n)
	if err != nil {
		return x, err
	}
	next, err := now.Next(envelope.Cancel, n.From == e.From)
	if err != nil || next == now.State {
		return x, err
	}
	return x, g.cancelEach(ctx, c, x, n)
}

// cited is the exchange that an envelope names by reply_to or its stream.
func (g *Gateway) cited(ctx context.Context, c gateway.Caller, e envelope.Envelope) (x gateway.Exchange, err error) {
	switch {
	case e.ReplyTo != "":
		x, err = g.Runtime.Find(ctx, c, string(e.ReplyTo))
	case e.Stream != "":
		x, err = g.findStream(ctx, c, e.Stream)
	default:
		err = envelope.Faultf(envelope.Malformed, "%s needs reply_to or stream_id", e.Intent)
	}
	x.Duplicate = false // the exchange was there before, and the envelope that names it is new
	return x, err
}

// outcomes are the states of what was answered.
var outcomes = map[gateway.Outcome]lifecycle.State{
	gateway.Done: lifecycle.Completed, gateway.Failed: lifecycle.Failed, gateway.TimedOut: lifecycle.Failed, gateway.Cancelled: lifecycle.Cancelled,
}

// stateOf is the state of an exchange (U-088).
func (g *Gateway) stateOf(ctx context.Context, x gateway.Exchange, n note) (lifecycle.Exchange, error) {
	now := lifecycle.Exchange{Intent: n.Intent, State: lifecycle.InProgress}
	a, ok, err := g.look(ctx, x, n)
	if state, over := outcomes[a.Outcome]; err == nil && ok && over {
		now.State = state
	}
	return now, err
}
