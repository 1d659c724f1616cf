package stream_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/stream"
)

// fault is the fault of an error, empty for none.
func fault(err error) (f envelope.Fault) {
	if made := new(envelope.Fault); errors.As(err, &made) {
		return *made
	}
	return f
}

// TestWindow (V-U24, V-U25, V-U26, U-061, U-063, U-064): of 200 deltas 64 are sent, an
// acknowledgement of number 31 lets 32 more go, and of what was not sent none counts.
func TestWindow(t *testing.T) {
	t.Parallel()
	w := stream.NewWindow(64, 0)
	send := func() (n int) {
		for w.Open() {
			w.Next()
			n++
		}
		return n
	}
	if n := send(); n != 64 {
		t.Errorf("%d are sent", n)
	}
	if err := w.Ack(31); err != nil || send() != 32 {
		t.Errorf("%v", err)
	}
	if err := w.Ack(10); err != nil || w.Open() {
		t.Errorf("an older acknowledgement opens the window: %v", err)
	}
	for _, seq := range []int{96, 1 << 30, -2} {
		if f := fault(w.Ack(seq)); f.Code != envelope.MissingSeq || f.Details["sent"] != 95 || w.Open() {
			t.Errorf("%d: %+v", seq, f)
		}
	}
	again := stream.NewWindow(2, 96) // a reader that has come back with number 95
	if again.Next() != 96 || !again.Open() || again.Next() != 97 || again.Open() {
		t.Error("a resumed window does not go on after what the reader has")
	}
}

func delta(seq int, kind envelope.DeltaType, payload any) envelope.Delta {
	raw, _ := json.Marshal(payload)
	return envelope.Delta{Seq: seq, Stream: "s", Type: kind, Payload: raw}
}

// TestAssembly (V-U23, U-067, U-068): a picture in pieces is whole at the end, with
// repeats and gaps on the way.
func TestAssembly(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	picture := make([]byte, 100_000)
	for i := range picture {
		picture[i] = byte(r.Uint32())
	}
	sum := sha256.Sum256(picture)
	deltas := []envelope.Delta{delta(0, envelope.DeltaProgress, map[string]int{"pct": 10})}
	for rest := picture; len(rest) > 0; {
		n := min(len(rest), 1+r.IntN(4096))
		deltas = append(deltas, delta(len(deltas), envelope.DeltaChunk, map[string]string{"chunk_b64": base64.StdEncoding.EncodeToString(rest[:n])}))
		rest = rest[n:]
	}
	deltas = append(deltas, delta(len(deltas), envelope.DeltaDone, map[string]any{"mime": "image/png", "size": len(picture), "sha256": hex.EncodeToString(sum[:])}))
	a := stream.NewAssembly(8, len(picture))
	var got []byte
	unacked := 0
	for a.Next() < len(deltas) {
		d := deltas[max(0, min(len(deltas)-1, a.Next()+r.IntN(4)-1))]
		next := a.Next()
		p, ok, err := a.Add(d)
		switch {
		case d.Seq > next:
			if f := fault(err); f.Code != envelope.MissingSeq || f.Details["expected"] != next {
				t.Fatalf("%d before %d: %v", d.Seq, next, err)
			}
		case d.Seq < next:
			if ok || err != nil {
				t.Fatalf("%d again: %v, %v", d.Seq, ok, err)
			}
		case !ok || err != nil:
			t.Fatalf("%d: %v, %v", d.Seq, ok, err)
		default:
			got = append(got, p.Data...)
			if unacked++; p.Ack {
				unacked = 0
			}
		}
		if unacked >= 8 {
			t.Fatalf("%d deltas in a window of 8 have no acknowledgement (U-062)", unacked)
		}
	}
	if !bytes.Equal(got, picture) || unacked != 0 {
		t.Errorf("%d bytes, %d deltas unacknowledged", len(got), unacked)
	}
	if _, _, err := a.Add(delta(len(deltas), envelope.DeltaChunk, nil)); fault(err).Code != envelope.IllegalState {
		t.Errorf("after the end: %v", err)
	}
}

// TestAssemblyRefuses (V-U27, U-068): a gap is named, and stays until it is filled; what
// does not fit done is refused.
func TestAssemblyRefuses(t *testing.T) {
	t.Parallel()
	a := stream.NewAssembly(64, 10)
	for range 2 {
		if _, _, err := a.Add(delta(1, envelope.DeltaChunk, map[string]string{"text": "b"})); fault(err).Code != envelope.MissingSeq {
			t.Errorf("a gap: %v", err)
		}
	}
	if p, ok, err := a.Add(delta(0, envelope.DeltaChunk, map[string]string{"text": "a"})); !ok || err != nil || string(p.Data) != "a" || p.Ack {
		t.Errorf("%+v, %v, %v", p, ok, err)
	}
	if _, _, err := a.Add(delta(1, envelope.DeltaChunk, map[string]string{"text": "0123456789"})); fault(err).Code != envelope.TooLarge || a.Next() != 1 {
		t.Errorf("too much: %v", err)
	}
	for _, bad := range []envelope.Delta{
		delta(1, envelope.DeltaChunk, map[string]string{"chunk_b64": "!"}), delta(1, envelope.DeltaChunk, map[string]int{"text": 1}),
		delta(1, envelope.DeltaDone, map[string]int{"size": 2}), delta(1, envelope.DeltaDone, map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(nil))}),
	} {
		if _, _, err := a.Add(bad); fault(err).Code != envelope.Malformed || a.Next() != 1 {
			t.Errorf("%s: %v", bad.Payload, err)
		}
	}
	if p, ok, err := a.Add(delta(1, envelope.DeltaDone, map[string]any{"answer": 4, "size": 1})); !ok || err != nil || !p.Ack || string(p.Payload) != `{"answer":4,"size":1}` {
		t.Errorf("%+v, %v, %v", p, ok, err)
	}
}
