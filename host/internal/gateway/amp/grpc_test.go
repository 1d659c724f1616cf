package amp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/amp/grpcmessage"
	"skep/spec/gateways/amp/amppb"
	"skep/spec/mail"
)

// grpcConn is a connection to the site.
func (s *site) grpcConn(t testing.TB) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(s.server.URL, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// overGRPC is a client of the service, and a context that shows metadata.
func (s *site) overGRPC(t testing.TB, shown ...string) (amppb.AgentMeshClient, context.Context) {
	t.Helper()
	return amppb.NewAgentMeshClient(s.grpcConn(t)), metadata.AppendToOutgoingContext(t.Context(), shown...)
}

func bearer(token string) []string { return []string{"authorization", "Bearer " + token} }

// rawMessage is a message with its text alone.
func rawMessage(m amptest.Message) *amppb.Message { return &amppb.Message{RawJson: []byte(m.Text())} }

// grpcReply is the message in an answer.
func grpcReply(t testing.TB, m *amppb.Message, err error) amptest.Message {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, m.GetRawJson())
}

func parsed(t testing.TB, text []byte) amptest.Message {
	t.Helper()
	m, err := amptest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGRPCInvoke (M-097, M-098, D-M1, V-M35): a message is answered as over HTTP, and a repeat gets
// the same bytes over either. raw_json is what counts, byte for byte: an integer that no Struct
// has reaches the agent. An answer has members where its question has some, and the other name of
// the service is that of a message without one.
func TestGRPCInvoke(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told := s.exposeAsks("told")
	c, ctx := s.overGRPC(t, bearer(token)...)
	q := amptest.Mail("agent-1", "echo", "hello")
	m, err := c.Invoke(ctx, rawMessage(q))
	first := grpcReply(t, m, err)
	if first.Header("correlation_id") != q.Message.ID || first.Result()["text"] != "hello" || m.GetId() != "" {
		t.Errorf("got %v", m)
	}
	if again, err := c.Invoke(ctx, rawMessage(q)); err != nil || !bytes.Equal(again.GetRawJson(), m.GetRawJson()) {
		t.Errorf("the repeat got %v, %v", again, err)
	}
	if over := s.send(t, q); over.Text != string(m.GetRawJson()) {
		t.Errorf("over HTTP it is %s", over.Text)
	}
	large := strings.Replace(amptest.Request("agent-1", "told", "mail.message", amptest.Object{"body": "x"}).Text(), `{"body":"x"}`, `{"body":"x","n":9007199254740993}`, 1)
	if _, err := c.Invoke(ctx, &amppb.Message{RawJson: []byte(large)}); err != nil {
		t.Fatal(err)
	}
	if a := <-told; string(a.Raw) != large {
		t.Errorf("the agent got %s of %s", a.Raw, large)
	}
	typed := &amppb.Message{Id: "typed-1", Type: "request", Source: &amppb.Source{AgentId: "agent-1"}, Destination: &amppb.Destination{AgentId: "echo"}, Payload: structOf(t, `{"capability":"mail.message","parameters":{"body":"members"}}`)}
	for name, service := range map[string]string{"AMP/1.0": "amp.v1.AgentMesh", "AIP/1.0": "aip.v1.AgentMesh"} {
		typed.Id += "-" + name
		got := &amppb.Message{}
		if err := s.grpcConn(t).Invoke(ctx, "/"+service+"/Invoke", typed, got); err != nil {
			t.Fatal(err)
		}
		if got.GetProtocol() != name || got.GetType() != "response" || got.GetHeaders().GetCorrelationId() != typed.GetId() || got.GetPayload().AsMap()["result"].(map[string]any)["text"] != "members" || parsed(t, got.GetRawJson()).Protocol != name {
			t.Errorf("%s: got %v", service, got)
		}
	}
	discovery := amptest.New("request", "agent-1", "registry", amptest.Object{"query": amptest.Object{}})
	discovery.Message.Destination.Capability = "discovery"
	m, err = c.Invoke(ctx, rawMessage(discovery))
	if grpcReply(t, m, err).Result()["agents"] == nil {
		t.Errorf("discovery got %s", m.GetRawJson())
	}
	event := amptest.New("event", "agent-1", "told", amptest.Object{"event_type": "mail.message", "body": "news"})
	if m, err := c.Invoke(ctx, rawMessage(event)); err != nil || proto.Size(m) != 0 {
		t.Errorf("an event got %v, %v", m, err)
	}
	if a := <-told; a.Body != "news" {
		t.Errorf("told %+v", a)
	}
}

// TestGRPCEmit (M-097, M-098): what Emit takes is answered later, at its location or for a repeat; so
// is what Invoke holds no longer. Over both an event is told.
func TestGRPCEmit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told := s.exposeAsks("told")
	c, ctx := s.overGRPC(t, bearer(token)...)
	event := amptest.New("event", "agent-1", "told", amptest.Object{"event_type": "mail.message", "body": "news"})
	if r, err := c.Emit(ctx, rawMessage(event)); err != nil || r.GetId() != event.Message.ID || r.GetLocation() != "" || (<-told).Body != "news" {
		t.Errorf("an event got %v, %v", r, err)
	}
	q := amptest.Mail("agent-1", "slow", "x")
	r, err := c.Emit(ctx, rawMessage(q))
	if err != nil || r.GetLocation() != "/amp/v1/messages/"+q.Message.ID {
		t.Fatalf("got %v, %v", r, err)
	}
	var trailer metadata.MD
	m, err := c.Invoke(metadata.AppendToOutgoingContext(ctx, "prefer", "respond-async"), rawMessage(q), grpc.Trailer(&trailer))
	if held := grpcReply(t, m, err); held.Message.Payload["status"] != "partial" || strings.Join(trailer.Get("location"), "") != r.GetLocation() {
		t.Errorf("held no longer it is %s, at %v", m.GetRawJson(), trailer)
	}
	close(s.release)
	m, err = c.Invoke(ctx, rawMessage(q))
	if grpcReply(t, m, err).Result()["text"] != "done" {
		t.Errorf("the repeat got %s", m.GetRawJson())
	}
	over, err := s.Get(s.server.URL + r.GetLocation())
	if err != nil || over.Text != string(m.GetRawJson()) {
		t.Errorf("at its location it is %s, %v", over.Text, err)
	}
}

