package uamp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	"skep/spec/gateways/uamp/uamppb"
)

// overGRPC is a client of the hive's service, and a context that shows a token.
func (h *hive) overGRPC(t testing.TB, token string, more ...grpc.DialOption) (uamppb.AgentClient, context.Context) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(h.server.URL, "http://"), append(more, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return uamppb.NewAgentClient(conn), metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

// subscribe reads a stream from a delta on.
func subscribe(t *testing.T, c uamppb.AgentClient, ctx context.Context, stream string, from int) (list []*uamppb.Delta, err error) {
	t.Helper()
	in, err := c.Subscribe(ctx, &uamppb.StreamRequest{StreamId: stream, From: uint32(from)})
	if err != nil {
		t.Fatal(err)
	}
	for {
		d, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, d)
	}
}

// typed is an envelope in the members of its message, without its json.
func typed(t *testing.T, h *hive, e envelope.Envelope) *uamppb.Envelope {
	t.Helper()
	text := []byte(signedBy(t, h.own, e))
	var s struct{ ID, TS, Sig string }
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return &uamppb.Envelope{
		Id: s.ID, Ts: s.TS, From: e.From, To: e.To, Intent: string(e.Intent), Sig: s.Sig, StreamId: e.Stream,
		Body: &uamppb.Body{Type: e.Body.Type, Content: e.Body.Content},
	}
}

// TestGRPCSend (U-055, U-056, U-104, V-U20, V-U22): an envelope is taken as over HTTP, as JSON or
// in members, and a repeat has the same stream. Refusals have the document's code, and the signed
// error.
func TestGRPCSend(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(o *uamp.Options) { o.MaxBody = 8 << 10 })
	h.expose("sum", func(context.Context, *gatewaytest.Turn) gateway.Answer { return gateway.Answer{Body: "4"} })
	c, ctx := h.overGRPC(t, "lab-token")
	e := newAsk("sum", "2+2")
	text := []byte(signedBy(t, h.own, e))
	for n, in := range []*uamppb.Envelope{{Json: text}, {Json: text}, typed(t, h, e)} {
		r, err := c.Send(ctx, in)
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		if want := "str-" + string(e.ID); r.GetStreamId() != want || r.GetLocation() != "/v1/stream/"+want || r.GetError() != nil {
			t.Errorf("%d: %v", n, r)
		}
	}
	list, err := subscribe(t, c, ctx, "str-"+string(e.ID), 0)
	if err != nil || len(list) != 1 || list[0].GetType() != "done" || !strings.Contains(string(list[0].GetPayload()), `"answer":4`) {
		t.Fatalf("%v, %v", list, err)
	}
	if lines := h.read(t, "/v1/stream/str-"+string(e.ID)); strings.Join(lines, "") != string(list[0].GetJson()) {
		t.Errorf("over HTTP it is %q, not %s", lines, list[0].GetJson())
	}
	altered := newAsk("sum", "2+2")
	nobody, large := newAsk("nobody", "x"), newAsk("sum", strings.Repeat("x", 9<<10))
	for name, f := range map[string]struct {
		text   string
		code   codes.Code
		begins string
		signed bool
	}{
		"altered": {strings.Replace(signedBy(t, h.own, altered), "2+2", "3+3", 1), codes.Unauthenticated, "4.01 ", true},
		"nobody":  {signedBy(t, h.own, nobody), codes.NotFound, "4.04 ", true},
		"large":   {signedBy(t, h.own, large), codes.ResourceExhausted, "4.13 ", false},
		"no JSON": {"{", codes.InvalidArgument, "4.00 ", false},
	} {
		_, err := c.Send(ctx, &uamppb.Envelope{Json: []byte(f.text)})
		st := grpcstatus.Convert(err)
		if st.Code() != f.code || !strings.HasPrefix(st.Message(), f.begins) || (len(st.Details()) == 1) != f.signed {
			t.Errorf("%s: %v, %d details", name, st, len(st.Details()))
		}
		if f.signed {
			signed, _ := st.Details()[0].(*uamppb.Envelope)
			s, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read(signed.GetJson())
			if err == nil {
				_, err = seal.Verify(s.Sig, s.Sums, []seal.PublicKey{keyOf(t, s.From)})
			}
			if err != nil || s.Intent != envelope.Error {
				t.Errorf("%s: %s: %v", name, signed.GetJson(), err)
			}
		}
	}
	for token, want := range map[string]codes.Code{"user-token": codes.PermissionDenied, "other": codes.Unauthenticated} {
		c, ctx := h.overGRPC(t, token)
		if _, err := c.Send(ctx, &uamppb.Envelope{Json: text}); grpcstatus.Code(err) != want {
			t.Errorf("%s: %v", token, err)
		}
	}
	for did, want := range map[string]codes.Code{"": codes.OK, agentDID("sum"): codes.OK, agentDID("nobody"): codes.NotFound} {
		if m, err := c.GetManifest(ctx, &uamppb.ManifestRequest{Did: did}); grpcstatus.Code(err) != want || err == nil && strings.Count(m.GetJws(), ".") != 2 {
			t.Errorf("the manifest of %q: %v, %v", did, m, err)
		}
	}
	for stream, want := range map[string]codes.Code{"str-nothing": codes.NotFound, "str-" + string(e.ID): codes.Aborted} {
		if _, err := subscribe(t, c, ctx, stream, 7); grpcstatus.Code(err) != want {
			t.Errorf("%s: %v", stream, err)
		}
	}
}

