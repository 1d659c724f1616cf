package grpcconn_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/grpcconn"
	"skep/spec/gateways/uamp/uamppb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a service that returns the frames of a call, and ends it with what an envelope wants.
type echo struct {
	uamppb.UnimplementedAgentServer
}

// Stream implements [uamppb.AgentServer].
func (echo) Stream(call grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]) error {
	for {
		f, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if id := f.GetEnvelope().GetId(); id == "refuse" {
			return status.Error(codes.PermissionDenied, "not you: 100 %")
		}
		if err := call.Send(f); err != nil {
			return err
		}
	}
}

// conn serves a handler over HTTP/2 without TLS, and calls it.
func conn(t *testing.T, h http.Handler) grpcconn.Conn {
	t.Helper()
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = two
	s.Start()
	t.Cleanup(s.Close)
	calls := &http.Transport{Protocols: two}
	t.Cleanup(calls.CloseIdleConnections)
	return grpcconn.Conn{Client: &http.Client{Transport: calls}, Base: s.URL, MaxMessage: 1 << 10}
}

// begin begins a call of the echo.
func begin(t *testing.T, ctx context.Context) uamppb.Agent_StreamClient {
	t.Helper()
	service := grpc.NewServer()
	uamppb.RegisterAgentServer(service, echo{})
	call, err := uamppb.NewAgentClient(conn(t, service)).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func frame(id, content string) *uamppb.Frame {
	return &uamppb.Frame{Frame: &uamppb.Frame_Envelope{Envelope: &uamppb.Envelope{Id: id, Json: []byte(content)}}}
}

// TestStream (U-055): messages go both ways in one call until its caller sends no more, the
// partner refuses, a message is too long, or the context ends. Nothing goes on after it.
func TestStream(t *testing.T) {
	for name, c := range map[string]struct {
		last *uamppb.Frame // nil for none
		want func(error) bool
	}{
		"the caller ends it": {nil, func(err error) bool { return errors.Is(err, io.EOF) }},
		"the partner refuses": {frame("refuse", ""), func(err error) bool {
			return status.Code(err) == codes.PermissionDenied && strings.HasSuffix(err.Error(), "100 %")
		}},
		"a message is too long":   {frame("x", strings.Repeat("x", 2<<10)), func(err error) bool { return errors.As(err, new(*gateway.Refusal)) }},
		"the context of it ended": {frame("wait", ""), func(err error) bool { return err != nil && !errors.Is(err, io.EOF) }},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		call := begin(t, ctx)
		for _, id := range []string{"1", "2"} {
			if err := call.Send(frame(id, "{}")); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if f, err := call.Recv(); err != nil || f.GetEnvelope().GetId() != id {
				t.Fatalf("%s: %v, %v", name, f, err)
			}
		}
		switch {
		case c.last == nil:
			if err := call.CloseSend(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		default:
			if err := call.Send(c.last); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if c.last.GetEnvelope().GetId() == "wait" {
			if _, err := call.Recv(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		if _, err := call.Recv(); !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if err := call.Send(frame("3", "")); err == nil {
			t.Errorf("%s: a message is sent after the end", name)
		}
	}
}

// TestStreamRefused: what answers a call in place of the service is a status of HTTP.
func TestStreamRefused(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	call, err := uamppb.NewAgentClient(conn(t, refuse)).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var answered *gateway.StatusError
	if _, err := call.Recv(); !errors.As(err, &answered) || answered.Code != http.StatusServiceUnavailable {
		t.Error(err)
	}
}

// TestStreamCut (U-055): a response that ends within a message is no end of the call.
func TestStreamCut(t *testing.T) {
	for name, sent := range map[string]string{"in a head": "\x00\x00\x00", "after a head": "\x00\x00\x00\x00\x04", "in a message": "\x00\x00\x00\x00\x04ab"} {
		cut := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
			_, _ = io.WriteString(w, sent) // the client may have gone
		})
		call, err := uamppb.NewAgentClient(conn(t, cut)).Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call.Recv(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