// TestGRPCRefused (M-076, M-077, M-078, M-097): what is refused has the status of its code, a text that begins
// with the document's code, and the error message in its details. What passes has a time to try
// again. Nothing is said to callers that are not known.
func TestGRPCRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *amp.Options) { o.MaxBody = 4 << 10 })
	c, ctx := s.overGRPC(t, bearer(token)...)
	q := amptest.Mail("agent-1", "echo", "hello")
	if _, err := c.Invoke(ctx, rawMessage(q)); err != nil {
		t.Fatal(err)
	}
	conflict := amptest.Message{Protocol: q.Protocol, Message: q.Message}
	conflict.Message.Payload = amptest.Object{"capability": "mail.message", "parameters": amptest.Object{"body": "other"}}
	slow := amptest.Mail("agent-1", "slow", "x")
	slow.Message.Headers["timeout_ms"] = 1
	raw := func(text string) *amppb.Message { return &amppb.Message{RawJson: []byte(text)} }
	for name, f := range map[string]struct {
		m              *amppb.Message
		code           codes.Code
		begins, reason string
	}{
		"no JSON":       {raw("hello"), codes.InvalidArgument, "INVALID_SCHEMA: ", "MALFORMED"},
		"nothing":       {&amppb.Message{}, codes.InvalidArgument, "INVALID_SCHEMA: ", "MALFORMED"},
		"no agent":      {rawMessage(amptest.Mail("agent-1", "none", "x")), codes.NotFound, "AGENT_NOT_FOUND: ", ""},
		"no capability": {rawMessage(amptest.Request("agent-1", "echo", "none", amptest.Object{})), codes.NotFound, "CAPABILITY_NOT_FOUND: ", ""},
		"a foreign id":  {rawMessage(amptest.Mail("mallory", "echo", "x")), codes.PermissionDenied, "AUTHENTICATION_FAILED: ", "FORBIDDEN"},
		"other bytes":   {rawMessage(conflict), codes.AlreadyExists, "INVALID_SCHEMA: ", "CONFLICT"},
		"a time over":   {rawMessage(slow), codes.DeadlineExceeded, "TIMEOUT: ", ""},
		"too large":     {rawMessage(amptest.Mail("agent-1", "echo", strings.Repeat("x", 5<<10))), codes.ResourceExhausted, "INVALID_SCHEMA: ", "TOO_LARGE"},
		"far too large": {rawMessage(amptest.Mail("agent-1", "echo", strings.Repeat("x", 50<<10))), codes.ResourceExhausted, "INVALID_SCHEMA: ", "TOO_LARGE"},
		"deep members":  {&amppb.Message{Id: "d", Payload: structOf(t, strings.Repeat(`{"x":`, 70)+"1"+strings.Repeat("}", 70))}, codes.InvalidArgument, "INVALID_SCHEMA: ", "MALFORMED"},
	} {
		_, err := c.Invoke(ctx, f.m)
		st := status.Convert(err)
		if st.Code() != f.code || !strings.HasPrefix(st.Message(), f.begins) || len(st.Details()) != 1 {
			t.Errorf("%s: %v, %v", name, st, st.Details())
			continue
		}
		d, _ := st.Details()[0].(*amppb.Message)
		code, _, reason := parsed(t, d.GetRawJson()).Fault()
		if code+": " != f.begins || reason != f.reason || d.GetType() != "error" {
			t.Errorf("%s: the details are %v", name, d)
		}
	}
	for name, f := range map[string]struct {
		shown []string
		code  codes.Code
	}{"nothing": {nil, codes.Unauthenticated}, "another": {bearer("another"), codes.Unauthenticated}, "a user": {bearer("user-token"), codes.PermissionDenied}} {
		c, ctx := s.overGRPC(t, f.shown...)
		for what, m := range map[string]*amppb.Message{"a message": rawMessage(q), "no JSON": raw("hello"), "a large one": raw(strings.Repeat("x", 50<<10))} {
			if _, err := c.Invoke(ctx, m); status.Code(err) != f.code && !(what == "a large one" && f.shown == nil && status.Code(err) == codes.ResourceExhausted) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := c.Health(ctx, &amppb.HealthRequest{AgentId: "echo"}); status.Code(err) != f.code {
			t.Errorf("%s: health: %v", name, err)
		}
	}
	for _, at := range []string{"Ask", "Identify"} {
		s.rt.FailNext(at, fmt.Errorf("too many: %w", gateway.ErrBusy))
		var trailer metadata.MD
		_, err := c.Invoke(ctx, rawMessage(amptest.Mail("agent-1", "echo", "busy")), grpc.Trailer(&trailer))
		if status.Code(err) != codes.ResourceExhausted || strings.Join(trailer.Get("retry-after"), "") != "10" {
			t.Errorf("a limit at %s: %v, again after %v", at, err, trailer)
		}
	}
}

