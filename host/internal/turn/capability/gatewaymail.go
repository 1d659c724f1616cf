package capability

import (
	"context"
	"encoding/json"

	"skep/abi"
	"skep/host/internal/swarm"
)

// gatewayMailRecord is what the record keeps of an action that wrote mail: a re-run writes
// it again, whatever the action is then.
type gatewayMailRecord struct {
	Mail *swarm.GatewayMail `json:"mail"`
}

// mailHandler is the handler of an action that writes mail.
func (a *Action) mailHandler(ask *swarm.BreakpointCall) handler {
	m, fault := a.Mail(ask.Args)
	if fault != nil {
		return handler{effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) { return nil, fault }}
	}
	record, _ := json.Marshal(gatewayMailRecord{&m}) // texts, and JSON that was read
	return handler{record: record, direct: func(o *ops, _ context.Context, _ []byte) ([]byte, *abi.Error) { return o.sendGatewayMail(ask, m) }}
}

// sendGatewayMail writes the message; its answer is the id of the request.
func (o *ops) sendGatewayMail(ask *swarm.BreakpointCall, m swarm.GatewayMail) ([]byte, *abi.Error) {
	if o.action != nil {
		return nil, abi.Errorf(abi.CodeDenied, abi.OpAction, "action", "%s writes mail, which is for agents; an action answers whoever called it", ask.Name)
	}
	rsp, fault := o.turn.SendGatewayMail(ask.Name, ask.Args, m)
	if fault != nil {
		return nil, fault
	}
	return encode(abi.OpAction, map[string]string{"request_id": rsp.RequestID})
}

// recordedMail returns the message that a recorded call of an action has written, nil if
// it wrote none.
func recordedMail(e *swarm.Entry) *swarm.GatewayMail {
	var r gatewayMailRecord
	if e.Op != abi.OpAction || len(e.Ran) == 0 || json.Unmarshal(e.Ran, &r) != nil {
		return nil
	}
	return r.Mail
}
