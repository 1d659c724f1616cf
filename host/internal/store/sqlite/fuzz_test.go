package sqlite

import (
	"bytes"
	"testing"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// FuzzBody gives the decoder bodies as a damaged or foreign file holds them. It
// must refuse or read them, and never take more memory than a body may.
func FuzzBody(f *testing.F) {
	ring, err := keyring.Open(f.TempDir()+"/k", keyring.Options{})
	if err != nil {
		f.Fatal(err)
	}
	sealer, err := ring.Sealer("acme")
	if err != nil {
		f.Fatal(err)
	}
	cl := closer{opener{&codec{ring: ring}, placeOf(swarm.TaskKey{Task: "t"})}, sealer}
	at := spot{inEvents, "", 7}
	plain, err := wrap(bytes.Repeat([]byte(`{"event":"e"} `), 200))
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range [][]byte{nil, {codecPlain}, plain, compress(plain), cl.shorten(plain), cl.close(plain, at), cl.close(compress(plain), at), {codecSealed}, {codecPacked}, {codecShort}} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		raw, err := cl.open(body, at)
		if err != nil {
			return
		}
		if len(raw) > maxBody {
			t.Fatalf("%d bytes came of %d", len(raw), len(body))
		}
		// What can be read can be written, and reads the same.
		again, err := wrap(raw)
		if err != nil {
			t.Fatal(err)
		}
		back, err := cl.open(cl.close(cl.shorten(again), at), at)
		if err != nil || !bytes.Equal(back, raw) {
			t.Fatalf("a body of %d bytes does not come back: %v", len(raw), err)
		}
		_, _ = cl.readRow(row{entry: entry{7, body}})
		_, _ = cl.readRecord(storedTurn{n: 7, header: body, end: body, input: body, chunks: []entry{{7, body}}})
	})
}
