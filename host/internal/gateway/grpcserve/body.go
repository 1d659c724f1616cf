package grpcserve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"skep/host/internal/gateway/wire"
)

// body is the body of a call. The library reads a body to its end, however slowly a method
// takes its messages, and keeps 16 KiB for each read, however few bytes come: body reads a
// message when the one before is taken, in full reads, and the flow control of HTTP/2 then stops
// the caller.
type body struct {
	io.ReadCloser
	// next has an element while a message may be read.
	next   chan struct{}
	closed chan struct{}
	end    func()
	// maxMessage bounds a message, in bytes.
	maxMessage int64
	// left is how many bytes of a message are not read yet, read how many are since start.
	left, read int64
	start      time.Time
	// pace bounds each message on its way, nil for no bound. held is what it counts.
	pace wire.Pace
	held atomic.Int64
	// failure is why the pace has ended the body.
	failure atomic.Pointer[error]
}

// prefix is how many bytes are before each message: a flag and the length
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, Length-Prefixed-Message).
const prefix = 5

// newBody returns a body whose messages have at most so many bytes. The library refuses a larger
// one by its prefix, and no more is read.
func newBody(of io.ReadCloser, maxMessage int64, pace wire.Pace) *body {
	b := &body{ReadCloser: of, maxMessage: maxMessage, pace: pace, next: make(chan struct{}, 1), closed: make(chan struct{})}
	b.end = sync.OnceFunc(func() { close(b.closed) })
	b.next <- struct{}{}
	return b
}

// Read implements [io.Reader]. A prefix, which p has room for, is a read of its own.
func (b *body) Read(p []byte) (int, error) {
	if b.left > 0 {
		n, err := b.readPaced(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		return n, err
	}
	select {
	case <-b.next:
	case <-b.closed:
		return 0, io.ErrClosedPipe
	}
	n, err := readFull(b.ReadCloser, p[:prefix])
	if size := int64(binary.BigEndian.Uint32(p[1:])); err == nil && size <= b.maxMessage {
		b.left, b.read, b.start = size, 0, time.Now()
	}
	return n, err
}

// readPaced reads a part of a message. One that is behind its pace, or has no place, ends the body.
func (b *body) readPaced(p []byte) (int, error) {
	if b.pace == nil {
		return readFull(b.ReadCloser, p)
	}
	late := time.AfterFunc(time.Until(b.pace.Until(b.start, b.read)), func() {
		b.fail(wire.ErrSlowMessage)
		_ = b.ReadCloser.Close() // it returns nil
	})
	n, err := readFull(b.ReadCloser, p)
	late.Stop()
	b.read += int64(n)
	if wrong := b.pace.Acquire(int64(n)); wrong != nil {
		b.fail(fmt.Errorf("%w: %w", wire.ErrNoPlace, wrong))
		return 0, wire.ErrNoPlace
	}
	b.held.Add(int64(n))
	select {
	case <-b.closed:
		b.release()
	default:
	}
	return n, err
}

func (b *body) fail(why error) { b.failure.CompareAndSwap(nil, &why) }

// release ends the count of what was read.
func (b *body) release() {
	if n := b.held.Swap(0); n > 0 {
		b.pace.Release(n)
	}
}

// readFull fills p, or has what there is until the end of the body.
func readFull(r io.Reader, p []byte) (int, error) {
	n, err := io.ReadFull(r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Close ends a read that waits.
func (b *body) Close() error {
	b.end()
	b.release()
	return b.ReadCloser.Close()
}

// allowNext lets the next message be read: a method has the one before.
func (b *body) allowNext() {
	b.release()
	b.next <- struct{}{}
}
