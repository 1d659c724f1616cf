package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"skep/abi"
	"skep/host/internal/definition"
	"skep/host/internal/gateway"
)

// Act returns what does actions at partners. find returns a gateway and its catalog, nil
// for one that the host does not have.
func Act(find func(name string) (gateway.Gateway, *Catalog)) definition.GatewayAct {
	return func(ctx context.Context, call definition.GatewayCall) (json.RawMessage, *abi.Error) {
		g, c := find(call.Gateway)
		actor, acts := g.(gateway.Actor)
		if !acts {
			return nil, actFault(call, abi.CodeUnsupported, "gateway", "this host does not have the gateway")
		}
		return c.act(ctx, actor, call)
	}
}

// act does one call at a partner of the call's tenant.
func (c *Catalog) act(ctx context.Context, actor gateway.Actor, call definition.GatewayCall) (json.RawMessage, *abi.Error) {
	p, ok := c.Partner(call.Partner)
	switch {
	case !ok || p.Tenant != call.Tenant:
		return nil, actFault(call, abi.CodeNotFound, "partner", "this tenant has no such partner")
	case call.Retry && !p.RetryInDoubt && !call.Verb.Reads:
		return nil, actFault(call, abi.CodeUnavailable, "in_doubt", "the host stopped before the answer came, and retry_in_doubt is false")
	}
	result, err := actor.Act(ctx, p, gateway.Act{
		Verb: call.Verb.Name, Key: call.Key, Retry: call.Retry, Hops: call.Hops, Trace: call.Trace, Task: call.Task, Args: call.Args,
	})
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, actFault(call, abi.CodeDeadline, "timeout", "it took longer than timeout of the action")
	case errors.Is(err, context.Canceled):
		return nil, actFault(call, abi.CodeCancelled, "cancelled", "the turn was called off")
	case errors.Is(err, gateway.ErrInvalid):
		return nil, actFault(call, abi.CodeInvalid, "args", err.Error())
	}
	return nil, actFault(call, abi.CodeUpstream, "partner", strings.TrimPrefix(err.Error(), gateway.ErrPartner.Error()+": "))
}

func actFault(call definition.GatewayCall, code abi.Code, reason, text string) *abi.Error {
	return abi.Errorf(code, abi.OpAction, reason, "%s %s of partner %q: %s", call.Gateway, call.Verb.Name, call.Partner, text)
}
