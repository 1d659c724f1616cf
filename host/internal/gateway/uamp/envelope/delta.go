package envelope

import (
	"encoding/json"
	"time"

	"skep/host/internal/gateway/wire"
)

// DeltaType is the type of a frame of a stream.
type DeltaType string

// The types of frames (U-060). The last three end a stream.
const (
	DeltaPatch    DeltaType = "patch"
	DeltaChunk    DeltaType = "chunk"
	DeltaProgress DeltaType = "progress"
	DeltaDone     DeltaType = "done"
	DeltaCancel   DeltaType = "cancel"
	DeltaError    DeltaType = "error"
)

// Ends reports whether a frame of the type is the last one.
func (t DeltaType) Ends() bool { return t == DeltaDone || t == DeltaCancel || t == DeltaError }

func (t DeltaType) known() bool {
	return t.Ends() || t == DeltaPatch || t == DeltaChunk || t == DeltaProgress
}

// Delta is a frame of a stream.
type Delta struct {
	Seq     int
	Stream  string
	Time    time.Time
	Type    DeltaType
	Payload json.RawMessage // an object, nil for none
}

// MarshalJSON writes a frame with all that the document requires.
func (d Delta) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Seq     int             `json:"delta_seq"`
		Stream  string          `json:"stream_id"`
		Time    string          `json:"ts"`
		Type    DeltaType       `json:"type"`
		Payload json.RawMessage `json:"payload,omitempty"`
	}{d.Seq, d.Stream, d.Time.UTC().Format(wireTime), d.Type, d.Payload})
}

// ReadDelta reads a frame. In the default profile stream_id and ts may be missing where
// the connection has the stream (D-U4).
func (r Reader) ReadDelta(text []byte, stream string) (d Delta, err error) {
	if len(text) > r.MaxBytes {
		return d, Faultf(TooLarge, "the delta has %d bytes, at most %d", len(text), r.MaxBytes)
	}
	if _, err := wire.Canonical(text, wire.AsSent, r.MaxDepth); err != nil {
		return d, malformed("the delta %v", err)
	}
	m := readMembers(text, "")
	if _, has := m.all["delta_seq"]; m.err == nil && !has {
		return d, Faultf(MissingSeq, "delta_seq is missing")
	}
	d = Delta{
		Seq: m.integer("delta_seq", 0, 0), Stream: m.text("stream_id", stream, maxStream), Time: m.time("ts", r.Strict),
		Type: DeltaType(m.text("type", "", 16)), Payload: m.all["payload"],
	}
	m.require("type")
	if r.Strict || stream == "" {
		m.require("stream_id", "ts")
	}
	if !d.Type.known() {
		m.fail("type", "is none of patch, chunk, progress, done, cancel, error")
	}
	m.object("payload")
	m.refuseOthers("delta_seq", "stream_id", "ts", "type", "payload")
	return d, m.err
}
