package uamp

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/coder/websocket"
	"google.golang.org/grpc"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/gateways/uamp/uamppb"
)

// Stream implements [uamppb.AgentServer]: the frames of a WebSocket as messages of gRPC. After
// the caller has sent its last frame the streams that it reads go on to their ends, or until
// their windows are used up: it acknowledges no more, and reads on by another call.
func (s grpcService) Stream(stream grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]) error {
	ctx, c, end := beginCall(stream.Context())
	defer end()
	leave, ok := s.g.sockets.enter(c.Caller)
	if !ok {
		return s.fail(ctx, &envelope.Fault{Code: envelope.Busy, Text: "too many connections: raise sessions of [gateways.uamp]", RetryAfter: busyPause}, nil)
	}
	defer leave()
	on := newSocket(s.g, c.Caller)
	on.lastRead = make(chan struct{})
	on.ctx, on.end = context.WithCancelCause(ctx)
	on.frames = &grpcFrames{stream: stream, end: on.end}
	defer on.running.Wait()
	defer on.end(nil)
	frames, ended := make(chan *uamppb.Frame), make(chan error, 1)
	go func() { ended <- receiveFrames(on.ctx, stream, frames) }() // it returns with the call
	for {
		select {
		case f := <-frames:
			s.take(on, f)
		case err := <-ended:
			switch {
			case on.ctx.Err() != nil: // both may be ready
				return s.why(ctx, context.Cause(on.ctx))
			case !errors.Is(err, io.EOF):
				return err
			}
			ended = nil
			close(on.lastRead)
			go func() { on.running.Wait(); on.end(io.EOF) }()
		case <-s.g.stopped:
			return s.fail(ctx, &envelope.Fault{Code: envelope.Busy, Text: "the host stops", RetryAfter: busyPause}, nil)
		case <-on.ctx.Done():
			return s.why(ctx, context.Cause(on.ctx))
		}
	}
}

// receiveFrames hands over what the caller sends.
func receiveFrames(ctx context.Context, stream grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame], frames chan<- *uamppb.Frame) error {
	for {
		f, err := stream.Recv()
		if err != nil {
			return err
		}
		select {
		case frames <- f:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take takes one frame.
func (s grpcService) take(on *socket, f *uamppb.Frame) {
	text, err := frameText(f)
	if err != nil {
		s.g.record(on.caller, envelope.Signed{}, nil, received{}, err)
		on.end(err)
		return
	}
	on.take(text)
}

// why is the status of a call that has ended.
func (s grpcService) why(ctx context.Context, cause error) error {
	var shut *envelope.Fault
	switch {
	case errors.Is(cause, io.EOF):
		return nil
	case errors.As(cause, &shut):
		return s.fail(ctx, shut, nil)
	case ctx.Err() != nil:
		return s.ended(ctx)
	}
	return s.fail(ctx, s.g.faultOf(cause), nil)
}

// ended is the status of a call whose context has ended.
func (s grpcService) ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // of the caller
		return s.fail(ctx, &envelope.Fault{Code: envelope.TimedOut, Text: "the call lasts longer than its caller's deadline: read the stream on by another call"}, nil)
	}
	return s.fail(ctx, credentialOver, nil)
}

// grpcFrames carries frames as messages of a call.
type grpcFrames struct {
	mu     sync.Mutex // one message is sent at a time
	stream interface{ Send(*uamppb.Frame) error }
	end    context.CancelCauseFunc
}

func (c *grpcFrames) writeFrame(_ context.Context, text []byte) error {
	f, err := frameMessage(text)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream.Send(f)
}

// shut ends the call. The document's code stands for the status of a WebSocket.
func (c *grpcFrames) shut(_ websocket.StatusCode, why *envelope.Fault) { c.end(why) }