// TestGRPCProofs (M-070, M-073, M-074, M-097, V-M13): a call shows its caller by metadata, or by its message,
// in each way in which a message over HTTP does.
func TestGRPCProofs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	key := []byte("a key that is shared")
	s.admit("", gateway.Partner{Name: "signer", IDs: []string{"signer-*"}, HMACKey: key, Options: map[string]any{"hmac_alone": true}})
	with := func(secret string) amptest.Message {
		m := amptest.Mail("agent-1", "echo", "x")
		m.Message.Headers["authentication"] = amptest.Object{"type": "bearer", "token": secret}
		return m
	}
	signed := sign(t, amptest.Mail("signer-1", "echo", "x"), time.Now(), key)
	for name, c := range map[string]struct {
		shown []string
		m     amptest.Message
		code  codes.Code
	}{
		"bearer":           {bearer(token), amptest.Mail("agent-1", "echo", "x"), codes.OK},
		"api key":          {[]string{"x-api-key", token}, amptest.Mail("agent-1", "echo", "x"), codes.OK},
		"the message":      {nil, with(token), codes.OK},
		"a wrong message":  {nil, with("wrong"), codes.Unauthenticated},
		"two":              {bearer(token), with("another"), codes.Unauthenticated},
		"signature":        {nil, signed, codes.OK},
		"another's":        {nil, sign(t, amptest.Mail("signer-1", "echo", "x"), time.Now(), []byte("another key, as long")), codes.Unauthenticated},
		"an old signature": {nil, sign(t, amptest.Mail("signer-1", "echo", "x"), time.Now().Add(-time.Hour), key), codes.Unauthenticated},
	} {
		client, ctx := s.overGRPC(t, c.shown...)
		if m, err := client.Invoke(ctx, rawMessage(c.m)); status.Code(err) != c.code || err == nil && parsed(t, m.GetRawJson()).Result()["text"] != "x" {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

// TestGRPCDeadline (M-097): a deadline ends the call and not the message, whose repeat has the answer;
// a call that is left does the same.
func TestGRPCDeadline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, ctx := s.overGRPC(t, bearer(token)...)
	q := amptest.Mail("agent-1", "slow", "x")
	if _, err := c.Emit(ctx, rawMessage(q)); err != nil {
		t.Fatal(err)
	}
	body, err := proto.Marshal(rawMessage(q))
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	for _, method := range []string{"Invoke", "Connect"} { // the library's client ends with its own deadline
		in, out := io.Pipe()
		defer out.Close()
		go func() { // Connect sends no last message
			_, _ = out.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...))
			if method == "Invoke" {
				_ = out.Close()
			}
		}()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/amp.v1.AgentMesh/"+method, in)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/grpc", "Te": "trailers", "Grpc-Timeout": "20m"} {
			req.Header.Set(name, value)
		}
		rsp, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, rsp.Body)
		_ = rsp.Body.Close()
		code, text := rsp.Trailer.Get("Grpc-Status")+rsp.Header.Get("Grpc-Status"), rsp.Trailer.Get("Grpc-Message")+rsp.Header.Get("Grpc-Message")
		if err != nil || code != fmt.Sprint(int(codes.DeadlineExceeded)) || !strings.Contains(text, "deadline") {
			t.Errorf("%s: %s %q %v", method, code, text, err)
		}
	}
	left, leave := context.WithCancel(ctx)
	leave()
	if _, err := c.Invoke(left, rawMessage(q)); status.Code(err) != codes.Canceled {
		t.Errorf("a call that is left: %v", err)
	}
	close(s.release)
	m, err := c.Invoke(ctx, rawMessage(q))
	if grpcReply(t, m, err).Result()["text"] != "done" {
		t.Errorf("the repeat got %s", m.GetRawJson())
	}
}

