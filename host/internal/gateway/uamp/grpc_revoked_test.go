package uamp_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/spec/gateways/uamp/uamppb"
)

// renewing is a runtime that calls a function before it renews a caller.
type renewing struct {
	gateway.Runtime
	before func()
}

func (r renewing) Renew(c gateway.Caller) (gateway.Caller, error) {
	r.before()
	return r.Runtime.Renew(c)
}

// sending is a caller of Stream that sends frames without an end.
type sending struct {
	grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]
}

func (sending) Recv() (*uamppb.Frame, error) {
	return &uamppb.Frame{Frame: &uamppb.Frame_Delta{Delta: &uamppb.Delta{Json: []byte(`{}`)}}}, nil
}

func (sending) Send(*uamppb.Frame) error { return nil }

// TestStreamRevoked (U-055, U-104): a call whose credential ends while a frame is taken and the
// next one waits ends with UNAUTHENTICATED, whatever is seen first.
func TestStreamRevoked(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			ctx, revoke := context.WithCancelCause(t.Context())
			rt := renewing{gatewaytest.New(), func() {
				revoke(errors.New("the token is not valid any more"))
				synctest.Wait()
			}}
			g, err := uamp.New(uamp.Options{Runtime: rt, DID: hostDID, Keys: uamp.Keys{Current: private("h")}})
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Stream(ctx, gatewaytest.Realm("default", "lab"), sending{}); grpcstatus.Code(err) != codes.Unauthenticated {
				t.Errorf("%v", err)
			}
		})
	}
}
