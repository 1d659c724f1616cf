package uamp_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/spec/mail"
)

// TestLargeAnswer (U-061, U-062, U-066, U-067, U-068, V-U23): the document's example C.2 between two hosts of ours: a
// picture of 4 MiB goes in chunks, and is the same at the end, also where the host that sends it
// has a smaller window than the envelope wants.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	overBindings(t, func(t *testing.T, o *out) {
		h := newHive(t, func(opt *uamp.Options) { opt.MaxWindow = 100 })
		image := make([]byte, 4<<20)
		random := rand.NewChaCha8([32]byte{})
		_, _ = random.Read(image) // it returns no error
		h.expose("draws", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
			return gateway.Answer{Body: "a cat", Parts: []gateway.PartRef{turn.Part("cat", "image/png", image)}}
		})
		o.host(t, h)
		o.carry(t, "asked", outgoing("cat", mail.Request, "draws", "512×512 cat"), gateway.Taken)
		asked := o.rec.take()
		if len(asked) != 1 || len(asked[0].Parts) != 1 {
			t.Fatalf("%d answers", len(asked))
		}
		if p := asked[0].Parts[0]; !bytes.Equal(p.Data, image) || p.Type != "image/png" {
			t.Errorf("%d bytes of %s", len(p.Data), p.Type)
		}
	})
}

// TestGapRead (U-068, V-U27): a stream in which a delta is missing is read again from that delta on.
func TestGapRead(t *testing.T) {
	t.Parallel()
	overBindings(t, func(t *testing.T, o *out) {
		var mu sync.Mutex
		reads := 0
		o.lab.does(streamAt, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if reads++; reads == 1 {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, "data: "+chunk("a")+"\n\ndata: "+chunk("c")+"\n\n", 0, 2)
				return
			}
			events(9, chunk("a"), chunk("b"), chunk("c"), `{"delta_seq":%d,"type":"done"}`)(w, r)
		})
		o.carry(t, "asked", outgoing("gap", mail.Request, "x", "how many?"), gateway.Taken)
		if asked := o.rec.take(); len(asked) != 1 || asked[0].Body != "abc" {
			t.Errorf("%+v", asked)
		}
		_, streams := o.lab.take()
		if !o.overHTTP() {
			return // a socket of the lab reads on by itself before it is left
		}
		if len(streams) != 2 || streams[1] != "0" {
			t.Errorf("streams are read after %q", streams)
		}
	})
}
