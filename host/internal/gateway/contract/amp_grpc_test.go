package contract_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/contract"
	"skep/spec/gateways/amp/amppb"
)

// TestAMPGRPC (M-020, M-091, M-097, M-098, G-042): the contract of gateways, held by AMP over gRPC in
// both directions. A message that is looked at is looked at over HTTP.
func TestAMPGRPC(t *testing.T) {
	t.Parallel()
	p := ampProtocol()
	p.Serve, p.Dial = serveAMPGRPC, func(t testing.TB, url, token string) contract.Client {
		conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return ampGRPCClient{ampClient{amptest.Client{URL: url + "/amp/v1/invoke", Token: token}}, amppb.NewAgentMeshClient(conn)}
	}
	p.Partner += "\nbinding = \"grpc\""
	contract.Run(t, p)
}

// ampGRPCClient is a realm's agent that calls the service.
type ampGRPCClient struct {
	ampClient
	mesh amppb.AgentMeshClient
}

// Send implements [contract.Client].
func (c ampGRPCClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	return c.Post(ctx, c.Encode(m))
}

// Post implements [contract.Client].
func (c ampGRPCClient) Post(ctx context.Context, body []byte) (contract.State, error) {
	var trailer metadata.MD
	m, err := c.mesh.Invoke(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.Token), &amppb.Message{RawJson: body}, grpc.Trailer(&trailer))
	switch {
	case err != nil:
		return ampCallRefused(err)
	case len(m.GetRawJson()) == 0 || len(trailer.Get("location")) > 0:
		return contract.State{Status: contract.Working}, nil
	}
	return ampState(ampReplyOf(m.GetRawJson()), nil)
}

// ampReplyOf is a text of the host as a reply.
func ampReplyOf(text []byte) amptest.Reply {
	r := amptest.Reply{Status: http.StatusOK, Text: string(text)}
	if m, err := amptest.Parse(text); err == nil {
		r.Message = &m
	}
	return r
}

// ampCallReasons are the statuses of the host's own refusals, before the service.
var ampCallReasons = map[codes.Code]contract.Reason{
	codes.Unauthenticated: contract.NoCredential, codes.PermissionDenied: contract.Denied, codes.ResourceExhausted: contract.Large, codes.Unavailable: contract.Stopping,
}

// ampCallRefused is what a status of a call means.
func ampCallRefused(err error) (contract.State, error) {
	st, is := status.FromError(err)
	if !is || st.Code() == codes.Canceled {
		return contract.State{}, err
	}
	for _, d := range st.Details() {
		if m, is := d.(*amppb.Message); is {
			if strings.Contains(string(m.GetRawJson()), `"TOO_LARGE"`) {
				return contract.State{}, &contract.Refused{Reason: contract.Large, Text: st.Message()}
			}
			return ampState(ampReplyOf(m.GetRawJson()), nil)
		}
	}
	reason, known := ampCallReasons[st.Code()]
	for code, of := range map[int]contract.Reason{http.StatusTooManyRequests: contract.Busy, http.StatusServiceUnavailable: contract.Stopping, http.StatusRequestEntityTooLarge: contract.Large} {
		if strings.Contains(st.Message(), fmt.Sprint(code)) {
			reason, known = of, true
		}
	}
	if !known {
		return contract.State{}, err
	}
	return contract.State{}, &contract.Refused{Reason: reason, Text: st.Message()}
}

// serveAMPGRPC serves a foreign agent that answers the call.
func serveAMPGRPC(t testing.TB, address string, handle contract.Handler) (string, func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	own := grpc.NewServer(grpc.MaxRecvMsgSize(4 << 20))
	amppb.RegisterAgentMeshServer(own, ampCalls{handle: handle})
	server := &http.Server{Handler: own, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close() }
}

// ampCalls is the service of the foreign agent.
type ampCalls struct {
	amppb.UnimplementedAgentMeshServer
	handle contract.Handler
}

// Invoke implements [amppb.AgentMeshServer].
func (c ampCalls) Invoke(ctx context.Context, m *amppb.Message) (*amppb.Message, error) {
	in, err := amptest.Parse(m.GetRawJson())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	code, answer := answerAMP(ctx, in, c.handle)
	switch {
	case answer == nil && code == http.StatusAccepted:
		return &amppb.Message{}, nil
	case answer == nil:
		return nil, status.Error(codes.Internal, "INSUFFICIENT_RESOURCES: no")
	case code == http.StatusOK:
		return &amppb.Message{RawJson: []byte(answer.Text())}, nil
	}
	st, err := status.New(codes.InvalidArgument, "INVALID_SCHEMA: no").WithDetails(&amppb.Message{RawJson: []byte(answer.Text())})
	if err != nil {
		return nil, err
	}
	return nil, st.Err()
}

// Emit implements [amppb.AgentMeshServer].
func (c ampCalls) Emit(ctx context.Context, m *amppb.Message) (*amppb.Receipt, error) {
	_, err := c.Invoke(ctx, m)
	return &amppb.Receipt{Id: m.GetId()}, err
}
