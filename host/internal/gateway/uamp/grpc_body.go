package uamp

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc/stats"
)

// grpcBody is the body of a call. The library reads a body to its end, however slowly a method
// takes its messages: grpcBody bounds the bytes that wait for it, and the flow control of HTTP/2
// then stops the caller.
type grpcBody struct {
	io.ReadCloser
	most int64

	mu      sync.Mutex
	changed sync.Cond
	// waiting counts the bytes that were read and are in no message that a method has.
	waiting int64
	closed  bool
}

// newGRPCBody returns a body of which at most about so many bytes wait; a message must have less.
func newGRPCBody(body io.ReadCloser, most int64) *grpcBody {
	b := &grpcBody{ReadCloser: body, most: most}
	b.changed.L = &b.mu
	return b
}

func (b *grpcBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	for b.waiting >= b.most && !b.closed {
		b.changed.Wait()
	}
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting += int64(n)
	return n, err
}

// Close ends a read that waits.
func (b *grpcBody) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.changed.Broadcast()
	return b.ReadCloser.Close()
}

// take counts a message that a method has.
func (b *grpcBody) take(size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting -= int64(size)
	b.changed.Broadcast()
}

// takenMessages counts the messages that methods have for the bodies of their calls.
type takenMessages struct{}

// HandleRPC implements [stats.Handler].
func (takenMessages) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InPayload); ok {
		c, _ := ctx.Value(grpcCall{}).(grpcCaller) // serveGRPC has put it there
		c.body.take(in.WireLength)
	}
}

// TagRPC implements [stats.Handler].
func (takenMessages) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements [stats.Handler].
func (takenMessages) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (takenMessages) HandleConn(context.Context, stats.ConnStats) {}
