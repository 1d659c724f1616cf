package amp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/grpcmessage"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/grpcserve"
	"skep/host/internal/gateway/wire"
)

// connect serves the messages of a WebSocket as those of a call (M-094, M-097). After the caller has
// sent the last one the answers go on.
func (s mesh) connect(stream grpc.ServerStream) error {
	ctx, call, end := grpcserve.Begin(stream.Context())
	defer end()
	header := metadata.Pairs(strings.ToLower(maxBodyField), strconv.FormatInt(s.g.MaxBody, 10))
	if err := stream.SendHeader(header); err != nil {
		return err
	}
	of := callerOf(ctx)
	conn := &callConn{mesh: s, ctx: ctx, stream: stream, call: call, came: make(chan cameMessage), ended: make(chan struct{})}
	conn.members.Store(true)
	go conn.receive() // it returns with the call
	on := &socket{g: s.g, r: call.Request.WithContext(ctx), shown: of.shown, conn: conn, caller: of.Caller}
	on.serve()
	return conn.finish(on.caller)
}

// callConn is a call as the connection of a socket.
type callConn struct {
	mesh
	ctx    context.Context
	stream grpc.ServerStream
	call   grpcserve.Call
	came   chan cameMessage
	// members is set while what is written has members besides its text: until the caller sends
	// messages without.
	members atomic.Bool

	ending sync.Once
	ended  chan struct{} // closed when why is set
	why    *message.Fault

	mu sync.Mutex // one message is written at a time
	// over is set when nothing may be written any more.
	over bool
}

// cameMessage is what one read of the stream has brought.
type cameMessage struct {
	raw []byte
	err error
}

// receive hands over what the caller sends.
func (c *callConn) receive() {
	for {
		var m grpcmessage.Wire
		err := c.stream.RecvMsg(&m)
		select {
		case c.came <- cameMessage{m.Raw, err}:
		case <-c.stream.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *callConn) read(ctx context.Context, _ int64, _ wire.Pace) ([]byte, error) { // the body has both
	select {
	case m := <-c.came:
		if m.err != nil {
			return nil, c.endOfMessages(m.err)
		}
		text, members, err := c.g.textOf(c.token, m.raw)
		if f := new(message.Fault); errors.As(err, &f) {
			c.shut(0, f)
			return nil, err
		}
		c.members.Store(members)
		return text, nil
	case <-c.ended:
		return nil, c.why
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// endOfMessages is why no message comes any more.
func (c *callConn) endOfMessages(err error) error {
	failure := c.call.Failure()
	switch {
	case errors.Is(failure, wire.ErrNoPlace):
		c.shut(0, &message.Fault{Code: message.RateLimitExceeded, Text: failure.Error(), RetryAfter: retryAfter})
		return failure
	case failure != nil:
		c.shut(0, message.Faultf(message.Timeout, "", "%v", failure))
		return failure
	case status.Code(err) == codes.ResourceExhausted:
		c.shut(0, errMessageTooLarge)
		return errMessageTooLarge
	}
	return err // io.EOF among them
}

func (c *callConn) write(_ context.Context, text []byte) error {
	m := wireOf(text, c.members.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return fmt.Errorf("the call has ended: %w", gateway.ErrBusy)
	}
	return c.stream.SendMsg(m)
}

// deliver implements [socketConn]. A call has no word for what its other side has read.
func (c *callConn) deliver(ctx context.Context, text []byte) error { return c.write(ctx, text) }

func (c *callConn) shut(_ websocket.StatusCode, why *message.Fault) {
	c.ending.Do(func() { c.why = why; close(c.ended) })
}

// Close implements [sockets.Conn].
func (c *callConn) Close(_ websocket.StatusCode, reason string) error {
	c.shut(0, &message.Fault{Code: message.InsufficientResources, Reason: message.ReasonDraining, Text: reason, RetryAfter: retryAfter})
	return nil
}

// Ping implements [sockets.Conn]: the listener pings the connection of the call.
func (c *callConn) Ping(context.Context) error {
	select {
	case <-c.ended:
		return errors.New("the call has ended")
	default:
		return nil
	}
}

// keepAlive implements [socketConn].
func (c *callConn) keepAlive(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// finish ends the call, and returns its status.
func (c *callConn) finish(who gateway.Caller) error {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	in := message.Received{Token: c.token}
	select {
	case <-c.ended:
		return c.g.fail(c.ctx, who, in, c.why)
	default:
	}
	if c.ctx.Err() != nil {
		return c.g.fail(c.ctx, who, in, endOf(c.ctx))
	}
	return nil
}
