package swarm

import (
	"context"
	"encoding/json"
	"fmt"

	"skep/abi"
	"skep/spec/mail"
)

// GatewayMail is a message to an agent of a gateway's partner that an action writes. The
// grant of the action stands in the place of comm_targets.
type GatewayMail struct {
	Type    string `json:"type"` // request, interrupt or broadcast
	Agent   string `json:"agent"`
	Partner string `json:"partner"`
	Subject string `json:"subject,omitempty"`
	Body    string `json:"body,omitempty"`
	// Info is a JSON object for the gateway: routing_info.gateway of the message.
	Info json.RawMessage `json:"info,omitempty"`
}

// SendGatewayMail stages a message that a call of an action writes.
func (t *Turn) SendGatewayMail(action string, args json.RawMessage, m GatewayMail) (abi.MailResponse, *abi.Error) {
	e := stagedCall{at: t.clock.advanceToHost(), call: abi.Call{
		ID: fmt.Sprintf("t%d.%d", t.row.N, t.stagedN+t.excess+1), Name: action, Args: args,
	}}
	switch {
	case t.endedBy != "":
		return t.refuseExcess(e, abi.Errorf(abi.CodeConflict, abi.OpAction, "turn_over", "%s ended the mail calls of this turn", t.endedBy))
	case t.stagedN >= maxStaged:
		return t.refuseExcess(e, abi.Errorf(abi.CodeLimit, abi.OpAction, "staged", "a turn may make %d mail calls", maxStaged))
	}
	if t.replay != nil && t.replay.Err != nil && t.replay.Err.Reason != reasonStagedBytes {
		return t.recordCall(e, "", t.replay.Err)
	}
	fault := t.stageGatewayMail(&e, m)
	return t.recordCall(e, "message sent", fault)
}

// stageGatewayMail checks a message and puts it into the call.
func (t *Turn) stageGatewayMail(e *stagedCall, m GatewayMail) *abi.Error {
	to := mail.FormatAddr(m.Agent, m.Partner)
	_, _, err := mail.ParseAddr(to)
	switch {
	case err != nil || m.Agent == mail.ReservedAll:
		return abi.Errorf(abi.CodeInvalid, abi.OpAction, "agent", "the recipient %.200q is no agent", to)
	case mail.Reserved(m.Subject):
		return abi.Errorf(abi.CodeInvalid, abi.OpAction, "subject", "subjects that begin with '::' are the system's")
	case len(m.Subject) > MaxSubject:
		return abi.Errorf(abi.CodeLimit, abi.OpAction, "subject", "subject has %d bytes, at most %d", len(m.Subject), MaxSubject)
	}
	if fault := checkSize(m.Body); fault != nil {
		return fault
	}
	if t.replay == nil {
		if err := t.rt.forward.Check(context.Background(), t.task.key.InstanceKey, m.Partner); err != nil {
			return abi.Errorf(abi.CodeUnavailable, abi.OpAction, "router", "cannot send to %q: %v", to, err)
		}
		if fault := t.checkQuota(abi.OpMail, 1); fault != nil {
			return fault
		}
	}
	kind, id := mail.Type(m.Type), t.newID()
	if kind != mail.Broadcast {
		e.asked = id
	}
	msg := t.newOutboxMessage(kind, id, remoteGroup{m.Partner, []string{to}}, m.Subject, m.Body)
	if len(m.Info) > 0 {
		info, err := json.Marshal(map[string]any{"remote_swarm": m.Partner, "gateway": m.Info})
		if err != nil {
			return abi.Errorf(abi.CodeInvalid, abi.OpAction, "args", "the message's info is no JSON")
		}
		msg.Message.Payload.RoutingInfo = info
	}
	if open, ok := msg.openRequest(); ok {
		e.opens = append(e.opens, open)
	}
	e.outbox = append(e.outbox, msg)
	return nil
}
