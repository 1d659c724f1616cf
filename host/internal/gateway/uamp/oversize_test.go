package uamp_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/gateways/uamp/uamppb"
)

// TestTooLargeForTransport (U-104, V-U34): what is larger than any envelope is refused with the
// document's code over each binding, and stands in the log.
func TestTooLargeForTransport(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(o *uamp.Options) { o.MaxBody = 8 << 10 })
	large := strings.Repeat("x", 200<<10)
	logged := 0
	refused := func(what string) {
		t.Helper()
		until(t, what+" in the log", func() bool { return len(h.rt.Events()) > logged })
		if e := h.rt.Events()[logged]; e.Verdict != "refused" || !strings.Contains(e.Reason, "8192 bytes") && !strings.Contains(e.Reason, "at most 8192") {
			t.Errorf("%s: %+v", what, e)
		}
		logged++
	}
	unsigned(t, "a body of a known length", h.post(t, "lab-token", large), envelope.TooLarge)
	refused("a body of a known length")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.server.URL+"/v1/messages", io.MultiReader(strings.NewReader(large)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer lab-token")
	if rsp, err := h.client.Do(req); err != nil {
		t.Error(err)
	} else if rsp.Body.Close(); rsp.StatusCode != http.StatusRequestEntityTooLarge || rsp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("a body of an unknown length: %d %s", rsp.StatusCode, rsp.Header.Get("Content-Type"))
	}
	refused("a body of an unknown length")
	for name, message := range map[string][]byte{
		"a message of a socket": []byte(large),
		"a frame of a socket":   binary.BigEndian.AppendUint32(nil, 200<<10),
	} {
		p := h.dial(t, "lab-token")
		if err := p.conn.Write(t.Context(), websocket.MessageBinary, message); err != nil {
			t.Fatal(err)
		}
		_, err := p.next()
		if code := websocket.CloseStatus(err); code != websocket.StatusMessageTooBig || !strings.Contains(err.Error(), `"4.13 `) {
			t.Errorf("%s: %v", name, err)
		}
		refused(name)
	}
	c, ctx := h.overGRPC(t, "lab-token")
	_, err = c.Send(ctx, &uamppb.Envelope{Json: []byte(large)})
	h.refusedCall(t, "Send", err, codes.ResourceExhausted, "4.13 ")
	refused("Send")
	on, err := c.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = on.Send(&uamppb.Frame{Frame: &uamppb.Frame_Envelope{Envelope: &uamppb.Envelope{Json: []byte(large)}}}) // Recv has why it fails
	_, err = on.Recv()
	h.refusedCall(t, "Stream", err, codes.ResourceExhausted, "4.13 ")
	refused("Stream")
}

func (h *hive) refusedCall(t *testing.T, what string, err error, want codes.Code, begins string) {
	t.Helper()
	if st := grpcstatus.Convert(err); st.Code() != want || !strings.HasPrefix(st.Message(), begins) {
		t.Errorf("%s: %v, want %s %s", what, st, want, begins)
	}
}

// TestUnreadableCalls (U-055, U-104): a message of gRPC that is none of the service is the
// caller's fault, and has the document's code.
func TestUnreadableCalls(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	for _, method := range []string{"Send", "Subscribe", "GetManifest", "Stream"} {
		for name, message := range map[string][]byte{
			"no message of protobuf":   {0, 0, 0, 0, 2, 0xff, 0xff},
			"a message that is cut":    {0, 0, 0, 0, 9, 1},
			"a head that is cut":       {0, 0},
			"a text that is not UTF-8": {0, 0, 0, 0, 3, 0x0a, 1, 0xff},
		} {
			code, text := h.rawCall(t, method, message)
			if code != "3" || !strings.HasPrefix(text, "4.00") {
				t.Errorf("%s of %s: %s %q", name, method, code, text)
			}
		}
	}
}

// rawCall is a call with the bytes of its body, and its status.
func (h *hive) rawCall(t *testing.T, method string, body []byte) (code, text string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
	client.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.server.URL+"/uamp.v1.Agent/"+method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer lab-token")
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	rsp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	if _, err := io.Copy(io.Discard, rsp.Body); err != nil {
		t.Fatal(err)
	}
	return rsp.Trailer.Get("Grpc-Status"), rsp.Trailer.Get("Grpc-Message")
}

// TestAckWithoutStream (U-054, U-064): an acknowledgement that names no stream ends the connection
// with the reason, since no delta can answer it.
func TestAckWithoutStream(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	p := h.dial(t, "lab-token")
	p.send(`{"delta_seq":0,"ts":"2025-08-06T17:00:00Z","type":"progress"}`)
	m, err := p.next()
	if code := websocket.CloseStatus(err); code != websocket.StatusInvalidFramePayloadData || !strings.Contains(err.Error(), `"4.00 stream_id is missing"`) {
		t.Errorf("%s, %v", m.text, err)
	}
}
