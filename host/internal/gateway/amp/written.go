package amp

import (
	"encoding/json"
	"maps"

	"skep/host/internal/gateway/verb"
	"skep/host/internal/gateway/wire"
	"skep/spec/mail"
)

// written is what an action has written, as routing_info.gateway of its message has it.
type written struct {
	Verb       string                     `json:"type"`
	Capability string                     `json:"capability"`
	Parameters json.RawMessage            `json:"parameters"`
	EventType  string                     `json:"event_type"`
	Data       map[string]json.RawMessage `json:"data"`
}

// writtenOf returns what an action has written. Mail of an agent has none: it may have a
// routing_info of an earlier message.
func writtenOf(w mail.Interswarm) written {
	var info struct {
		Gateway written `json:"gateway"`
	}
	if json.Unmarshal(w.Payload.RoutingInfo, &info) != nil {
		return written{} // another form is no action's
	}
	kinds := map[string]mail.Type{verb.AMPDelegate: mail.Request, verb.AMPDelegateToAny: mail.Request, verb.AMPEvent: mail.Broadcast, verb.AMPEventToAll: mail.Broadcast}
	if kind, known := kinds[info.Gateway.Verb]; !known || kind != w.Type {
		return written{}
	}
	return info.Gateway
}

// toAll reports whether the message is for all agents of the partner (M-038).
func (w written) toAll() bool { return w.Verb == verb.AMPEventToAll }

// delegates reports whether the message hands on a subtask (M-034).
func (w written) delegates() bool {
	return w.Verb == verb.AMPDelegate || w.Verb == verb.AMPDelegateToAny
}

// namesAgent reports whether the message is for the agent of its address alone.
func (w written) namesAgent() bool { return !w.toAll() && w.Verb != verb.AMPDelegateToAny }

// event is the payload of an event: the action's, or else the text of a mail.
func (w written) event(subject, body string) any {
	if w.Verb == "" {
		return map[string]any{"event_type": mailCapability, "subject": subject, "body": body}
	}
	payload := map[string]json.RawMessage{}
	maps.Copy(payload, w.Data)
	payload["event_type"] = wire.MustEncode(w.EventType)
	return payload
}
