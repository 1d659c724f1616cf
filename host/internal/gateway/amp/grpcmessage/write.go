package grpcmessage

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/structpb"

	"skep/spec/gateways/amp/amppb"
)

// Raw returns the bytes of a Message that has a text alone.
func Raw(text []byte) []byte {
	out := make([]byte, 0, protowire.SizeTag(rawField)+protowire.SizeBytes(len(text)))
	out = protowire.AppendTag(out, rawField, protowire.BytesType)
	return protowire.AppendBytes(out, text)
}

// object is a message as its text has it.
type object struct {
	Protocol string
	Message  struct {
		ID, Type, Timestamp string
		Source              struct {
			AgentID   string `json:"agent_id"`
			SessionID string `json:"session_id"`
		}
		Destination struct {
			AgentID    string `json:"agent_id"`
			Capability string
		}
		Headers struct {
			CorrelationID   string `json:"correlation_id"`
			TrackingID      string `json:"tracking_id"`
			Priority        *float64
			TimeoutMS       *float64        `json:"timeout_ms"`
			ExecutionTimeMS *int64          `json:"execution_time_ms"`
			RoutingHints    json.RawMessage `json:"routing_hints"`
			Signature       *struct {
				Algorithm, Value string
				KeyID            string `json:"key_id"`
			}
		}
		Payload json.RawMessage
	}
}

// Message returns a text of ours as a Message that has its members besides. Numbers there are as
// exact as those of JavaScript.
func Message(text []byte) (*amppb.Message, error) {
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	m, h := o.Message, o.Message.Headers
	payload, err := structOf(m.Payload)
	if err != nil {
		return nil, err
	}
	hints, err := structOf(h.RoutingHints)
	if err != nil {
		return nil, err
	}
	out := &amppb.Message{
		RawJson: text, Protocol: o.Protocol, Id: m.ID, Type: m.Type, Timestamp: m.Timestamp, Payload: payload,
		Source: &amppb.Source{AgentId: m.Source.AgentID, SessionId: m.Source.SessionID}, Destination: &amppb.Destination{AgentId: m.Destination.AgentID, Capability: m.Destination.Capability},
		Headers: &amppb.Headers{CorrelationId: h.CorrelationID, TrackingId: h.TrackingID, Priority: h.Priority, TimeoutMs: h.TimeoutMS, ExecutionTimeMs: h.ExecutionTimeMS, RoutingHints: hints},
	}
	if s := h.Signature; s != nil {
		out.Headers.Signature = &amppb.Signature{Algorithm: s.Algorithm, Value: s.Value, KeyId: s.KeyID}
	}
	return out, nil
}

// structOf is an object as a Struct, nil for none.
func structOf(raw json.RawMessage) (*structpb.Struct, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	s := &structpb.Struct{}
	return s, s.UnmarshalJSON(raw)
}
