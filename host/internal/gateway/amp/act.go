package amp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/verb"
	"skep/host/internal/gateway/wire"
)

// Act implements [gateway.Actor].
func (g *Gateway) Act(ctx context.Context, p gateway.Partner, call gateway.Act) (json.RawMessage, error) {
	if call.Verb == verb.AMPDiscover || call.Verb == verb.AMPNegotiate {
		return g.askForAgents(ctx, p, call)
	}
	return g.actOnContext(ctx, p, call)
}

// meshArgs are the arguments of the verbs that ask a mesh.
type meshArgs struct {
	Agent        string   `json:"agent"`
	Capabilities []string `json:"capabilities"`
	Match        string   `json:"match"`
	Latency      *float64 `json:"max_latency_ms"`
	SuccessRate  *float64 `json:"min_success_rate"`
	Tokens       *float64 `json:"estimated_tokens"`
	Deadline     string   `json:"deadline"`
}

// request is what a verb asks, and of which agent of the mesh (M-030, M-032).
func (a meshArgs) request(name string) (to message.Destination, payload map[string]any) {
	asked := map[string]any{"capabilities": a.Capabilities}
	put := func(into map[string]any, name string, value *float64) {
		if value != nil {
			into[name] = *value
		}
	}
	if name == verb.AMPNegotiate {
		put(asked, "estimated_tokens", a.Tokens)
		if a.Deadline != "" {
			asked["deadline"] = a.Deadline
		}
		return message.Destination{Agent: a.Agent}, map[string]any{"negotiation_type": capabilityCheck, "requirements": asked}
	}
	limits := map[string]any{}
	put(limits, "max_latency_ms", a.Latency)
	put(limits, "min_success_rate", a.SuccessRate)
	asked["constraints"] = limits
	if a.Match != "" {
		asked["match"] = a.Match
	}
	return message.Destination{Agent: registryAgent, Capability: discoveryCapability}, map[string]any{"query": asked}
}

// askForAgents asks the partner's mesh, and returns the result of its response.
func (g *Gateway) askForAgents(ctx context.Context, p gateway.Partner, call gateway.Act) (json.RawMessage, error) {
	var args meshArgs
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, fmt.Errorf("%w: the arguments do not have the form of the verb: %w", gateway.ErrInvalid, err)
	}
	if p.URL == "" || p.Client == nil {
		return nil, fmt.Errorf("%w: %s has no url in [gateways.amp.partners.%s]: its mesh cannot be asked", gateway.ErrPartner, p.Name, p.Name)
	}
	to, payload := args.request(call.Verb)
	m := message.Message{ID: ownID(call.Verb, p.Caller(), call.Key), Destination: to, Payload: wire.MustEncode(payload)}
	in, err := g.askMesh(ctx, p, m, call.Trace)
	var result json.RawMessage
	if err == nil {
		result, err = resultOf(in, m.ID)
	}
	g.Runtime.Record(gateway.Event{Caller: p.Caller(), Foreign: m.ID, Type: call.Verb, Out: true, Task: call.Task.Task}.WithOutcome(false, err))
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", gateway.ErrPartner, err)
	}
	return result, err
}

// resultOf returns the result of a response to a request of ours, or why there is none.
func resultOf(in *message.Received, id string) (json.RawMessage, error) {
	if in == nil {
		return nil, fmt.Errorf("the partner answers without a message")
	}
	var p struct {
		Status string            `json:"status"`
		Result json.RawMessage   `json:"result"`
		Error  message.ErrorBody `json:"error"`
	}
	switch err := json.Unmarshal(in.Payload, &p); {
	case err != nil:
		return nil, fmt.Errorf("the partner's answer cannot be read: %w", err)
	case cmp.Or(in.Headers.Correlation, id) != id:
		return nil, fmt.Errorf("the partner answers another message, %.100q", in.Headers.Correlation)
	case in.Type == message.Error:
		return nil, fmt.Errorf("[%s] %s", codeOf(string(p.Error.Code)), gateway.Excerpt(p.Error.Message))
	case in.Type != message.Response || p.Status == statusFailed || len(p.Result) == 0:
		return nil, fmt.Errorf("the partner answers with a %s that has no result: %.40q", in.Type, p.Status)
	}
	return p.Result, nil
}

var _ gateway.Actor = (*Gateway)(nil)