// TestGRPCStream (U-055, U-056, U-061, U-064, V-U26, V-U28): a stream that is opened over HTTP and read on
// over a WebSocket ends over gRPC: never more than the window is without acknowledgement.
func TestGRPCStream(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	h.expose("talks", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		for n := range 6 {
			turn.Chunk(fmt.Sprint(n))
		}
		return gateway.Answer{Body: "end"}
	})
	e := newAsk("talks", "go")
	e.Window = 2
	name := "str-" + string(e.ID)
	h.take(t, e)
	if lines := h.read(t, "/v1/stream/"+name); len(lines) != 2 {
		t.Fatalf("over HTTP come %d deltas", len(lines))
	}
	p := h.dial(t, "lab-token")
	p.ack(name, 1)
	for n := 2; n < 4; n++ {
		if m := p.read(); m.Seq == nil || *m.Seq != n {
			t.Fatalf("over the WebSocket: %s", m.text)
		}
	}
	c, ctx := h.overGRPC(t, "lab-token")
	if list, err := subscribe(t, c, ctx, name, 2); err != nil || len(list) != 2 || list[1].GetDeltaSeq() != 3 {
		t.Errorf("a window of two has %v, %v", list, err)
	}
	on, err := c.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send := func(f *uamppb.Frame) {
		t.Helper()
		if err := on.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	ack := func(seq int) {
		t.Helper()
		send(&uamppb.Frame{Frame: &uamppb.Frame_Delta{Delta: &uamppb.Delta{StreamId: name, DeltaSeq: uint32(seq), Ts: "2025-08-06T17:00:00Z", Type: "progress"}}})
	}
	ack(3)
	for n := 4; n < 7; n++ {
		f, err := on.Recv()
		if d := f.GetDelta(); err != nil || d.GetDeltaSeq() != uint32(n) || (n == 6) != (d.GetType() == "done") {
			t.Fatalf("over gRPC: delta %d is %v, %v", n, f, err)
		}
		ack(n)
	}
	ack(99)
	if f, err := on.Recv(); err != nil || !strings.Contains(string(f.GetDelta().GetPayload()), "4.09") {
		t.Errorf("an acknowledgement of what was not sent gets %v, %v", f, err)
	}
	again := newAsk("calc", "2+2")
	send(&uamppb.Frame{Frame: &uamppb.Frame_Envelope{Envelope: typed(t, h, again)}})
	if f, err := on.Recv(); err != nil || f.GetEnvelope().GetIntent() != "progress" || f.GetEnvelope().GetReplyTo() != again.ID.String() || f.GetEnvelope().GetSig() == "" {
		t.Fatalf("a receipt is %v, %v", f, err)
	}
	if err := on.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if f, err := on.Recv(); err != nil || f.GetDelta().GetType() != "done" {
		t.Errorf("after the last frame comes %v, %v", f, err)
	}
	if _, err := on.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the call ends with %v", err)
	}
}

// TestGRPCLastFrame (U-055, U-061): a call whose caller has sent its last frame ends when the window of
// its stream is used up, since nothing acknowledges there any more. Frames before the last one count.
func TestGRPCLastFrame(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	h.expose("talks", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		for n := range 6 {
			turn.Chunk(fmt.Sprint(n))
		}
		return gateway.Answer{Body: "end"}
	})
	e := newAsk("talks", "go")
	e.Window = 2
	name := "str-" + string(e.ID)
	h.take(t, e)
	c, ctx := h.overGRPC(t, "lab-token")
	for from, want := range map[int]int{1: 2, 3: 2, 5: 1, 6: 0} { // deltas 0 to 6 are acknowledged up to from
		on, err := c.Stream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ack := &uamppb.Delta{StreamId: name, DeltaSeq: uint32(from), Ts: "2025-08-06T17:00:00Z", Type: "progress"}
		if err := errors.Join(on.Send(&uamppb.Frame{Frame: &uamppb.Frame_Delta{Delta: ack}}), on.CloseSend()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for f, err := on.Recv(); ; f, err = on.Recv() {
			if errors.Is(err, io.EOF) {
				break
			}
			if n++; err != nil || f.GetDelta().GetDeltaSeq() != uint32(from+n) {
				t.Fatalf("after %d: %v, %v", from, f, err)
			}
		}
		if n != want {
			t.Errorf("after %d come %d deltas, want %d", from, n, want)
		}
	}
	eventually(t, func() bool { return h.g.Health().Connections == 0 })
}

