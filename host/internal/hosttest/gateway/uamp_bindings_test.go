package gateway_test

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"skep/spec/gateways/uamp/uamppb"
)

// uampBinding sends envelopes and reads streams by one binding.
type uampBinding interface {
	send(t *testing.T, text string)
	// window reads the deltas from one on until the window is used up or the stream has ended.
	window(t *testing.T, stream string, from int) []string
}

// httpBinding reads by server-sent events.
type httpBinding struct {
	s     *uampSite
	calls *http.Client
}

func (b httpBinding) send(t *testing.T, text string) {
	t.Helper()
	if rsp, got := b.s.send(t, b.calls, http.MethodPost, "/v1/messages", labToken, text); rsp.StatusCode != http.StatusAccepted {
		t.Fatalf("%s %s", rsp.Status, got)
	}
}

func (b httpBinding) window(t *testing.T, stream string, from int) (list []string) {
	t.Helper()
	var header []string
	if from > 0 {
		header = []string{"Last-Event-ID", strconv.Itoa(from - 1)}
	}
	_, text := b.s.send(t, b.calls, http.MethodGet, "/v1/stream/"+stream, labToken, "", header...)
	for line := range strings.Lines(text) {
		if data, is := strings.CutPrefix(line, "data: "); is {
			list = append(list, strings.TrimSpace(data))
		}
	}
	return list
}

// socketBinding connects for each message.
type socketBinding struct{ s *uampSite }

// open returns a connection on which a frame was sent, and what reads one.
func (b socketBinding) open(t *testing.T, text string) (next func() []byte, end func()) {
	t.Helper()
	calls := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: b.s.roots, ServerName: "hive.example"}}}
	conn, _, err := websocket.Dial(t.Context(), "wss://"+b.s.Addr()+"/uamp/1/ws", &websocket.DialOptions{
		HTTPClient: calls, HTTPHeader: http.Header{"Authorization": {"Bearer " + labToken}},
	})
	if err == nil {
		err = conn.Write(t.Context(), websocket.MessageBinary, append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() []byte {
		_, message, err := conn.Read(t.Context())
		if err != nil || len(message) < 4 || len(message) != 4+int(binary.BigEndian.Uint32(message)) {
			t.Fatalf("%q, %v", message, err)
		}
		return message[4:]
	}, func() { _ = conn.CloseNow(); calls.CloseIdleConnections() }
}

func (b socketBinding) send(t *testing.T, text string) {
	t.Helper()
	next, end := b.open(t, text)
	defer end()
	if receipt := next(); !strings.Contains(string(receipt), `"intent":"progress"`) {
		t.Fatalf("%s", receipt)
	}
}

func (b socketBinding) window(t *testing.T, stream string, from int) (list []string) {
	t.Helper()
	next, end := b.open(t, fmt.Sprintf(`{"delta_seq":%d,"stream_id":%q,"ts":"2025-08-06T17:00:00Z","type":"progress","payload":{"ack":%d}}`, max(0, from-1), stream, from-1))
	defer end()
	for len(list) < 2 {
		var d struct {
			Seq  *int `json:"delta_seq"`
			Type string
		}
		text := next()
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if d.Seq == nil {
			continue
		}
		if list = append(list, string(text)); d.Type == "done" {
			break
		}
	}
	return list
}

// grpcBinding calls the service.
type grpcBinding struct{ agent uamppb.AgentClient }

func (s *uampSite) overGRPC(t *testing.T) grpcBinding {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+s.Addr(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: s.roots, ServerName: "hive.example"})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return grpcBinding{uamppb.NewAgentClient(conn)}
}

func (b grpcBinding) send(t *testing.T, text string) {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+labToken)
	if _, err := b.agent.Send(ctx, &uamppb.Envelope{Json: []byte(text)}); err != nil {
		t.Fatal(err)
	}
}

func (b grpcBinding) window(t *testing.T, stream string, from int) (list []string) {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+labToken)
	in, err := b.agent.Subscribe(ctx, &uamppb.StreamRequest{StreamId: stream, From: uint32(from)})
	if err != nil {
		t.Fatal(err)
	}
	for {
		d, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(d.GetJson()))
	}
}

// TestUAMPBindings (U-051, U-052, U-054, U-055, U-056, U-064): an envelope is sent and the first
// window of its stream is read by each binding; each other binding reads on from there, with the
// same bytes, to the end.
func TestUAMPBindings(t *testing.T) {
	t.Parallel()
	s := newUAMPSite(t, "http3 = true")
	list := map[string]uampBinding{
		"HTTP/2": httpBinding{s, s.client(t, func(*tls.Config, *http.Transport) {})}, "HTTP/3": httpBinding{s, s.client3(t)},
		"WebSocket": socketBinding{s}, "gRPC": s.overGRPC(t),
	}
	for opens, first := range list {
		t.Run(opens, func(t *testing.T) {
			t.Parallel()
			text, stream := s.askFor(t, "a", "b", "c", "d", "e")
			first.send(t, text)
			begin := first.window(t, stream, 0)
			if len(begin) != 2 {
				t.Fatalf("a window of 2 has %q", begin)
			}
			var want []string
			for goesOn, next := range list {
				got := slices.Clone(begin)
				for len(got) < 6 {
					window := next.window(t, stream, len(got))
					if len(window) != 2 {
						t.Fatalf("over %s come after %d deltas %q", goesOn, len(got), window)
					}
					got = append(got, window...)
				}
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) || !strings.Contains(got[5], `"type":"done"`) {
					t.Errorf("over %s it is\n%s\nnot\n%s", goesOn, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}
