package grpcserve

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// TestStreamFullReads (G-057): a message of which each byte comes alone is as few reads as it
// can be, since the library keeps a buffer for each.
func TestStreamFullReads(t *testing.T) {
	t.Parallel()
	text := append([]byte{0, 0, 0, 0x50, 0}, make([]byte, 20<<10)...)
	b := newBody(io.NopCloser(iotest.OneByteReader(bytes.NewReader(text))), 20<<10, nil)
	p := make([]byte, 16<<10)
	for _, want := range []int{5, 16 << 10, 4 << 10} {
		if n, err := b.Read(p); n != want || err != nil {
			t.Fatalf("a read has %d bytes, %v; want %d", n, err, want)
		}
	}
}

// TestStreamLargeMessage (G-057): of a message that is too large nothing is read but its prefix,
// by which it is refused.
func TestStreamLargeMessage(t *testing.T) {
	t.Parallel()
	b := newBody(io.NopCloser(bytes.NewReader([]byte{0, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9})), 8, nil)
	p := make([]byte, 16<<10)
	if n, err := b.Read(p); n != 5 || err != nil {
		t.Fatalf("the prefix has %d bytes, %v", n, err)
	}
	if err := b.Close(); err != nil { // a read would wait for it
		t.Fatal(err)
	}
	if n, err := b.Read(p); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%d bytes are read, %v", n, err)
	}
}
