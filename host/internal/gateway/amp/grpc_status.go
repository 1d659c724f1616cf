package amp

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/grpcmessage"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/grpcserve"
	"skep/spec/gateways/amp/amppb"
)

// grpcCodes are the codes of gRPC for codes of the document
// (https://grpc.io/docs/guides/status-codes/).
var grpcCodes = map[message.Code]codes.Code{
	message.AgentNotFound: codes.NotFound, message.CapabilityNotFound: codes.NotFound, message.ContextNotFound: codes.NotFound,
	message.AuthenticationFailed: codes.Unauthenticated, message.RateLimitExceeded: codes.ResourceExhausted, message.Timeout: codes.DeadlineExceeded,
	message.InvalidSchema: codes.InvalidArgument, message.InsufficientResources: codes.Unavailable,
}

// ownGRPCCodes are the codes of gRPC for reasons that have another one than their code.
var ownGRPCCodes = map[string]codes.Code{
	message.ReasonForbidden: codes.PermissionDenied, message.ReasonInternal: codes.Internal, message.ReasonTooLarge: codes.ResourceExhausted,
	message.ReasonConflict: codes.AlreadyExists, message.ReasonVersionConflict: codes.Aborted,
}

func grpcCodeOf(f *message.Fault) codes.Code {
	if own, has := ownGRPCCodes[f.Reason]; has {
		return own
	}
	return grpcCodes[f.Code]
}

// maxDetails bounds the details of a status, in bytes: several libraries refuse a header of more
// than 8 KiB, and show another error then.
const maxDetails = 4 << 10

// statusOf is a fault of a message as the status of its call: its text begins with the document's
// code, and its details have the error message.
func (g *Gateway) statusOf(c gateway.Caller, in message.Received, f *message.Fault) *status.Status {
	return g.statusWith(c, in.Token, errorTo(in, f), f)
}

// statusWith is the status with an error message of a fault.
func (g *Gateway) statusWith(c gateway.Caller, token string, m message.Message, f *message.Fault) *status.Status {
	st := status.New(grpcCodeOf(f), string(f.Code)+": "+gateway.Excerpt(f.Text))
	text, err := g.write(c, token, m)
	if err != nil {
		g.Log.Error("amp: an error cannot be written", "error", err)
		return st
	}
	detail, err := grpcmessage.Message(text)
	if err != nil || proto.Size(detail) > maxDetails {
		detail = &amppb.Message{RawJson: text}
	}
	if with, err := st.WithDetails(detail); err == nil && proto.Size(detail) <= maxDetails {
		return with
	}
	return st
}

// fail is the error of a method whose message was refused.
func (g *Gateway) fail(ctx context.Context, c gateway.Caller, in message.Received, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = endOf(ctx) // the host does nothing for a call that has ended
	}
	f := g.faultOf(err)
	if f.RetryAfter > 0 {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("retry-after", grpcserve.Seconds(f.RetryAfter))) // it fails outside of a call
	}
	return g.statusOf(c, in, f).Err()
}

// wireOf is a message of ours as bytes, with its members besides if they are wanted. A number that
// they cannot have is in the text alone.
func wireOf(text []byte, members bool) *grpcmessage.Wire {
	if members {
		if m, err := grpcmessage.Message(text); err == nil {
			if raw, err := proto.Marshal(m); err == nil {
				return &grpcmessage.Wire{Raw: raw}
			}
		}
	}
	return &grpcmessage.Wire{Raw: grpcmessage.Raw(text)}
}
