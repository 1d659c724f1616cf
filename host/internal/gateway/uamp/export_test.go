package uamp

import (
	"context"
	"net/http"

	"google.golang.org/grpc"

	"skep/host/internal/gateway"
	"skep/spec/gateways/uamp/uamppb"
)

// NewServerFor returns the gRPC service as a server for a listener of its own, on which a caller
// calls.
func (g *Gateway) NewServerFor(c gateway.Caller) *grpc.Server {
	s := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(context.WithValue(ctx, grpcCall{}, grpcCaller{c, &http.Request{}}), in)
	}))
	uamppb.RegisterAgentServer(s, grpcService{g: g})
	return s
}

// LargeHeld is how many places of large envelopes are held.
func (g *Gateway) LargeHeld() int { return len(g.large) }
