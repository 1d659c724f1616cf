package uamp

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc/stats"
)

// grpcBody is the body of a call. The library reads a body to its end, however slowly a method
// takes its messages, and keeps 16 KiB for each read, however few bytes come: grpcBody reads a
// message when the one before is taken, in full reads, and the flow control of HTTP/2 then stops
// the caller.
type grpcBody struct {
	io.ReadCloser
	// next has an element while a message may be read.
	next   chan struct{}
	closed chan struct{}
	end    func()
	// maxMessage bounds a message, in bytes.
	maxMessage int64
	// left is how many bytes of a message are not read yet.
	left int64
}

// grpcPrefix is how many bytes are before each message: a flag and the length
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, Length-Prefixed-Message).
const grpcPrefix = 5

// newGRPCBody returns a body whose messages have at maxMessage so many bytes. The library refuses a larger
// one by its prefix, and no more is read.
func newGRPCBody(body io.ReadCloser, maxMessage int64) *grpcBody {
	b := &grpcBody{ReadCloser: body, maxMessage: maxMessage, next: make(chan struct{}, 1), closed: make(chan struct{})}
	b.end = sync.OnceFunc(func() { close(b.closed) })
	b.next <- struct{}{}
	return b
}

// Read implements [io.Reader]. A prefix, which p has room for, is a read of its own.
func (b *grpcBody) Read(p []byte) (int, error) {
	if b.left > 0 {
		n, err := readFull(b.ReadCloser, p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		return n, err
	}
	select {
	case <-b.next:
	case <-b.closed:
		return 0, io.ErrClosedPipe
	}
	n, err := readFull(b.ReadCloser, p[:grpcPrefix])
	if size := int64(binary.BigEndian.Uint32(p[1:])); err == nil && size <= b.maxMessage {
		b.left = size
	}
	return n, err
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
func (b *grpcBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// allowNext lets the next message be read: a method has the one before.
func (b *grpcBody) allowNext() { b.next <- struct{}{} }

// takenMessages lets the bodies of calls be read on.
type takenMessages struct{}

// HandleRPC implements [stats.Handler].
func (takenMessages) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.InPayload); ok {
		c, _ := ctx.Value(grpcCall{}).(grpcCaller) // serveGRPC has put it there
		c.body.allowNext()
	}
}

// TagRPC implements [stats.Handler].
func (takenMessages) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements [stats.Handler].
func (takenMessages) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (takenMessages) HandleConn(context.Context, stats.ConnStats) {}
