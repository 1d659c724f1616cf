package uamp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"skep/spec/gateways/uamp/uamppb"
)

// serveClear serves HTTP/1.1 and, as gRPC needs it, HTTP/2 without TLS.
func serveClear(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections() // calls stay open for a while
		s.Close()
	})
	return s
}

// clearClient calls by HTTP/2 without TLS what needs it, and else by HTTP/1.1.
func clearClient(t testing.TB) *http.Client {
	t.Helper()
	two := &http.Transport{Protocols: new(http.Protocols)}
	two.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(two.CloseIdleConnections)
	return &http.Client{Transport: clearTransport{two}}
}

type clearTransport struct{ two http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (c clearTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Content-Type") == "application/grpc" {
		return c.two.RoundTrip(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// serveCall serves the method Stream as a WebSocket is served.
func (l *lab) serveCall(w http.ResponseWriter, r *http.Request) {
	s := grpc.NewServer()
	uamppb.RegisterAgentServer(s, labCalls{l: l})
	s.ServeHTTP(w, r)
}

// labCalls is the service of the lab.
type labCalls struct {
	uamppb.UnimplementedAgentServer
	l *lab
}

// Stream implements [uamppb.AgentServer]. Its frames have no members but their JSON.
func (c labCalls) Stream(call grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]) error {
	ended := make(chan error, 1)
	end := func(err error) {
		select {
		case ended <- err:
		default:
		}
	}
	var mu sync.Mutex
	over := false
	s := &labSocket{
		l: c.l, streams: map[string]bool{},
		send: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				_ = call.Send(frameOf(text))
			}
		},
		shut: func(code websocket.StatusCode, reason string) {
			kind := codes.Internal
			if code == websocket.StatusPolicyViolation {
				kind = codes.PermissionDenied
			}
			end(grpcstatus.Error(kind, reason))
		},
	}
	go func() {
		for {
			f, err := call.Recv()
			if err != nil {
				end(err)
				return
			}
			text := f.GetEnvelope().GetJson()
			if f.GetDelta() != nil {
				text = f.GetDelta().GetJson()
			}
			s.take(text)
		}
	}()
	err := <-ended
	mu.Lock()
	defer mu.Unlock()
	over = true
	return err
}

// frameOf is a frame with its JSON alone.
func frameOf(text string) *uamppb.Frame {
	var head struct {
		Seq *int `json:"delta_seq"`
	}
	if json.Unmarshal([]byte(text), &head) == nil && head.Seq != nil {
		return &uamppb.Frame{Frame: &uamppb.Frame_Delta{Delta: &uamppb.Delta{Json: []byte(text)}}}
	}
	return &uamppb.Frame{Frame: &uamppb.Frame_Envelope{Envelope: &uamppb.Envelope{Json: []byte(text)}}}
}
