package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/gateways/uamp/uamppb"
)

// TestUAMPGRPC (U-055, U-056, U-057, G-042): the contract of gateways, held by UAMP over gRPC in
// both directions. A message that is looked at is looked at over HTTP.
func TestUAMPGRPC(t *testing.T) {
	t.Parallel()
	p := uampProtocol()
	dial := p.Dial
	p.Serve, p.Dial = serveUAMPGRPC, func(t testing.TB, url, token string) contract.Client {
		conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return uampGRPCClient{dial(t, url, token).(uampClient), uamppb.NewAgentClient(conn)}
	}
	p.Partner += fmt.Sprintf("\nbinding = \"grpc\"\nkeys = [%q, %q, %q]", uampKey("depot-1").key.Public().JWK(), uampKey("depot-7").key.Public().JWK(), uampKey("foreign").key.Public().JWK())
	contract.Run(t, p)
}

// uampGRPCClient is a realm's agent that calls the service.
type uampGRPCClient struct {
	uampClient
	agent uamppb.AgentClient
}

func (c uampGRPCClient) showing(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
}

// grpcReasons are the statuses of refusals that no envelope tells more of.
var grpcReasons = map[codes.Code]contract.Reason{
	codes.Unauthenticated: contract.NoCredential, codes.PermissionDenied: contract.Denied, codes.Unavailable: contract.Stopping,
	codes.ResourceExhausted: contract.Large, codes.NotFound: contract.Unknown, codes.InvalidArgument: contract.Invalid,
}

// grpcRefusal is a status as the suite sees it.
func grpcRefusal(err error) error {
	st, ok := status.FromError(err)
	if !ok || st.Code() == codes.Canceled {
		return err
	}
	for _, d := range st.Details() {
		if signed, is := d.(*uamppb.Envelope); is {
			return uampRefusal(0, signed.GetJson())
		}
	}
	code, _, _ := strings.Cut(st.Message(), " ")
	reason, known := uampReasons[code]
	if !known || strings.Contains(st.Message(), "the host stops") {
		reason, known = grpcReasons[st.Code()]
	}
	for code, of := range uampStatuses { // the host's own, before the service
		if strings.Contains(st.Message(), http.StatusText(code)) {
			reason, known = of, true
		}
	}
	if !known {
		return err
	}
	return &contract.Refused{Reason: reason, Text: st.Message()}
}

// Send implements [contract.Client].
func (c uampGRPCClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	s, err := c.Post(ctx, c.Encode(m))
	if err != nil || m.Kind == contract.Tell {
		return s, err
	}
	return c.Read(ctx, m, 0, func(contract.Piece) {})
}

// Post implements [contract.Client].
func (c uampGRPCClient) Post(ctx context.Context, body []byte) (s contract.State, err error) {
	if _, err = c.agent.Send(c.showing(ctx), &uamppb.Envelope{Json: body}); err != nil {
		return s, grpcRefusal(err)
	}
	return contract.State{Status: contract.Working}, nil
}

// Cancel implements [contract.Client].
func (c uampGRPCClient) Cancel(ctx context.Context, m contract.Message) error {
	e, k := c.newEnvelope(m)
	e.ID, e.Intent, e.ReplyTo, e.Ext = envelope.NewID(), envelope.Cancel, e.ID, nil
	e.Body = envelope.NewBody("text/plain", nil)
	_, err := c.Post(ctx, signedText(e, k))
	return err
}

// nothing is a stream that there is not: what the host answers to its acknowledgement shows that
// it has taken those before.
const nothing = "str-nothing"

// Read implements [contract.Client]. It acknowledges each delta.
func (c uampGRPCClient) Read(ctx context.Context, m contract.Message, from int64, each func(contract.Piece)) (s contract.State, err error) {
	ctx, cancel := context.WithCancel(c.showing(ctx))
	defer cancel()
	on, err := c.agent.Stream(ctx)
	if err != nil {
		return s, grpcRefusal(err)
	}
	ack := func(stream string, next int64) {
		payload, _ := json.Marshal(map[string]int64{"ack": next - 1})
		_ = on.Send(&uamppb.Frame{Frame: &uamppb.Frame_Delta{Delta: &uamppb.Delta{ // Recv has why it failed
			StreamId: stream, DeltaSeq: uint32(max(0, next-1)), Ts: c.at.UTC().Format("2006-01-02T15:04:05Z"), Type: "progress", Payload: payload,
		}}})
	}
	reader, name := &uampReader{from: from, each: each}, "str-"+string(uampID(m.ID))
	ack(name, 0)
	ack(nothing, 0)
	for !reader.ended {
		f, err := on.Recv()
		if err != nil {
			return s, grpcRefusal(err)
		}
		if err := c.take(f, reader); err != nil {
			return s, err
		}
		if d := f.GetDelta(); d.GetStreamId() == name {
			ack(name, reader.next)
		}
	}
	reader.state.Thread = c.thread(m)
	return reader.state, nil
}

// take takes a frame of the host.
func (c uampGRPCClient) take(f *uamppb.Frame, reader *uampReader) error {
	if d := f.GetDelta(); d != nil {
		var refused struct {
			Details struct{ Ack *int }
		}
		if json.Unmarshal(d.GetPayload(), &refused) == nil && refused.Details.Ack != nil {
			if d.GetStreamId() == nothing {
				reader.each(contract.Piece{})
				return nil
			}
			return uampRefusal(0, d.GetPayload())
		}
		return reader.delta(string(d.GetJson()))
	}
	e := f.GetEnvelope()
	if e.GetIntent() == string(envelope.Error) {
		return uampRefusal(0, e.GetJson())
	}
	return nil
}
