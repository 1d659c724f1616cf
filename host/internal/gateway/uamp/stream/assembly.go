package stream

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"

	"skep/host/internal/gateway/uamp/envelope"
)

// Assembly puts the deltas of a foreign stream in order (U-068). It is used by one
// goroutine.
type Assembly struct {
	next  int
	ended bool
	// unacked counts the deltas since the last acknowledgement.
	unacked, window int
	most            int // bytes of all chunks, or of one of a feed
	size            int
	isFeed          bool
	sum             hash.Hash
}

// NewAssembly begins with the first delta. The chunks of the stream have at most so many
// bytes.
func NewAssembly(window, most int) *Assembly {
	return &Assembly{window: window, most: most, sum: sha256.New()}
}

// NewFeed begins with a delta of a stream of events, which has no end that is to be waited for:
// each chunk has at most so many bytes, and the last delta is not held against them.
func NewFeed(window, most, next int) *Assembly {
	a := NewAssembly(window, most)
	a.isFeed, a.next = true, next
	return a
}

// Next is the number of the next delta: a reader that connects again has all before it.
func (a *Assembly) Next() int { return a.next }

// Piece is what a delta brought.
type Piece struct {
	Type envelope.DeltaType
	// Data are the bytes of a chunk, Payload is what the delta has.
	Data    []byte
	Payload json.RawMessage
	// Ack is set when an acknowledgement is due: of all up to the delta's number.
	Ack bool
}

// payload are the members of payloads that are understood (U-067).
type payload struct {
	Text   *string `json:"text"`
	Base64 *string `json:"chunk_b64"`
	Size   *int    `json:"size"`
	SHA256 string  `json:"sha256"`
}

// Add takes a delta. One that was taken before is no piece and no error, and one after a
// gap is refused with the number that is missing: the reader fetches from there on.
func (a *Assembly) Add(d envelope.Delta) (p Piece, ok bool, err error) {
	switch {
	case d.Seq < a.next:
		return p, false, nil
	case a.ended:
		return p, false, envelope.Faultf(envelope.IllegalState, "a delta follows the last one")
	case d.Seq > a.next:
		return p, false, &envelope.Fault{Code: envelope.MissingSeq, Text: "a delta is missing", Details: map[string]any{"expected": a.next}}
	}
	p = Piece{Type: d.Type, Payload: d.Payload}
	var known payload
	if d.Payload != nil && json.Unmarshal(d.Payload, &known) != nil {
		return p, false, envelope.Faultf(envelope.Malformed, "the payload of a %s has a member of another type", d.Type)
	}
	switch d.Type {
	case envelope.DeltaChunk:
		p.Data, err = a.addChunk(known)
		if a.isFeed {
			a.size = 0
		}
	case envelope.DeltaDone:
		if !a.isFeed {
			err = a.checkWhole(known)
		}
	}
	if err != nil {
		return p, false, err
	}
	a.next++
	a.ended = d.Type.Ends()
	a.unacked++
	if p.Ack = a.ended || a.unacked*2 >= a.window; p.Ack {
		a.unacked = 0
	}
	return p, true, nil
}

// addChunk returns the bytes of a chunk.
func (a *Assembly) addChunk(known payload) (data []byte, err error) {
	switch {
	case known.Base64 != nil:
		if data, err = base64.StdEncoding.DecodeString(*known.Base64); err != nil {
			return nil, envelope.Faultf(envelope.Malformed, "chunk_b64 is not base64")
		}
	case known.Text != nil:
		data = []byte(*known.Text)
	}
	if a.size+len(data) > a.most {
		return nil, envelope.Faultf(envelope.TooLarge, "the chunks of the stream have more than %d bytes", a.most)
	}
	a.size += len(data)
	a.sum.Write(data)
	return data, nil
}

// checkWhole compares size and hash in the last delta, if it has them, with the chunks.
func (a *Assembly) checkWhole(known payload) error {
	if known.Size != nil && *known.Size != a.size {
		return envelope.Faultf(envelope.Malformed, "the chunks have %d bytes, and done has the size %d", a.size, *known.Size)
	}
	if known.SHA256 != "" && known.SHA256 != hex.EncodeToString(a.sum.Sum(nil)) {
		return envelope.Faultf(envelope.Malformed, "the chunks have another sha256 than done has")
	}
	return nil
}
