package uamp

import (
	"context"
	"net/http"

	"google.golang.org/grpc"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/grpcserve"
	"skep/spec/gateways/uamp/uamppb"
)

// NewServerFor returns the gRPC service as a server for a listener of its own, on which a caller
// calls.
func (g *Gateway) NewServerFor(c gateway.Caller) *grpc.Server {
	s := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(context.WithValue(grpcserve.NewContext(ctx, &http.Request{}), grpcCall{}, c), in)
	}))
	uamppb.RegisterAgentServer(s, grpcService{g: g})
	return s
}

// LargeHeld is how many places of large envelopes are held.
func (g *Gateway) LargeHeld() int { return len(g.large) }

// Stream serves a call of a caller, whose request has a context.
func (g *Gateway) Stream(ctx context.Context, c gateway.Caller, stream grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]) error {
	of := context.WithValue(context.WithoutCancel(ctx), grpcCall{}, c)
	return grpcService{g: g}.Stream(callStream{stream, grpcserve.NewContext(of, (&http.Request{}).WithContext(ctx))})
}

// callStream is a stream with the context of its call.
type callStream struct {
	grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]
	ctx context.Context
}

func (s callStream) Context() context.Context { return s.ctx }
