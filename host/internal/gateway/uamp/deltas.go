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
	// agents is how many have been asked, live means that one has not answered yet.
	agents int
	live   bool
	next   int
	// size and sum are of all chunks.
	size int
	sum  hash.Hash
	// ended are the agents of several that have ended, answered is set when one has answered.
	ended    []map[string]any
	answered bool
}

// followDeltas opens the stream of an envelope from its start.
func (g *Gateway) followDeltas(ctx context.Context, x gateway.Exchange, n note, name string) (s gateway.Stream, d *deltas, err error) {
	each, err := g.exchangesOf(ctx, x, n)
	if err != nil {
		return nil, nil, err
	}
	d = &deltas{g: g, x: x, stream: name, agents: len(each), sum: sha256.New()}
	for _, one := range each {
		d.live = d.live || one.Answered == 0
	}
	if len(each) > 1 {
		s, err = g.Runtime.FollowEach(ctx, each)
	} else {
		s, err = g.Runtime.FollowWhole(ctx, x)
	}
	return s, d, err
}

// isAside reports whether a piece is progress that is told beside the deltas, as it comes.
func (d *deltas) isAside(p gateway.Piece) bool {
	return p.Kind == gateway.Progress && d.agents > 1 && d.live
}

// add gives the deltas of a piece to show, and reports whether they are the last. Progress of
// one of several agents is shown before the log has its place: it has no number, and so is no
// delta. Questions are asked by envelopes of their own.
func (d *deltas) add(ctx context.Context, p gateway.Piece, show func(envelope.Delta) error) (last bool, err error) {
	switch {
	case p.Kind == gateway.Chunk:
		return false, d.chunk(p.Agent, []byte(p.Text), map[string]any{"text": p.Text}, show)
	case p.Kind == gateway.Progress && d.agents == 1:
		return false, d.show(envelope.DeltaProgress, d.x.Accepted, d.progress(p), show)
	case p.Kind == gateway.End && d.agents > 1:
		return d.endOne(ctx, p.Agent, *p.Answer, show)
	case p.Kind == gateway.End:
		return true, d.end(ctx, *p.Answer, show)
	}
	return false, nil
}

// chunk shows a piece of an agent's answer (U-067).
func (d *deltas) chunk(agent string, data []byte, payload map[string]any, show func(envelope.Delta) error) error {
	d.size += len(data)
	d.sum.Write(data)
	return d.show(envelope.DeltaChunk, d.x.Accepted, d.addSender(agent, payload), show)
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
	kind, payload, err := d.ending(ctx, "", a, show)
	if err != nil {
		return err
	}
	if done, ok := payload.(map[string]any); ok && kind == envelope.DeltaDone {
		d.addSum(done)
	}
	return d.show(kind, a.At, payload, show)
}

// ending shows the blobs of an agent's answer as chunks, and returns what a stream with nothing
// else ends with.
func (d *deltas) ending(ctx context.Context, agent string, a gateway.Answer, show func(envelope.Delta) error) (kind envelope.DeltaType, payload any, err error) {
	switch a.Outcome {
	case gateway.Cancelled:
		return envelope.DeltaCancel, map[string]any{"reason": a.Body}, nil
	case gateway.Failed:
		return envelope.DeltaError, bodyOf(&envelope.Fault{Code: envelope.Internal, Text: a.Body}), nil
	case gateway.TimedOut:
		return envelope.DeltaError, bodyOf(&envelope.Fault{Code: envelope.TimedOut, Text: a.Body}), nil
	}
	done := answerPayload(a)
	for _, ref := range a.Parts {
		data, err := d.g.Runtime.Blob(ctx, d.x, ref)
		if err != nil {
			return "", nil, err
		}
		done["mime"] = ref.Type
		for begin := 0; begin < len(data); begin += blobChunk {
			piece := data[begin:min(begin+blobChunk, len(data))]
			if err := d.chunk(agent, piece, map[string]any{"chunk_b64": base64.StdEncoding.EncodeToString(piece)}, show); err != nil {
				return "", nil, err
			}
		}
	}
	return envelope.DeltaDone, done, nil
}

// addSum adds the size and the hash of all chunks to what the last delta has.
func (d *deltas) addSum(done map[string]any) {
	if d.size > 0 {
		done["size"], done["sha256"] = d.size, hex.EncodeToString(d.sum.Sum(nil))
	}
}

// answerPayload is the answer of an agent: JSON as it is, anything else as a text (C.1).
func answerPayload(a gateway.Answer) map[string]any {
	if json.Valid([]byte(a.Body)) {
		return map[string]any{"answer": json.RawMessage(a.Body), "type": "application/json"}
	}
	return map[string]any{"answer": a.Body, "type": "text/plain"}
}
