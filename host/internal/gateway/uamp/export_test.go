package uamp

import (
	"context"
	"io"
	"net/http"

	"google.golang.org/grpc"

	"skep/host/internal/gateway"
	"skep/spec/gateways/uamp/uamppb"
)

// NewServerFor returns the gRPC service as a server for a listener of its own, on which a caller
// calls.
func (g *Gateway) NewServerFor(c gateway.Caller) *grpc.Server {
	s := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(context.WithValue(ctx, grpcCall{}, grpcCaller{Caller: c, request: &http.Request{}}), in)
	}))
	uamppb.RegisterAgentServer(s, grpcService{g: g})
	return s
}

// NewGRPCBody returns the body of a call, whose messages have at most so many bytes.
func NewGRPCBody(body io.ReadCloser, most int64) io.ReadCloser { return newGRPCBody(body, most) }

// LargeHeld is how many places of large envelopes are held.
func (g *Gateway) LargeHeld() int { return len(g.large) }

// Stream serves a call of a caller, whose request has a context.
func (g *Gateway) Stream(ctx context.Context, c gateway.Caller, stream grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]) error {
	call := grpcCaller{Caller: c, request: (&http.Request{}).WithContext(ctx)}
	return grpcService{g: g}.Stream(callStream{stream, context.WithValue(context.WithoutCancel(ctx), grpcCall{}, call)})
}

// callStream is a stream with the context of its call.
type callStream struct {
	grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]
	ctx context.Context
}

func (s callStream) Context() context.Context { return s.ctx }
