package grpcserve

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway/wire"
)

// countedPace has place for so many bytes, and its time for a message is over at once or never.
type countedPace struct {
	wire.Within
	places, held atomic.Int64
}

// Acquire implements [wire.Pace].
func (p *countedPace) Acquire(n int64) error {
	if p.held.Add(n) > p.places.Load() {
		p.held.Add(-n)
		return errors.New("all are taken")
	}
	return nil
}

// Release implements [wire.Pace].
func (p *countedPace) Release(n int64) { p.held.Add(-n) }

// TestBodyPace (G-057): what has come of a message counts until a method has it or the call ends,
// and a message without a place, or that is behind its time, ends the body.
func TestBodyPace(t *testing.T) {
	t.Parallel()
	message := append([]byte{0, 0, 0, 0, 8}, "8 bytes."...)
	two := func() io.ReadCloser { return io.NopCloser(bytes.NewReader(append(message, message...))) }
	p := make([]byte, 16)
	read := func(b *body) (err error) {
		for range 2 {
			if _, err = b.Read(p); err != nil {
				return err
			}
		}
		return nil
	}
	pace := &countedPace{Within: wire.Within(time.Hour)}
	pace.places.Store(8)
	b := newBody(two(), 8, pace)
	if err := read(b); err != nil || pace.held.Load() != 8 {
		t.Fatalf("%v, %d bytes count", err, pace.held.Load())
	}
	b.allowNext()
	if n := pace.held.Load(); n != 0 {
		t.Errorf("%d bytes count of a message that was taken", n)
	}
	if err := read(b); err != nil || pace.held.Load() != 8 {
		t.Fatalf("the second: %v, %d bytes count", err, pace.held.Load())
	}
	if err := b.Close(); err != nil || pace.held.Load() != 0 {
		t.Errorf("%v, %d bytes count after the end", err, pace.held.Load())
	}
	pace.places.Store(7)
	b = newBody(two(), 8, pace)
	if err := read(b); !errors.Is(err, wire.ErrNoPlace) || !errors.Is((Call{body: b}).Failure(), wire.ErrNoPlace) {
		t.Errorf("without a place: %v, %v", err, Call{body: b}.Failure())
	}
	reader, writer := io.Pipe()
	b = newBody(reader, 8, &countedPace{})
	go func() { _, _ = writer.Write(message[:6]) }() // it ends with the reader
	if err := read(b); err == nil || !errors.Is((Call{body: b}).Failure(), wire.ErrSlowMessage) {
		t.Errorf("behind its time: %v, %v", err, Call{body: b}.Failure())
	}
}