// TestGRPCHealth (M-092, M-097): the host's state is shown to all, and what a caller may ask for to
// one that is known.
func TestGRPCHealth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, shown := range [][]string{nil, bearer(token)} {
		c, ctx := s.overGRPC(t, shown...)
		h, err := c.Health(ctx, &amppb.HealthRequest{})
		if err != nil || h.GetStatus() != "healthy" || h.GetProtocolVersion() != "1.0" || (len(h.GetCapabilities()) > 0) != (shown != nil) {
			t.Errorf("%v, %v", h, err)
		}
	}
	c, ctx := s.overGRPC(t, bearer(token)...)
	if h, err := c.Health(ctx, &amppb.HealthRequest{AgentId: "echo"}); err != nil || h.GetAgentId() != "echo@hive" || h.GetCapabilities()[0] != "text-analysis" {
		t.Errorf("%v, %v", h, err)
	}
	if _, err := c.Health(ctx, &amppb.HealthRequest{AgentId: "none"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	check := grpc_health_v1.NewHealthClient(s.grpcConn(t))
	for service, want := range map[string]codes.Code{"": codes.OK, "amp.v1.AgentMesh": codes.OK, "aip.v1.AgentMesh": codes.OK, "other": codes.NotFound} {
		r, err := check.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if status.Code(err) != want || err == nil && r.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, r, err)
		}
	}
}

