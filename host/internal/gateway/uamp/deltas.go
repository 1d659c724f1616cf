package uamp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
)

// blobChunk is the size of the chunks that a blob of an answer is cut into, in bytes.
const blobChunk = 32 << 10

// deltas numbers what a stream has. All that a delta has goes by the log, so that delta k
// is the same on each read, whenever it is (U-051, U-063).
type deltas struct {
	g      *Gateway
	x      gateway.Exchange
	stream string
	next   int
	// size and sum are of all chunks.
	size int
	sum  hash.Hash
}

func (g *Gateway) newDeltas(x gateway.Exchange, stream string) *deltas {
	return &deltas{g: g, x: x, stream: stream, sum: sha256.New()}
}

// add gives the deltas of a piece to show, and reports whether they are the last. Progress
// is not in the log: it has no number, and so is no delta. Questions are asked by envelopes
// of their own.
func (d *deltas) add(ctx context.Context, p gateway.Piece, show func(envelope.Delta) error) (last bool, err error) {
	switch p.Kind {
	case gateway.Chunk:
		return false, d.chunk([]byte(p.Text), map[string]any{"text": p.Text}, show)
	case gateway.End:
		return true, d.end(ctx, *p.Answer, show)
	}
	return false, nil
}

// chunk shows a piece of the answer (U-067).
func (d *deltas) chunk(data []byte, payload map[string]any, show func(envelope.Delta) error) error {
	d.size += len(data)
	d.sum.Write(data)
	return d.show(envelope.DeltaChunk, d.x.Accepted, payload, show)
}

// show numbers a delta.
func (d *deltas) show(kind envelope.DeltaType, at time.Time, payload any, show func(envelope.Delta) error) error {
	raw, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	delta := envelope.Delta{Seq: d.next, Stream: d.stream, Time: at, Type: kind, Payload: raw}
	d.next++
	return show(delta)
}

// end shows the blobs of an answer as chunks, and the last delta.
func (d *deltas) end(ctx context.Context, a gateway.Answer, show func(envelope.Delta) error) error {
	switch a.Outcome {
	case gateway.Cancelled:
		return d.show(envelope.DeltaCancel, a.At, map[string]any{"reason": a.Body}, show)
	case gateway.Failed:
		return d.show(envelope.DeltaError, a.At, bodyOf(&envelope.Fault{Code: envelope.Internal, Text: a.Body}), show)
	case gateway.TimedOut:
		return d.show(envelope.DeltaError, a.At, bodyOf(&envelope.Fault{Code: envelope.TimedOut, Text: a.Body}), show)
	}
	done := answerPayload(a)
	for _, ref := range a.Parts {
		data, err := d.g.Runtime.Blob(ctx, d.x, ref)
		if err != nil {
			return err
		}
		done["mime"] = ref.Type
		for begin := 0; begin < len(data); begin += blobChunk {
			piece := data[begin:min(begin+blobChunk, len(data))]
			if err := d.chunk(piece, map[string]any{"chunk_b64": base64.StdEncoding.EncodeToString(piece)}, show); err != nil {
				return err
			}
		}
	}
	if d.size > 0 {
		done["size"], done["sha256"] = d.size, hex.EncodeToString(d.sum.Sum(nil))
	}
	return d.show(envelope.DeltaDone, a.At, done, show)
}

// answerPayload is the answer of an agent: JSON as it is, anything else as a text (C.1).
func answerPayload(a gateway.Answer) map[string]any {
	if json.Valid([]byte(a.Body)) {
		return map[string]any{"answer": json.RawMessage(a.Body), "type": "application/json"}
	}
	return map[string]any{"answer": a.Body, "type": "text/plain"}
}
