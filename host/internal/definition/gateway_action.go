package definition

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway/verb"
	"skep/host/internal/schema"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
)

// GatewayAct does a verb at a partner of a gateway. It is safe for concurrent use.
type GatewayAct func(ctx context.Context, c GatewayCall) (json.RawMessage, *abi.Error)

// GatewayCall is one call of an action with a source "gateway:GATEWAY/VERB".
type GatewayCall struct {
	capability.HostCall
	Gateway, Partner string
	Verb             verb.Verb
}

// partnerFaults lists the gateway actions whose parameters cannot be checked.
func partnerFaults(cfg *config.Config) (faults config.Faults) {
	for _, a := range cfg.Actions {
		if a.Source.Kind != config.SourceGateway {
			continue
		}
		if _, err := schema.CompileParams(a.Name, gatewayTool(a).Parameters); err != nil {
			faults = append(faults, cfg.Fault(fmt.Sprintf("the parameters of action %q cannot be checked: %v", a.Name, err), "actions", a.Name, "parameters"))
		}
	}
	return faults
}

// gatewayTool is the tool that callers of a gateway action see.
func gatewayTool(a config.Action) abi.Tool {
	v, _ := verb.Find(a.Verb())
	tool := abi.Tool{Name: a.Name, Description: a.Description, Parameters: parametersOf(a, abi.ActionDescriptor{Parameters: v.Parameters(a.Partners)}), Effect: effectOf(a, "")}
	if tool.Description == "" {
		tool.Description = v.Description
	}
	return tool
}

// bindGatewayAction makes an action that is done at partners.
func bindGatewayAction(a config.Action, act GatewayAct) *capability.Action {
	bound := &capability.Action{Name: a.Name, Timeout: a.Timeout, Check: checkOf(a.Name, gatewayTool(a).Parameters)}
	bound.Allow.RetryInDoubt = a.Allow.RetryInDoubt
	gateway, name := a.Verb()
	v, known := verb.Find(gateway, name)
	if known && v.Mail != "" && len(a.Partners) > 0 {
		bound.Mail = func(args json.RawMessage) (swarm.GatewayMail, *abi.Error) { return gatewayMail(a, v, args) }
		return bound
	}
	bound.Host = func(ctx context.Context, c capability.HostCall) (json.RawMessage, *abi.Error) {
		if act == nil || !known || len(a.Partners) == 0 {
			return nil, abi.Errorf(abi.CodeUnsupported, abi.OpAction, "source", "the operator's file does not have the action %q any more", a.Name)
		}
		partner, fault := partnerOf(a, c.Args)
		if fault != nil {
			return nil, fault
		}
		return act(ctx, GatewayCall{HostCall: c, Gateway: gateway, Partner: partner, Verb: v})
	}
	return bound
}

// gatewayMail is the message of an action that writes mail. Arguments that no message has
// a place for are the gateway's.
func gatewayMail(a config.Action, v verb.Verb, args json.RawMessage) (swarm.GatewayMail, *abi.Error) {
	partner, fault := partnerOf(a, args)
	if fault != nil {
		return swarm.GatewayMail{}, fault
	}
	var place struct{ Agent, Subject, Message string }
	info := map[string]any{}
	if json.Unmarshal(args, &place) != nil || json.Unmarshal(args, &info) != nil {
		return swarm.GatewayMail{}, abi.Errorf(abi.CodeInvalid, abi.OpAction, "args", "the arguments of action %q must be an object with texts", a.Name)
	}
	for _, name := range []string{"agent", "subject", "message", "partner"} {
		delete(info, name)
	}
	info["protocol"], _ = a.Verb()
	info["type"] = v.Name
	raw, _ := json.Marshal(info) // it was read as JSON
	return swarm.GatewayMail{
		Type: v.Mail, Agent: cmp.Or(place.Agent, "agent"), Partner: partner, Subject: place.Subject, Body: place.Message, Info: raw,
	}, nil
}

// partnerOf is the partner that a call names, or the only one.
func partnerOf(a config.Action, args json.RawMessage) (string, *abi.Error) {
	var named struct {
		Partner string `json:"partner"`
	}
	_ = json.Unmarshal(args, &named) // what is no object names nobody
	switch {
	case named.Partner == "" && len(a.Partners) == 1:
		return a.Partners[0], nil
	case !slices.Contains(a.Partners, named.Partner):
		return "", abi.Errorf(abi.CodeDenied, abi.OpAction, "partners", "the action %q does not reach partner %.64q; [actions.%s] partners names those it reaches", a.Name, named.Partner, a.Name)
	}
	return named.Partner, nil
}