// connect begins a call of Connect.
func (s *site) connect(t testing.TB, shown ...string) amppb.AgentMesh_ConnectClient {
	t.Helper()
	c, ctx := s.overGRPC(t, shown...)
	on, err := c.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// exchangeGRPC sends a message on a call and returns the next one.
func exchangeGRPC(t testing.TB, on amppb.AgentMesh_ConnectClient, m *amppb.Message) amptest.Message {
	t.Helper()
	if err := on.Send(m); err != nil {
		t.Fatal(err)
	}
	got, err := on.Recv()
	return grpcReply(t, got, err)
}

// TestGRPCConnect (M-094, M-097, M-098, V-M35): Connect is a WebSocket by other means: for several agents, with
// repeats and refusals as messages, and raw_json as it came. After the caller's last message the
// answers go on.
func TestGRPCConnect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	on := s.connect(t, bearer(token)...)
	if h, err := on.Header(); err != nil || strings.Join(h.Get("amp-max-body"), "") != "1048576" {
		t.Errorf("the header has %v, %v", h, err)
	}
	q := amptest.Mail("agent-1", "echo", "hello")
	first := exchangeGRPC(t, on, rawMessage(q))
	if first.Header("correlation_id") != q.Message.ID || first.Result()["text"] != "hello" {
		t.Errorf("got %s", first.Text())
	}
	if again := exchangeGRPC(t, on, rawMessage(q)); again.Text() != first.Text() {
		t.Errorf("the repeat got %s", again.Text())
	}
	typed := &amppb.Message{Id: "typed", Type: "request", Source: &amppb.Source{AgentId: "agent-2"}, Destination: &amppb.Destination{AgentId: "echo"}, Payload: structOf(t, `{"capability":"mail.message","parameters":{"body":"members"}}`)}
	if err := on.Send(typed); err != nil {
		t.Fatal(err)
	}
	if m, err := on.Recv(); err != nil || m.GetHeaders().GetCorrelationId() != "typed" || m.GetDestination().GetAgentId() != "agent-2" {
		t.Errorf("got %v, %v", m, err)
	}
	wantRefused(t, exchangeGRPC(t, on, &amppb.Message{RawJson: []byte("hello")}), "INVALID_SCHEMA", "MALFORMED")
	wantRefused(t, exchangeGRPC(t, on, rawMessage(amptest.Mail("mallory", "echo", "x"))), "AUTHENTICATION_FAILED", "FORBIDDEN")
	if err := on.Send(rawMessage(amptest.Mail("agent-1", "slow", "x"))); err != nil {
		t.Fatal(err)
	}
	if err := on.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for s.g.Health().Connections > 0 { // nothing is asked of it any more
		gateway.Pause(t.Context(), time.Millisecond)
	}
	close(s.release)
	m, err := on.Recv()
	if grpcReply(t, m, err).Result()["text"] != "done" {
		t.Errorf("after the last message comes %s", m.GetRawJson())
	}
	if _, err := on.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the call ends with %v", err)
	}
	late := s.connect(t)
	proven := amptest.Mail("agent-1", "echo", "x")
	proven.Message.Headers["authentication"] = amptest.Object{"type": "bearer", "token": token}
	if m := exchangeGRPC(t, late, rawMessage(proven)); m.Result()["text"] != "x" {
		t.Errorf("shown by the first message: %s", m.Text())
	}
	nobody := s.connect(t)
	wantRefused(t, exchangeGRPC(t, nobody, rawMessage(q)), "AUTHENTICATION_FAILED", "CREDENTIAL")
	if _, err := nobody.Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("nobody: %v", err)
	}
}

