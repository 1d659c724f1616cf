package amp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/spec/mail"
)

// requestPayload is the payload of a request, of any of its kinds.
type requestPayload struct {
	Capability  string          `json:"capability"`
	Parameters  json.RawMessage `json:"parameters"`
	Context     json.RawMessage `json:"context"`
	Query       json.RawMessage `json:"query"`
	Negotiation string          `json:"negotiation_type"`
	// Requirements are a capability_check's, Supported the versions of protocol_version.
	Requirements *requirements `json:"requirements"`
	Supported    []string      `json:"supported"`
	Delegation   *delegation   `json:"delegation"`
	// Agent is the one that a heartbeat or a deregistration is about.
	Agent identity `json:"agent"`
}

// delegation is a subtask (M-034).
type delegation struct {
	Parent  string  `json:"parent_task_id"`
	Subtask subtask `json:"subtask"`
}

type subtask struct {
	Capability string          `json:"capability"`
	Parameters json.RawMessage `json:"parameters"`
	Callback   string          `json:"completion_callback"`
}

func readPayload(raw json.RawMessage, into any) error {
	return readMember("message.payload", raw, into)
}

// readMember reads a member of a message, which name leads to.
func readMember(name string, raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "%s%s", name, message.TypeFault(err))
	}
	return nil
}

// accept handles a message by its type. queued is set for one whose answer leaves by the broker.
func (g *Gateway) accept(ctx context.Context, c gateway.Caller, in message.Received, text []byte, queued bool) (reply, error) {
	if in.Type != message.Request && in.Type != message.Event {
		return g.answered(ctx, c, in)
	}
	if err := g.checkRegistered(ctx, c, in); err != nil {
		return reply{}, err
	}
	if in.Type == message.Event {
		return g.event(ctx, c, in, text)
	}
	return g.request(ctx, c, in, text, queued)
}

// request answers a request itself, or brings it to an agent.
func (g *Gateway) request(ctx context.Context, c gateway.Caller, in message.Received, text []byte, queued bool) (reply, error) {
	var p requestPayload
	if err := readPayload(in.Payload, &p); err != nil {
		return reply{}, err
	}
	to := in.Destination
	switch {
	case isContext(to):
		return g.control(c, func() (responsePayload, error) { return g.manageContext(ctx, c, in) })
	case to.Agent == registryAgent:
		return g.control(c, func() (responsePayload, error) { return g.registry(ctx, c, in, p) })
	case p.Negotiation != "":
		return g.control(c, func() (responsePayload, error) { return g.negotiate(c, to, p) })
	case p.Delegation != nil:
		return g.delegate(ctx, c, in, text, *p.Delegation, queued)
	}
	if to.Capability != "" && p.Capability != "" && to.Capability != p.Capability {
		return reply{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "destination.capability is %.100q and payload.capability %.100q", to.Capability, p.Capability)
	}
	k := call{agent: to.Agent, capability: cmp.Or(p.Capability, to.Capability), parameters: p.Parameters, context: p.Context, queued: queued}
	if err := k.check(); err != nil {
		return reply{}, err
	}
	if r, err := g.relayTo(ctx, c, in, k); r != nil || err != nil {
		return reply{relay: r}, err
	}
	return g.invoke(ctx, c, in, text, k)
}

// control answers a request that reaches no agent. It counts in the caller's rate.
func (g *Gateway) control(c gateway.Caller, do func() (responsePayload, error)) (reply, error) {
	if err := g.Runtime.CheckRate(c); err != nil {
		return reply{}, err
	}
	p, err := do()
	return reply{payload: &p}, err
}

// call is a capability that is asked for.
type call struct {
	agent, capability   string
	parameters, context json.RawMessage
	// parent and callback are a delegation's.
	parent, callback string
	// queued is set where the answer leaves by the broker.
	queued bool
}

// check refuses a call without a capability, or with parameters that are no object. Missing ones are
// empty.
func (k *call) check() error {
	if k.capability == "" {
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.capability is missing")
	}
	if len(k.parameters) == 0 || string(k.parameters) == "null" {
		k.parameters = json.RawMessage("{}")
	}
	if !bytes.HasPrefix(bytes.TrimSpace(k.parameters), []byte("{")) {
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.parameters must be an object")
	}
	return nil
}

// delegate brings a subtask to an agent, in the conversation of its parent. With a callback
// the answer goes there, and the reply says that the subtask was taken (M-034, M-035).
func (g *Gateway) delegate(ctx context.Context, c gateway.Caller, in message.Received, text []byte, d delegation, queued bool) (reply, error) {
	k := call{agent: in.Destination.Agent, capability: d.Subtask.Capability, parameters: d.Subtask.Parameters, parent: d.Parent, callback: d.Subtask.Callback}
	k.queued = queued && k.callback == ""
	if len(d.Parent) > message.MaxID || !mail.Printable(d.Parent) {
		return reply{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.delegation.parent_task_id must have at most %d printable bytes", message.MaxID)
	}
	if k.callback == "" {
		return g.invoke(ctx, c, in, text, k)
	}
	if err := g.checkCallback(c, k.callback); err != nil {
		return reply{}, err
	}
	got, err := g.invoke(ctx, c, in, text, k)
	got.accepted = true
	return got, err
}

// invoke brings a capability request to an agent.
func (g *Gateway) invoke(ctx context.Context, c gateway.Caller, in message.Received, text []byte, k call) (reply, error) {
	if err := k.check(); err != nil {
		return reply{}, err
	}
	read := sync.OnceValue(func() input { return inputOf(k.parameters) })
	t, err := g.targetOf(c, k.agent, k.capability, read)
	if err != nil {
		return reply{}, err
	}
	if err := g.checkInput(t.capability, k.parameters); err != nil {
		return reply{}, err
	}
	if err := g.checkConstraints(t.capability, read); err != nil {
		return reply{}, err
	}
	if err := g.checkContext(ctx, c, in, k.context); err != nil {
		return reply{}, err
	}
	a, err := askOf(in, text, t, k)
	if err != nil {
		return reply{}, err
	}
	if a.From == c.Realm {
		a.From = "" // the realm itself, which needs no ids
	}
	x, err := g.Runtime.Ask(ctx, c, a)
	if err == nil {
		g.measures.begin(c, t, x)
	}
	return reply{exchange: x, owed: true}, err
}