// TestGRPCDeadline (U-105): a call that lasts longer than its caller allows names that, and no
// credential.
func TestGRPCDeadline(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	e := newAsk("slow", "x")
	h.take(t, e)
	request, err := proto.Marshal(&uamppb.StreamRequest{StreamId: "str-" + string(e.ID)})
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	for method, message := range map[string][]byte{"Subscribe": request, "Stream": nil} {
		var body io.Reader = bytes.NewReader(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(request))), message...))
		if message == nil { // it sends nothing, and does not end
			reader, writer := io.Pipe()
			defer writer.Close()
			body = reader
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.server.URL+"/uamp.v1.Agent/"+method, body)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer lab-token", "Content-Type": "application/grpc", "Te": "trailers", "Grpc-Timeout": "20m"} {
			req.Header.Set(name, value)
		}
		rsp, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, rsp.Body)
		_ = rsp.Body.Close()
		status, text := rsp.Trailer.Get("Grpc-Status")+rsp.Header.Get("Grpc-Status"), rsp.Trailer.Get("Grpc-Message")+rsp.Header.Get("Grpc-Message")
		if err != nil || status != fmt.Sprint(int(codes.DeadlineExceeded)) || !strings.Contains(text, "deadline") {
			t.Errorf("%s: %s %q %v", method, status, text, err)
		}
	}
}

// TestGRPCEnds (U-055, U-104): a call is one of the realm's connections, and ends with its token, with the
// host, and with what is no frame.
func TestGRPCEnds(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(o *uamp.Options) { o.Sessions = 1 })
	c, ctx := h.overGRPC(t, "lab-token")
	open := func() uamppb.Agent_StreamClient {
		t.Helper()
		on, err := c.Stream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return on
	}
	on := open()
	eventually(t, func() bool { return h.g.Health().Connections == 1 })
	if _, err := open().Recv(); grpcstatus.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "sessions of [gateways.uamp]") {
		t.Errorf("one too many: %v", err)
	}
	if err := on.Send(&uamppb.Frame{}); err != nil {
		t.Fatal(err)
	}
	if _, err := on.Recv(); grpcstatus.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "4.00 ") {
		t.Errorf("no frame: %v", err)
	}
	eventually(t, func() bool { return h.g.Health().Connections == 0 })
	on = open()
	eventually(t, func() bool { return h.g.Health().Connections == 1 })
	e := newAsk("slow", "x")
	if _, err := c.Send(ctx, &uamppb.Envelope{Json: []byte(signedBy(t, h.own, e))}); err != nil {
		t.Fatal(err)
	}
	read, err := c.Subscribe(ctx, &uamppb.StreamRequest{StreamId: "str-" + string(e.ID)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read.Header(); err != nil {
		t.Fatal(err)
	}
	h.rt.Revoke("lab-token")
	if _, err := on.Recv(); grpcstatus.Code(err) != codes.Unauthenticated {
		t.Errorf("a call outlives its token: %v", err)
	}
	if _, err := read.Recv(); grpcstatus.Code(err) != codes.Unauthenticated {
		t.Errorf("a stream outlives its token: %v", err)
	}
	lab := gatewaytest.Realm("default", "lab")
	lab.May = gateway.Rights{gateway.MayAsk}
	h.rt.Admit("new-token", lab)
	c, ctx = h.overGRPC(t, "new-token")
	on = open()
	eventually(t, func() bool { return h.g.Health().Connections == 1 })
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := h.g.Run(stopped); err != nil {
		t.Error(err)
	}
	if _, err := on.Recv(); grpcstatus.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the host stops") {
		t.Errorf("when the host stops: %v", err)
	}
}

// TestGRPCRetryAfter (U-055, U-104): a refusal that passes has in its trailer when to try again, as
// the header over HTTP has: of an envelope that names its sender or not, and of a call that no
// method has seen.
func TestGRPCRetryAfter(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(o *uamp.Options) { o.Sessions = 1 })
	c, ctx := h.overGRPC(t, "lab-token")
	text := []byte(signedBy(t, h.own, newAsk("calc", "2+2")))
	wants := func(what string, err error, trailer metadata.MD, begins string) {
		t.Helper()
		if after := trailer.Get("retry-after"); grpcstatus.Code(err) != codes.Unavailable || !strings.HasPrefix(grpcstatus.Convert(err).Message(), begins) || len(after) != 1 || after[0] != "10" {
			t.Errorf("%s: %v, again after %q", what, err, after)
		}
	}
	send := func() (trailer metadata.MD, err error) {
		_, err = c.Send(ctx, &uamppb.Envelope{Json: text}, grpc.Trailer(&trailer))
		return trailer, err
	}
	h.rt.FailNext("Ask", fmt.Errorf("too many: %w", gateway.ErrBusy))
	trailer, err := send()
	wants("a limit", err, trailer, "5.04 ")
	h.rt.FailNext("Identify", fmt.Errorf("too many: %w", gateway.ErrBusy))
	trailer, err = send()
	wants("before the method", err, trailer, "5.04 ")
	if _, err := c.Stream(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return h.g.Health().Connections == 1 })
	on, err := c.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = on.Recv()
	wants("one call too many", err, on.Trailer(), "5.04 ")
	if trailer, err = send(); err != nil || len(trailer.Get("retry-after")) > 0 {
		t.Errorf("then %v, %v", trailer, err)
	}
}
