package amp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// maxRelayed bounds the requests of a realm that wait for the answers of its registered agents.
const maxRelayed = 256

// relay is a request of one agent of a realm to another, which has registered. It is no task here:
// a repeat, under the same id, is asked again under the same id.
type relay struct {
	g *Gateway
	// c is the realm, in the request as it came, p the realm with the way to the agent.
	c     gateway.Caller
	p     gateway.Partner
	in    message.Received
	agent string
	hops  int
}

// relayTo returns the relay of a request that an agent of ours does not answer: to the registered
// agent that it names, or without a name to one that has declared the capability. It is nil for none.
func (g *Gateway) relayTo(ctx context.Context, c gateway.Caller, in message.Received, k call) (*relay, error) {
	p, ok := g.Runtime.Partner(c.Realm)
	if !ok || c.IsUser() || k.queued {
		return nil, nil // at a broker each agent has a queue of its own
	}
	ours := g.Runtime.ExposedAgents(c)
	var to registration
	if _, err := findAgent(ours, k.agent); k.agent != "" && err != nil {
		if to, err = g.registered.find(ctx, c, k.agent); err != nil {
			return nil, err
		}
	} else if k.agent == "" && !slices.ContainsFunc(ours, func(a gateway.ExposedAgent) bool { _, has := findCapability(a, k.capability); return has }) {
		if to, err = g.registeredFor(ctx, c, in.Source.Agent, k.capability); err != nil {
			return nil, err
		}
	}
	if to.Agent.ID == "" {
		return nil, nil
	}
	if err := g.checkRelayed(to, k); err != nil {
		return nil, err
	}
	if err := g.checkContext(ctx, c, in, k.context); err != nil {
		return nil, err
	}
	hops := gateway.ExtensionHops(in.Headers.Hints[hintHops])
	if err := g.Runtime.CheckRelay(c, gateway.Relayed{From: in.Source.Agent, To: to.Agent.ID, Hops: hops}); err != nil {
		return nil, err
	}
	return &relay{g, c, p, in, to.Agent.ID, hops}, nil
}

// registeredFor chooses among the registered agents of a realm that have declared a capability, but
// for one: a healthy one, if there is one.
func (g *Gateway) registeredFor(ctx context.Context, c gateway.Caller, source, capability string) (registration, error) {
	all, err := g.registered.list(ctx, c)
	has := slices.DeleteFunc(all, func(r registration) bool {
		return r.Agent.ID == source || !slices.ContainsFunc(r.Capabilities, func(d described) bool { return d.ID == capability })
	})
	if healthy := slices.DeleteFunc(slices.Clone(has), func(r registration) bool { return g.probes.of(realmKeyOf(c), r).status == statusUnhealthy }); len(healthy) > 0 {
		has = healthy
	}
	if err != nil || len(has) == 0 {
		return registration{}, err
	}
	return has[rand.N(len(has))], nil
}

// checkRelayed holds a request against what its recipient has declared.
func (g *Gateway) checkRelayed(to registration, k call) error {
	declared := capabilitiesOfForeign(to.Capabilities)
	i := slices.IndexFunc(declared, func(d gateway.Capability) bool { return d.ID == k.capability })
	switch {
	case i >= 0:
		if err := g.checkInput(declared[i], k.parameters); err != nil {
			return err
		}
		return g.checkConstraints(declared[i], func() input { return inputOf(k.parameters) })
	case len(declared) == 0 || k.capability == mailCapability:
		return nil
	}
	var available []string
	for _, d := range declared {
		available = append(available, d.ID)
	}
	return capabilityFaultAmong(available, k.capability)
}