// TestGRPCConnectEnds (M-094, M-097): a call ends with its token, with too many messages that are none,
// with one that is too large, and when the host stops; a realm has so many of them, WebSockets
// among them.
func TestGRPCConnectEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *amp.Options) { o.Sessions, o.MaxBody = 3, 4<<10 })
	hello := func(on amppb.AgentMesh_ConnectClient, agent string) {
		t.Helper()
		if m := exchangeGRPC(t, on, rawMessage(amptest.Mail(agent, "echo", "x"))); m.Message.Type != "response" {
			t.Fatalf("got %s", m.Text())
		}
	}
	wantEnd := func(on amppb.AgentMesh_ConnectClient, code codes.Code, why string) {
		t.Helper()
		if m, err := on.Recv(); status.Code(err) != code || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, %v, want %s %q", m, err, code, why)
		}
	}
	first, large, huge := s.connect(t, bearer(token)...), s.connect(t, bearer(token)...), s.connect(t, bearer(token)...)
	for _, on := range []amppb.AgentMesh_ConnectClient{first, large, huge} {
		hello(on, "agent-1")
	}
	wantEnd(s.connect(t, bearer(token)...), codes.ResourceExhausted, "raise sessions of [gateways.amp]")
	for on, size := range map[amppb.AgentMesh_ConnectClient]int{large: 5 << 10, huge: 50 << 10} {
		if err := on.Send(rawMessage(amptest.Mail("agent-1", "echo", strings.Repeat("x", size)))); err != nil {
			t.Fatal(err)
		}
		wantEnd(on, codes.ResourceExhausted, "INVALID_SCHEMA: ")
	}
	for range 16 {
		wantRefused(t, exchangeGRPC(t, first, &amppb.Message{RawJson: []byte("nonsense")}), "INVALID_SCHEMA", "MALFORMED")
	}
	wantEnd(first, codes.InvalidArgument, "messages that are none")
	second := s.connect(t, bearer(token)...)
	hello(second, "agent-1")
	s.admit("other-token", gateway.Partner{Name: "other", IDs: []string{"other-*"}})
	other := s.connect(t, bearer("other-token")...)
	hello(other, "other-1")
	s.rt.Revoke(token)
	wantEnd(second, codes.Unauthenticated, "credential")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	stopped := make(chan error, 1)
	go func() { stopped <- s.g.Run(ctx) }()
	wantEnd(other, codes.Unavailable, "the host stops")
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestGRPCConnectAsked (M-091, M-094, M-097, V-M35, V-M36): what our agents write to an agent on a call goes
// there, and its answer comes there, byte for byte. A question whose call is lost before the answer
// is in doubt, and sent again under its id to the next one.
func TestGRPCConnectAsked(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	c, ctx := o.overGRPC(t, bearer(token)...)
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	on, err := c.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	hello := amptest.New("request", "agent-1", "registry", amptest.Object{"query": amptest.Object{}})
	hello.Message.Destination.Capability = "discovery"
	exchangeGRPC(t, on, rawMessage(hello))
	carried := make(chan gateway.Carried, 1)
	carry := func(id string, kind mail.Type) {
		go func() { carried <- o.g.Carry(t.Context(), o.p, outgoing(id, kind, "2+2")) }()
	}
	carry("m1", mail.Request)
	m, err := on.Recv()
	q := grpcReply(t, m, err)
	if q.Message.ID != "m1" || q.Message.Destination.AgentID != "agent-1" || m.GetId() != "" {
		t.Errorf("got %v", m)
	}
	const result = `{"list":[9007199254740993,1.50]}`
	answer := strings.Replace(q.Reply("response", amptest.Result("RESULT")).Text(), `"RESULT"`, result, 1)
	if err := on.Send(&amppb.Message{RawJson: []byte(answer)}); err != nil {
		t.Fatal(err)
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Body != result || !asked[0].Sent {
		t.Errorf("delivered %+v", asked)
	}
	carry("m2", mail.Broadcast)
	m, err = on.Recv()
	if e := grpcReply(t, m, err); e.Message.Type != "event" || e.Message.ID != "m2" {
		t.Errorf("got %v", m)
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	if found, err := o.g.Discover(t.Context(), gateway.Partner{Name: o.p.Name, Tenant: o.p.Tenant}); err != nil || len(found) != 1 || found[0].Name != "agent-1" {
		t.Errorf("discovered %+v, %v", found, err)
	}
	carry("m3", mail.Request)
	if _, err := on.Recv(); err != nil {
		t.Fatal(err)
	}
	leave()
	if got := <-carried; got.State != gateway.Unanswered {
		t.Errorf("without its call %+v", got)
	}
	for o.g.Health().Connections > 0 {
		gateway.Pause(t.Context(), time.Millisecond)
	}
	again := o.connect(t, bearer(token)...)
	typed, err := grpcmessage.Message([]byte(hello.Text()))
	if err != nil {
		t.Fatal(err)
	}
	typed.RawJson, typed.Id = nil, "hello-again"
	exchangeGRPC(t, again, typed)
	carry("m3", mail.Request)
	m, err = again.Recv()
	if q = grpcReply(t, m, err); m.GetId() != "m3" || m.GetPayload().AsMap()["capability"] != "mail.message" {
		t.Errorf("a caller of members gets %v", m)
	}
	if err := again.Send(rawMessage(q.Reply("error", amptest.Error("CAPABILITY_NOT_FOUND", "no")))); err != nil {
		t.Fatal(err)
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Subject != "[CAPABILITY_NOT_FOUND]" || len(o.came()) != 0 {
		t.Errorf("delivered %+v, posted %s", asked, o.came())
	}
}

func structOf(t testing.TB, text string) *structpb.Struct {
	t.Helper()
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return s
}
