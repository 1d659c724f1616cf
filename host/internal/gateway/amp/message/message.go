package message

import (
	"encoding/json"

	"skep/host/internal/gateway/wire"
)

// Tokens of the protocol.
const (
	AMP = "AMP"
	AIP = "AIP"
)

// Version is the version of the protocol that is written. All with its major number are read.
const Version = "1.0"

// Type is the type of a message.
type Type string

// The types of messages.
const (
	Request  Type = "request"
	Response Type = "response"
	Event    Type = "event"
	Error    Type = "error"
)

// Message is a message of the document. A member that is left out is zero.
type Message struct {
	ID          string          `json:"id,omitempty"`
	Type        Type            `json:"type"`
	Timestamp   string          `json:"timestamp,omitempty"`
	Source      Source          `json:"source,omitzero"`
	Destination Destination     `json:"destination,omitzero"`
	Headers     Headers         `json:"headers,omitzero"`
	Payload     json.RawMessage `json:"payload"`
}

// Source is who sends a message.
type Source struct {
	Agent   string `json:"agent_id,omitempty"`
	Session string `json:"session_id,omitempty"`
}

// Destination is whom a message is for.
type Destination struct {
	Agent      string `json:"agent_id,omitempty"`
	Capability string `json:"capability,omitempty"`
}

// Headers are about the delivery of a message.
type Headers struct {
	// Correlation is the sender's tracking id of a request, and the id of the request in
	// what answers it (D-M3). Tracking returns the request's correlation id.
	Correlation string `json:"correlation_id,omitempty"`
	Tracking    string `json:"tracking_id,omitempty"`
	// Priority is 0 to 10, more is more urgent.
	Priority *float64 `json:"priority,omitempty"`
	// Timeout is the time for an answer, Execution how long it took, in ms.
	Timeout        *float64                   `json:"timeout_ms,omitempty"`
	Execution      *int64                     `json:"execution_time_ms,omitempty"`
	Hints          map[string]json.RawMessage `json:"routing_hints,omitempty"`
	Authentication *Authentication            `json:"authentication,omitempty"`
	Signature      *Signature                 `json:"signature,omitempty"`
}

// Authentication is a credential within a message (M-074).
type Authentication struct {
	Type        string `json:"type"`
	Token       string `json:"token,omitempty"`
	Credentials string `json:"credentials,omitempty"`
	Key         string `json:"key,omitempty"`
}

// Secret is the credential, under the name that the sender uses; empty for none.
func (a *Authentication) Secret() string {
	if a == nil {
		return ""
	}
	for _, secret := range []string{a.Token, a.Credentials, a.Key} {
		if secret != "" {
			return secret
		}
	}
	return ""
}

// Signature binds a message to a shared key.
type Signature struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"value"`
	KeyID     string `json:"key_id,omitempty"`
}

// wrapper is the outermost object.
type wrapper struct {
	Protocol string          `json:"protocol"`
	Message  json.RawMessage `json:"message"`
}

// Write returns the text of a message under a token.
func Write(token string, m Message) ([]byte, error) {
	object, err := wire.Encode(m)
	if err != nil {
		return nil, err
	}
	return wire.Encode(wrapper{Protocol: token + "/" + Version, Message: object})
}
