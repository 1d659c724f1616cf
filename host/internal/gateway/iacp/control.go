package iacp

import (
	"encoding/json"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// control does what is about the connection itself.
func (c *conn) control(caller gateway.Caller, m message.Message) bool {
	switch m.Type {
	case message.Heartbeat:
		var alive struct{ Load *float64 }
		if json.Unmarshal(m.Payload, &alive) == nil && alive.Load != nil && c.g.checkSender(caller, m.Sender.ID) == nil {
			c.g.conns.setLoad(c, m.Sender.ID, *alive.Load)
		}
		_ = c.tell(message.HeartbeatAck, m, struct{}{})
	case message.Ack:
		id := ackOf(m)
		c.g.waiting.acknowledge(caller, id)
		c.noteAck(id, m.Sender.ID)
	case message.ConnectionClose:
		c.closing = true
		return false
	case message.AgentRegister:
		c.register(caller, m)
	case message.AgentRegisterResponse:
		c.noteRegistered(caller, m)
	case message.AgentUnregister:
		c.unregister(caller, m)
	case message.AgentDiscover:
		c.discover(caller, m)
	case message.EventSubscribe, message.EventUnsubscribe:
		c.subscribe(caller, m)
	case message.Auth:
		c.proveAgain(m)
	case message.Handshake:
		c.refuse(m, &fault{code: codeInvalid, text: "the connection has begun already"})
	}
	return true
}

// proveAgain answers an auth of a peer that is known. One who has shown a certificate may
// name that as its method, since the handshake lists it (§5.3.1).
func (c *conn) proveAgain(m message.Message) {
	shown, err := readCredential(m.Payload)
	if err == nil && c.auth.ID == "" && shown == (credential{Method: methodCertificate}) {
		_ = c.tell(message.AuthResult, m, map[string]any{"status": "success", "partner": c.caller.Realm})
		return
	}
	c.refuse(m, &fault{code: codeInvalid, text: "the connection has begun already"})
}

// ackOf is the id of the message that an acknowledgement names.
func ackOf(m message.Message) string {
	var named struct {
		ID string `json:"message_id"`
	}
	if m.Parent == "" && json.Unmarshal(m.Payload, &named) == nil {
		return named.ID
	}
	return m.Parent
}
