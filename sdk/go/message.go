package skep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"skep/sdk/go/internal/wire"
)

// MessageType is the kind of a MAIL message.
type MessageType string

// The kinds of message.
const (
	TypeRequest           MessageType = "request"
	TypeResponse          MessageType = "response"
	TypeBroadcast         MessageType = "broadcast"
	TypeInterrupt         MessageType = "interrupt"
	TypeBroadcastComplete MessageType = "broadcast_complete"
)

// AddressType is the kind of party an address names.
type AddressType string

// The kinds of party.
const (
	AddressAgent  AddressType = "agent"
	AddressUser   AddressType = "user"
	AddressAdmin  AddressType = "admin"
	AddressSystem AddressType = "system"
)

// Address is a sender or recipient.
type Address struct {
	Type AddressType `json:"address_type"`
	Name string      `json:"address"`
}

// Message is a MAIL message.
type Message struct {
	ID   string
	Time time.Time
	Type MessageType
	Task string
	// RefID is the request, broadcast or interrupt id.
	RefID      string
	Sender     Address
	Recipients []Address
	Subject    string
	Body       string
	// SenderSwarm is empty for a message that never left its swarm.
	SenderSwarm string
	// Routing is routing_info, set by the host's doors, never by agents.
	Routing json.RawMessage
}

// FromSystem reports whether the host itself sent the message.
func (m *Message) FromSystem() bool { return m.Sender.Type == AddressSystem }

// FromUser reports whether a person (user or admin) sent the message.
func (m *Message) FromUser() bool {
	return m.Sender.Type == AddressUser || m.Sender.Type == AddressAdmin
}

// wireMessage is MAIL's JSON form.
type wireMessage struct {
	ID        string      `json:"id"`
	Timestamp string      `json:"timestamp"`
	Message   wirePayload `json:"message"`
	MsgType   MessageType `json:"msg_type"`
}

type wirePayload struct {
	TaskID      string          `json:"task_id"`
	RequestID   string          `json:"request_id,omitempty"`
	BroadcastID string          `json:"broadcast_id,omitempty"`
	InterruptID string          `json:"interrupt_id,omitempty"`
	Sender      Address         `json:"sender"`
	Recipient   *Address        `json:"recipient,omitempty"`
	Recipients  []Address       `json:"recipients,omitempty"`
	Subject     string          `json:"subject"`
	Body        string          `json:"body"`
	SenderSwarm string          `json:"sender_swarm,omitempty"`
	RoutingInfo json.RawMessage `json:"routing_info,omitempty"`
}

// UnmarshalJSON decodes MAIL's wire form.
func (m *Message) UnmarshalJSON(raw []byte) error { return m.read(bytes.Clone(raw)) }

// read takes a message in MAIL's wire form. It keeps parts of raw.
func (m *Message) read(raw json.RawMessage) error {
	*m = Message{}
	var at, kind string
	err := wire.Object(raw, wire.Fields{{"id", &m.ID}, {"timestamp", &at}, {"msg_type", &kind}, {"message", m.readPayload}})
	if err != nil {
		return err
	}
	m.Type = MessageType(kind)
	if at == "" {
		return nil
	}
	if m.Time, err = time.Parse(time.RFC3339Nano, at); err != nil {
		return fmt.Errorf("message timestamp: %w", err)
	}
	m.Time = m.Time.UTC()
	return nil
}

func (m *Message) readPayload(raw json.RawMessage) error {
	add := func(one json.RawMessage) error {
		var a Address
		err := a.read(one)
		m.Recipients = append(m.Recipients, a)
		return err
	}
	return wire.Object(raw, wire.Fields{
		{"task_id", &m.Task}, {"subject", &m.Subject}, {"body", &m.Body}, {"sender_swarm", &m.SenderSwarm}, {"routing_info", &m.Routing},
		{"request_id", &m.RefID}, {"broadcast_id", &m.RefID}, {"interrupt_id", &m.RefID}, // exactly one is set
		{"sender", m.Sender.read}, {"recipient", add},
		{"recipients", func(list json.RawMessage) error { return wire.Array(list, add) }},
	})
}

func (a *Address) read(raw json.RawMessage) error {
	var kind string
	err := wire.Object(raw, wire.Fields{{"address_type", &kind}, {"address", &a.Name}})
	a.Type = AddressType(kind)
	return err
}

// MarshalJSON encodes MAIL's wire form.
func (m Message) MarshalJSON() ([]byte, error) {
	p := wirePayload{
		TaskID: m.Task, Sender: m.Sender, Subject: m.Subject, Body: m.Body,
		SenderSwarm: m.SenderSwarm, RoutingInfo: m.Routing,
	}
	switch m.Type {
	case TypeBroadcast, TypeBroadcastComplete:
		p.BroadcastID, p.Recipients = m.RefID, m.Recipients
	case TypeInterrupt:
		p.InterruptID, p.Recipients = m.RefID, m.Recipients
	default:
		p.RequestID = m.RefID
		if len(m.Recipients) > 0 {
			p.Recipient = &m.Recipients[0]
		}
	}
	at := m.Time.UTC().Format("2006-01-02T15:04:05.000000-07:00")
	return json.Marshal(wireMessage{ID: m.ID, Timestamp: at, Message: p, MsgType: m.Type})
}
