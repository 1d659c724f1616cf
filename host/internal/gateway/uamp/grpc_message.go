package uamp

import (
	"encoding/json"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/gateways/uamp/uamppb"
)

// envelopeText is an envelope as it was signed: its json, or else the object of the members that
// are set (U-055).
func envelopeText(m *uamppb.Envelope) ([]byte, error) {
	if len(m.GetJson()) > 0 {
		return m.GetJson(), nil
	}
	e := map[string]any{"id": m.GetId(), "ts": m.GetTs(), "from": m.GetFrom(), "to": m.GetTo(), "intent": m.GetIntent(), "sig": m.GetSig()}
	for name, value := range map[string]string{"reply_to": m.GetReplyTo(), "stream_id": m.GetStreamId(), "cap_token": m.GetCapToken()} {
		if value != "" {
			e[name] = value
		}
	}
	if m.GetDeltaWindow() > 0 {
		e["delta_window"] = m.GetDeltaWindow()
	}
	if len(m.GetExt()) > 0 {
		e["ext"] = json.RawMessage(m.GetExt())
	}
	if len(m.GetContext()) > 0 {
		var list []map[string]string
		for _, r := range m.GetContext() {
			list = append(list, map[string]string{"id": r.GetId(), "hash": r.GetHash()})
		}
		e["context"] = list
	}
	body := map[string]string{"type": m.GetBody().GetType(), "content": m.GetBody().GetContent()}
	for name, value := range map[string]string{"encoding": m.GetBody().GetEncoding(), "compression": m.GetBody().GetCompression()} {
		if value != "" {
			body[name] = value
		}
	}
	e["body"] = body
	return marshalText(e)
}

// marshalText writes an object of the caller's members.
func marshalText(object map[string]any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		err = envelope.Faultf(envelope.Malformed, "ext and payload are objects of JSON: %v", err)
	}
	return text, err
}

// envelopeMessage is an envelope of ours, with the members that show what it is about.
func envelopeMessage(text []byte) *uamppb.Envelope {
	var e struct {
		ID      string   `json:"id"`
		Time    string   `json:"ts"`
		From    string   `json:"from"`
		To      []string `json:"to"`
		Intent  string   `json:"intent"`
		ReplyTo string   `json:"reply_to"`
		Stream  string   `json:"stream_id"`
		Sig     string   `json:"sig"`
	}
	_ = json.Unmarshal(text, &e) // the host has written it
	return &uamppb.Envelope{Json: text, Id: e.ID, Ts: e.Time, From: e.From, To: e.To, Intent: e.Intent, ReplyTo: e.ReplyTo, StreamId: e.Stream, Sig: e.Sig}
}

// deltaMessage is a delta of ours.
func deltaMessage(d envelope.Delta) (*uamppb.Delta, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return readDeltaMessage(text)
}

func readDeltaMessage(text []byte) (*uamppb.Delta, error) {
	var d struct {
		Seq     uint32          `json:"delta_seq"`
		Stream  string          `json:"stream_id"`
		Time    string          `json:"ts"`
		Type    string          `json:"type"`
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	return &uamppb.Delta{Json: text, DeltaSeq: d.Seq, StreamId: d.Stream, Ts: d.Time, Type: d.Type, Payload: d.Payload}, nil
}

// frameText is a frame of a caller in JSON.
func frameText(f *uamppb.Frame) ([]byte, error) {
	if e := f.GetEnvelope(); e != nil {
		return envelopeText(e)
	}
	d := f.GetDelta()
	switch {
	case d == nil:
		return nil, envelope.Faultf(envelope.Malformed, "a frame has an envelope or a delta")
	case len(d.GetJson()) > 0:
		return d.GetJson(), nil
	}
	object := map[string]any{"delta_seq": d.GetDeltaSeq(), "stream_id": d.GetStreamId(), "ts": d.GetTs(), "type": d.GetType()}
	if len(d.GetPayload()) > 0 {
		object["payload"] = json.RawMessage(d.GetPayload())
	}
	return marshalText(object)
}

// frameMessage is a frame of ours.
func frameMessage(text []byte) (*uamppb.Frame, error) {
	if !readHead(text).isDelta {
		return &uamppb.Frame{Frame: &uamppb.Frame_Envelope{Envelope: envelopeMessage(text)}}, nil
	}
	d, err := readDeltaMessage(text)
	return &uamppb.Frame{Frame: &uamppb.Frame_Delta{Delta: d}}, err
}
