package contract_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/gateways/uamp/uamppb"
)

// serveUAMPGRPC runs a foreign agent that answers over gRPC without TLS.
func serveUAMPGRPC(t testing.TB, address string, handle contract.Handler) (string, func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	own := grpc.NewServer(grpc.MaxRecvMsgSize(4 << 20))
	uamppb.RegisterAgentServer(own, uampCalls{s: &uampServer{handle: handle, asked: map[envelope.ID]*uampStream{}}})
	server := &http.Server{Handler: own, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close() }
}

// uampCalls is the service of the foreign agent.
type uampCalls struct {
	uamppb.UnimplementedAgentServer
	s *uampServer
}

// Stream implements [uamppb.AgentServer].
func (c uampCalls) Stream(call grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]) error {
	if md, _ := metadata.FromIncomingContext(call.Context()); len(md.Get("authorization")) == 0 {
		return status.Error(codes.Unauthenticated, "4.01 who are you?")
	}
	var mu sync.Mutex
	over := false // nothing may be sent after the call
	own := &uampServed{s: c.s, reading: map[string]bool{}, next: func(context.Context) ([]byte, error) {
		f, err := call.Recv()
		if d := f.GetDelta(); d != nil {
			return d.GetJson(), err
		}
		return f.GetEnvelope().GetJson(), err
	}}
	own.send = func(_ context.Context, text []byte) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		_ = call.Send(uampFrame(text)) // a call that has ended is seen by Recv
	}
	own.serve(call.Context())
	mu.Lock()
	defer mu.Unlock()
	over = true
	return nil
}

// uampFrame is a frame with its JSON alone.
func uampFrame(text []byte) *uamppb.Frame {
	var head struct {
		Seq *int `json:"delta_seq"`
	}
	if json.Unmarshal(text, &head) == nil && head.Seq != nil {
		return &uamppb.Frame{Frame: &uamppb.Frame_Delta{Delta: &uamppb.Delta{Json: text}}}
	}
	return &uamppb.Frame{Frame: &uamppb.Frame_Envelope{Envelope: &uamppb.Envelope{Json: text}}}
}
