package message

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Version is the version of the protocol.
const Version = "1.0"

// Limits of a message.
const (
	MaxSize  = 16 << 20   // bytes of what is read (I-052)
	MaxSent  = 16_000_000 // bytes that are sent: others may count a megabyte so
	MaxDepth = 10         // levels of a payload (I-007)
	maxAgent = 64         // characters of an agent_id (I-005)
	maxID    = 256        // bytes of an id that is no UUID
)

// Type is the type of a message.
type Type string

// The types of messages that the document has.
const (
	TaskRequest       Type = "task_request"
	TaskResponse      Type = "task_response"
	ContextShare      Type = "context_share"
	KnowledgeUpdate   Type = "knowledge_update"
	ToolRequest       Type = "tool_request"
	ToolResponse      Type = "tool_response"
	AgentRegister     Type = "agent_register"
	AgentDiscover     Type = "agent_discover"
	EventNotification Type = "event_notification"
	WorkflowStart     Type = "workflow_start"
	ErrorResponse     Type = "error_response"
)

// The types that its text wants without a name for them (I-041, D-I1).
const (
	Handshake             Type = "handshake"
	HandshakeAck          Type = "handshake_ack"
	Auth                  Type = "auth"
	AuthResult            Type = "auth_result"
	AgentRegisterResponse Type = "agent_register_response"
	AgentUnregister       Type = "agent_unregister"
	AgentDiscoverResponse Type = "agent_discover_response"
	Heartbeat             Type = "heartbeat"
	HeartbeatAck          Type = "heartbeat_ack"
	Ack                   Type = "ack"
	ConnectionClose       Type = "connection_close"
	MessageStatus         Type = "message_status"
	EventSubscribe        Type = "event_subscribe"
	EventUnsubscribe      Type = "event_unsubscribe"
	WorkflowStatus        Type = "workflow_status"
	WorkflowCancel        Type = "workflow_cancel"
)

// classes are the types and what a message of each is for.
var classes = map[Type]Class{
	TaskRequest: Asks, ToolRequest: Asks, WorkflowStart: Asks, WorkflowStatus: Asks, WorkflowCancel: Asks,
	ContextShare: Tells, KnowledgeUpdate: Tells, EventNotification: Tells,
	TaskResponse: Answers, ToolResponse: Answers, ErrorResponse: Answers,
	AgentRegister: Control, AgentRegisterResponse: Control, AgentUnregister: Control, AgentDiscover: Control, AgentDiscoverResponse: Control,
	Handshake: Control, HandshakeAck: Control, Auth: Control, AuthResult: Control, Heartbeat: Control, HeartbeatAck: Control,
	Ack: Control, ConnectionClose: Control, MessageStatus: Control, EventSubscribe: Control, EventUnsubscribe: Control,
}

// Class is what messages of a type are for.
type Class int

// The classes of types. The zero one is of types that are not known.
const (
	Asks    Class = iota + 1 // wants an answer unless requires_response is false
	Tells                    // wants none unless requires_response is true
	Answers                  // answers the message that parent_message_id names
	Control                  // is about the connection and who is at it
)

// Class returns what a message of the type is for.
func (t Type) Class() Class { return classes[t] }

// Types are all types, for a refusal of another.
func Types() (list []Type) {
	for t := range classes {
		list = append(list, t)
	}
	return list
}

// Message is a message of the document.
type Message struct {
	Version      string          `json:"iacp_version"`
	ID           string          `json:"message_id"`
	Timestamp    string          `json:"timestamp"`
	Sender       Agent           `json:"sender"`
	Recipient    *Recipient      `json:"recipient,omitempty"`
	Type         Type            `json:"message_type"`
	Conversation string          `json:"conversation_id,omitempty"`
	Parent       string          `json:"parent_message_id,omitempty"`
	Payload      json.RawMessage `json:"payload"`
	Metadata     *Metadata       `json:"metadata,omitempty"`
}

// Agent is who sends a message.
type Agent struct {
	ID           string   `json:"agent_id"`
	Name         string   `json:"agent_name,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
}

// Recipient is whom a message is for.
type Recipient struct {
	ID        string `json:"agent_id,omitempty"`
	Broadcast bool   `json:"broadcast,omitempty"`
	// Group are the agents with capabilities or of types (D-I6), IDs several agents by their
	// names.
	Group *Group   `json:"group,omitempty"`
	IDs   []string `json:"agent_ids,omitempty"`
}

// IsEmpty reports whether the recipient names no agent.
func (r Recipient) IsEmpty() bool {
	return r.ID == "" && !r.Broadcast && r.Group == nil && len(r.IDs) == 0
}

// Group names agents by what they can do and what they are.
type Group struct {
	Capabilities []string `json:"capabilities,omitempty"`
	Types        []string `json:"agent_types,omitempty"`
	// Match is all, the default, or any.
	Match string `json:"match,omitempty"`
}

// Metadata is how a message is to be handled.
type Metadata struct {
	Priority         string   `json:"priority,omitempty"`
	Expires          string   `json:"expires_at,omitempty"`
	RequiresResponse *bool    `json:"requires_response,omitempty"`
	ResponseTimeout  *float64 `json:"response_timeout,omitempty"` // seconds (D-I8)
	// Ack asks for an acknowledgement where no handshake has, and Auth is the token of a
	// peer without a handshake (D-I1).
	Ack  bool            `json:"ack,omitempty"`
	Auth json.RawMessage `json:"auth,omitempty"`
	// Signature is of the message without it (I-074).
	Signature *Signature `json:"signature,omitempty"`
	// Hops, Traceparent and Tracestate change on the way.
	Hops        int    `json:"hops,omitempty"`
	Traceparent string `json:"traceparent,omitempty"`
	Tracestate  string `json:"tracestate,omitempty"`
}

// Signature is a signature of a message.
type Signature struct {
	// Algorithm is EdDSA or ES256, KeyID names a key, Value is the signature in base64url
	// (https://www.rfc-editor.org/rfc/rfc7518#section-3.4).
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid,omitempty"`
	Value     string `json:"value"`
}

// New returns a message of an agent, with an id of its own.
func New(t Type, from string, payload any) Message {
	raw, err := json.Marshal(payload)
	if err != nil {
		panic(err) // payloads are maps, texts and what was read
	}
	return Message{Version: Version, ID: uuid.NewString(), Timestamp: Time(time.Now()), Sender: Agent{ID: from}, Type: t, Payload: raw}
}

// Time writes a time as messages have it.
func Time(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// Meta is the metadata, empty where there is none.
func (m Message) Meta() Metadata {
	if m.Metadata == nil {
		return Metadata{}
	}
	return *m.Metadata
}

// To is the agent that a message names, empty for none.
func (m Message) To() string {
	if m.Recipient == nil {
		return ""
	}
	return m.Recipient.ID
}

// Owed reports whether a message gets a response.
func (m Message) Owed() bool {
	if wants := m.Meta().RequiresResponse; wants != nil {
		return *wants && m.Type.Class() <= Tells
	}
	return m.Type.Class() == Asks
}

// Encode writes a message.
func (m Message) Encode() ([]byte, error) { return json.Marshal(m) }
