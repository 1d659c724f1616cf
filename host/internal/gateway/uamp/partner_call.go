package uamp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/grpcconn"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/turn/egress"
	"skep/spec/gateways/uamp/uamppb"
)

// partnerCall is a call of gRPC to a partner, the method Stream of its service (U-055).
type partnerCall struct {
	grpcFrames
	call grpc.BidiStreamingClient[uamppb.Frame, uamppb.Frame]
}

// beginPartnerCall begins a call. Its first frame shows that the partner takes it: a server of
// gRPC need not answer before it sends one.
func beginPartnerCall(s *socket, key socketKey) (partnerConn, error) {
	conn := grpcconn.Conn{Client: key.client, Base: key.url, MaxMessage: 2*int(s.g.MaxBody) + envelopeRoom + grpcRoom} // a delta is there twice
	call, err := uamppb.NewAgentClient(conn).Stream(s.ctx)
	if err != nil {
		return nil, gateway.Refuse("the url of the partner cannot be called: %v", err)
	}
	return &partnerCall{grpcFrames: grpcFrames{stream: call, end: s.end}, call: call}, nil
}

// writeFrame implements [frameConn]. A frame that is not taken in time ends the call.
func (c *partnerCall) writeFrame(ctx context.Context, text []byte) error {
	stop := context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })
	defer stop()
	err := c.grpcFrames.writeFrame(ctx, text)
	if errors.Is(err, io.EOF) { // run ends the socket with the reason
		<-ctx.Done()
		err = context.Cause(ctx)
	}
	return err
}

func (c *partnerCall) run(s *socket) {
	s.running.Go(func() {
		select {
		case <-s.g.stopped:
			s.end(errHostStops)
		case <-s.ctx.Done():
		}
	})
	for frames := 0; ; frames++ {
		f, err := c.call.Recv()
		if err != nil {
			s.end(endOfCall(err, frames, retryAfter(c.call.Trailer())))
			return
		}
		text, err := frameText(f)
		if err != nil {
			s.g.record(s.caller, envelope.Signed{}, nil, received{}, err)
			s.end(err)
			return
		}
		if !s.take(text) {
			return
		}
	}
}

// errHostStops ends what a host that stops has open.
var errHostStops = errors.New("the host stops")

func (c *partnerCall) leave() { c.end(errSocketEnded) }
func (c *partnerCall) drop()  { c.end(errSocketEnded) }

// callEndError is the status with which a partner has ended a call. The codes of WebSockets stand
// for the ones of gRPC.
type callEndError struct {
	code   websocket.StatusCode
	status *status.Status
}

// Error implements error.
func (e *callEndError) Error() string {
	return "the partner ends the call: " + e.status.Code().String() + " " + e.status.Message()
}

// retryAfter is the pause that the trailer of a refused call asks for, 0 without one.
func retryAfter(trailer metadata.MD) time.Duration {
	return egress.RetryAfter(http.Header{"Retry-After": trailer.Get("retry-after")}.Get("Retry-After"), time.Now())
}

// endOfCall is why a call has ended, after so many frames of the partner. A fault of one message
// refuses no other envelope. A call that is refused for a time has brought none.
func endOfCall(err error, frames int, wait time.Duration) error {
	var answered *gateway.StatusError
	var wrong *gateway.Refusal
	st, isStatus := status.FromError(err)
	switch {
	case frames == 0 && wait > 0 && isBusyCall(err):
		return &envelope.Fault{Code: envelope.Busy, Text: err.Error(), RetryAfter: wait}
	case errors.Is(err, io.EOF):
		return errSocketEnded
	case errors.As(err, &answered):
		return err
	case errors.As(err, &wrong):
		return errors.New(wrong.Error())
	case !isStatus:
		return err
	}
	return &callEndError{closeCodeOf(st), st}
}

// isBusyCall reports whether a partner takes no more calls for now.
func isBusyCall(err error) bool {
	var answered *gateway.StatusError
	if errors.As(err, &answered) {
		return answered.Code == http.StatusTooManyRequests || answered.Code == http.StatusServiceUnavailable
	}
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.ResourceExhausted
}

func closeCodeOf(st *status.Status) websocket.StatusCode {
	switch st.Code() {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented:
		return websocket.StatusPolicyViolation
	case codes.InvalidArgument:
		return websocket.StatusInvalidFramePayloadData
	case codes.ResourceExhausted:
		if !strings.HasPrefix(st.Message(), string(envelope.TooMany)) {
			return websocket.StatusMessageTooBig
		}
	}
	return websocket.StatusInternalError
}

// isDeniedCall reports whether a partner has refused the call itself: its credential or its method.
func isDeniedCall(err error) bool {
	var answered *gateway.StatusError
	if errors.As(err, &answered) {
		return answered.Code == http.StatusUnauthorized || answered.Code == http.StatusForbidden
	}
	var ended *callEndError
	return errors.As(err, &ended) && ended.code == websocket.StatusPolicyViolation
}