// run asks the agent, and returns the answer for who has asked, or an error message.
func (r *relay) run(ctx context.Context) message.Message {
	ctx, cancel := context.WithTimeoutCause(ctx, r.timeout(), errNoAnswer)
	defer cancel()
	ctx, leave := gateway.EndWhen(ctx, r.g.stopped)
	defer leave()
	m, text, got, err := r.ask(ctx)
	r.g.Runtime.Record(gateway.Event{Caller: r.c, Foreign: m.ID, Type: string(m.Type), Out: true, Text: text}.WithOutcome(false, err))
	var fault *message.Fault
	switch {
	case err == nil:
		return r.answerOf(got)
	case errors.As(err, &fault):
	case isClosed(r.g.stopped):
		fault = r.g.faultOf(gateway.ErrDraining)
	case errors.Is(context.Cause(ctx), errNoAnswer):
		fault = message.Faultf(message.Timeout, "", "the agent %.100q did not answer in time", r.agent)
	default:
		r.g.Log.Info("amp: a registered agent cannot be asked", "partner", r.c.Realm, "agent", r.agent, "message", r.in.ID, "reason", err)
		fault = message.Faultf(message.InsufficientResources, message.ReasonUnreachable, "the agent %.100q cannot be reached: send the message again, under the same id", r.agent)
		fault.RetryAfter = retryAfter
	}
	return errorTo(r.in, fault)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// timeout is the sender's, at most the partner's.
func (r *relay) timeout() time.Duration {
	if own := r.in.Headers.Timeout; own != nil {
		return min(r.p.Timeout, time.Duration(*own*float64(time.Millisecond)))
	}
	return r.p.Timeout
}

// ask sends the request on, and waits for its answer in the reply, at its Location, or as a message of
// its own.
func (r *relay) ask(ctx context.Context) (m message.Message, text []byte, in message.Received, err error) {
	m = r.message()
	a := &attempt{g: r.g, p: r.p, caller: r.c, to: r.agent, m: m}
	a.d.Trace = swarm.ParseTrace(gateway.ExtensionText(m.Headers.Hints[hintTrace]), gateway.ExtensionText(m.Headers.Hints[hintState]))
	if err := a.findWayTo(ctx, r.agent); err != nil {
		return m, nil, in, err
	}
	if a.queued {
		return m, nil, in, fmt.Errorf("%s has neither an endpoint nor a WebSocket", r.agent)
	}
	if a.text, err = r.g.write(r.c, r.in.Token, m); err != nil {
		return m, nil, in, err
	}
	q, end, err := r.g.waiting.beginRelay(r.c, m.ID, r.agent)
	if err != nil {
		return m, a.text, in, err
	}
	defer end()
	in, err = r.await(ctx, a, q)
	return m, a.text, in, err
}

func (r *relay) await(ctx context.Context, a *attempt, q *question) (in message.Received, err error) {
	sending, cancel := gateway.EndWhen(ctx, q.arrived) // an answer by a message of its own ends the request, too
	defer cancel()
	got, err := a.send(sending)
	if err == nil && got.location != "" {
		got, err = a.poll(sending, got)
	}
	if err == nil && got.message != nil {
		return *got.message, checkRelayAnswer(a.m, *got.message)
	}
	if err == nil {
		select {
		case <-q.arrived:
		case <-got.lost:
			err = errLost
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	select {
	case <-q.arrived:
		return q.answer, nil
	default:
		return in, err
	}
}

// checkRelayAnswer refuses a reply that is no answer to a message.
func checkRelayAnswer(m message.Message, in message.Received) error {
	if of := in.Headers.Correlation; !isAnswer(in) || of != "" && of != m.ID {
		return fmt.Errorf("it replies with a %s to %.100q", in.Type, of)
	}
	return nil
}

// message is the request as it goes on: without the sender's credential, with one hop more. Its id is
// the host's, and the same for a repeat: two agents may use one id, and it must be none of a question
// of ours.
func (r *relay) message() message.Message {
	m := r.in.Message
	m.ID = ownID("relay", r.c, r.in.Source.Agent+"\x1f"+r.in.ID)
	m.Timestamp = timestamp(time.Now())
	m.Destination.Agent = r.agent
	m.Headers.Authentication, m.Headers.Signature = nil, nil
	m.Headers.Correlation = cmp.Or(m.Headers.Correlation, r.in.ID)
	m.Headers.Hints = maps.Clone(m.Headers.Hints)
	if m.Headers.Hints == nil {
		m.Headers.Hints = map[string]json.RawMessage{}
	}
	m.Headers.Hints[hintHops] = wire.MustEncode(r.hops + 1)
	return m
}

// answerOf is the answer as who has asked gets it.
func (r *relay) answerOf(in message.Received) message.Message {
	m := in.Message
	m.Timestamp = timestamp(time.Now())
	m.Source.Agent = r.agent
	m.Destination = message.Destination{Agent: r.in.Source.Agent, Capability: r.in.Destination.Capability}
	m.Headers.Authentication, m.Headers.Signature = nil, nil
	m.Headers.Correlation, m.Headers.Tracking = r.in.ID, r.in.Headers.Correlation
	return m
}

// faultIn is the fault that an answer has, nil for a response. The fault of an agent with a code of its
// own counts as one of its resources (M-078).
func faultIn(m message.Message) *message.Fault {
	if m.Type != message.Error {
		return nil
	}
	var p struct {
		Error message.ErrorBody `json:"error"`
	}
	_ = json.Unmarshal(m.Payload, &p) // any other form has no code
	f := &message.Fault{Code: p.Error.Code, Text: p.Error.Message}
	if f.Status() == 0 {
		f.Code = message.InsufficientResources
	}
	return f
}
