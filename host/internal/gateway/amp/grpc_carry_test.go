package amp_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/amp/grpcmessage"
	"skep/spec/gateways/amp/amppb"
	"skep/spec/mail"
)

// grpcAgent is a partner's agent that serves gRPC, and does with a message what a test wants.
type grpcAgent struct {
	amppb.UnimplementedAgentMeshServer
	mu    sync.Mutex
	does  func(context.Context, amptest.Message) (*amppb.Message, error)
	came  []*amppb.Message
	shown []metadata.MD
}

func (a *grpcAgent) take(ctx context.Context, m *amppb.Message) (*amppb.Message, error) {
	in, err := amptest.Parse(m.GetRawJson())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	shown, _ := metadata.FromIncomingContext(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.came, a.shown = append(a.came, m), append(a.shown, shown)
	return a.does(ctx, in)
}

// Invoke implements [amppb.AgentMeshServer].
func (a *grpcAgent) Invoke(ctx context.Context, m *amppb.Message) (*amppb.Message, error) {
	return a.take(ctx, m)
}

// Emit implements [amppb.AgentMeshServer].
func (a *grpcAgent) Emit(ctx context.Context, m *amppb.Message) (*amppb.Receipt, error) {
	_, err := a.take(ctx, m)
	return &amppb.Receipt{Id: m.GetId()}, err
}

// serveGRPCAgent serves an agent at an address, and what else the host has there.
func serveGRPCAgent(t *testing.T, a *grpcAgent, other http.Handler) (url string, client *http.Client) {
	t.Helper()
	service := grpc.NewServer()
	amppb.RegisterAgentMeshServer(service, a)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: two, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			service.ServeHTTP(w, r)
			return
		}
		other.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	transport := &http.Transport{Protocols: two}
	t.Cleanup(transport.CloseIdleConnections)
	return "http://" + l.Addr().String(), &http.Client{Transport: transport}
}

// TestCarryOverGRPC (M-091, M-097, M-098): a partner with the binding gRPC is asked by Invoke and told by
// Emit, with the message as text and as members. What the outcome means is as over HTTP: what is an
// answer, what is sent again, what is refused and what is in doubt.
func TestCarryOverGRPC(t *testing.T) {
	t.Parallel()
	o, a := newOut(t), &grpcAgent{}
	url, client := serveGRPCAgent(t, a, nil)
	o.p.URL, o.p.Client, o.p.Options = url, client, map[string]any{"binding": "grpc"}
	o.rt.AddPartner(o.p)
	refuses := func(code codes.Code, text string, details ...amptest.Message) func(context.Context, amptest.Message) (*amppb.Message, error) {
		return func(_ context.Context, in amptest.Message) (*amppb.Message, error) {
			st := status.New(code, text)
			for _, d := range details {
				d.Message.Headers["correlation_id"] = in.Message.ID
				with, err := st.WithDetails(rawMessage(d))
				if err != nil {
					return nil, err
				}
				st = with
			}
			return nil, st.Err()
		}
	}
	answers := func(change func(amptest.Message) (*amppb.Message, error)) func(context.Context, amptest.Message) (*amppb.Message, error) {
		return func(_ context.Context, in amptest.Message) (*amppb.Message, error) { return change(in) }
	}
	fault := func(code string) amptest.Message { return amptest.New("error", "", "", amptest.Error(code, "no")) }
	for name, c := range map[string]struct {
		does          func(context.Context, amptest.Message) (*amppb.Message, error)
		state         gateway.CarriedState
		subject, body string
	}{
		"text": {answers(func(in amptest.Message) (*amppb.Message, error) {
			return rawMessage(in.Reply("response", amptest.Result("4"))), nil
		}), gateway.Taken, "", "4"},
		"members": {answers(func(in amptest.Message) (*amppb.Message, error) {
			m, err := grpcmessage.Message([]byte(in.Reply("response", amptest.Result("4")).Text()))
			m.RawJson = nil
			return m, err
		}), gateway.Taken, "", "4"},
		"an error":     {refuses(codes.NotFound, "no", fault("CAPABILITY_NOT_FOUND")), gateway.Taken, "[CAPABILITY_NOT_FOUND]", "no"},
		"a time over":  {refuses(codes.DeadlineExceeded, "no", fault("TIMEOUT")), gateway.Taken, "[TIMEOUT]", "no"},
		"a limit":      {refuses(codes.ResourceExhausted, "no", fault("RATE_LIMIT_EXCEEDED")), gateway.Later, "", ""},
		"away":         {refuses(codes.Unavailable, "no", fault("INSUFFICIENT_RESOURCES")), gateway.Later, "", ""},
		"broken":       {refuses(codes.Internal, "no", fault("INSUFFICIENT_RESOURCES")), gateway.Unanswered, "", ""},
		"unknown":      {refuses(codes.Unknown, "no"), gateway.Unanswered, "", ""},
		"a deadline":   {refuses(codes.DeadlineExceeded, "no"), gateway.Unanswered, "", ""},
		"no credits":   {refuses(codes.ResourceExhausted, "no"), gateway.Refused, "", ""},
		"a credential": {refuses(codes.Unauthenticated, "no"), gateway.Refused, "", ""},
		"no method":    {refuses(codes.Unimplemented, "no"), gateway.Refused, "", ""},
		"no message":   {answers(func(amptest.Message) (*amppb.Message, error) { return &amppb.Message{RawJson: []byte("4")}, nil }), gateway.Refused, "", ""},
		"another's": {answers(func(in amptest.Message) (*amppb.Message, error) {
			r := in.Reply("response", amptest.Result("4"))
			r.Message.Headers["correlation_id"] = "other"
			return rawMessage(r), nil
		}), gateway.Refused, "", ""},
	} {
		a.does = c.does
		got := o.g.Carry(t.Context(), o.p, outgoing("m-"+name, mail.Request, "2+2"))
		asked := o.rt.take()
		if got.State != c.state || (len(asked) == 1) != (c.state == gateway.Taken) || len(asked) == 1 && (asked[0].Subject != c.subject || asked[0].Body != c.body) {
			t.Errorf("%s: carried %+v, delivered %+v", name, got, asked)
		}
		if m := a.came[len(a.came)-1]; m.GetId() != "m-"+name || m.GetPayload().AsMap()["capability"] != "mail.message" || !strings.Contains(string(m.GetRawJson()), `"2+2"`) {
			t.Errorf("%s: sent %v", name, m)
		}
	}
	a.does = func(ctx context.Context, _ amptest.Message) (*amppb.Message, error) {
		if err := grpc.SetTrailer(ctx, metadata.Pairs("retry-after", "7")); err != nil {
			return nil, err
		}
		return nil, status.Error(codes.ResourceExhausted, "no")
	}
	if got := o.g.Carry(t.Context(), o.p, outgoing("m-wait", mail.Request, "2+2")); got.State != gateway.Later || got.Wait != 7*time.Second {
		t.Errorf("a limit with a time: %+v", got)
	}
	a.does = answers(func(amptest.Message) (*amppb.Message, error) { return nil, nil })
	if got := o.g.Carry(t.Context(), o.p, outgoing("e1", mail.Broadcast, "news")); got.State != gateway.Taken || a.came[len(a.came)-1].GetType() != "event" {
		t.Errorf("an event: %+v, %v", got, a.came[len(a.came)-1])
	}
	o.p.URL = "http://127.0.0.1:1"
	if got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "2+2")); got.State != gateway.Later {
		t.Errorf("nobody listens: %+v", got)
	}
}

// TestCarryOverGRPCLater (M-025, M-097, M-098): an answer that the partner does not hold a call for is read at
// its location, or comes as a message of its own.
func TestCarryOverGRPCLater(t *testing.T) {
	t.Parallel()
	o, a := newOut(t), &grpcAgent{}
	var asked amptest.Message
	url, client := serveGRPCAgent(t, a, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/answers/1" {
			http.NotFound(w, r)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		_, _ = w.Write([]byte(asked.Reply("response", amptest.Result("4")).Text()))
	}))
	o.p.URL, o.p.Client, o.p.Options = url, client, map[string]any{"binding": "grpc"}
	o.rt.AddPartner(o.p)
	location := "/answers/1"
	began := make(chan amptest.Message, 1)
	a.does = func(ctx context.Context, in amptest.Message) (*amppb.Message, error) {
		asked = in
		if location != "" {
			if err := grpc.SetTrailer(ctx, metadata.Pairs("location", location)); err != nil {
				return nil, err
			}
		}
		began <- in
		return rawMessage(in.Reply("response", amptest.Object{"status": "partial", "result": amptest.Object{}, "metadata": amptest.Object{"state": "accepted"}})), nil
	}
	if got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "2+2")); got.State != gateway.Taken {
		t.Errorf("at its location: %+v", got)
	}
	if delivered := o.rt.take(); len(delivered) != 1 || delivered[0].Body != "4" {
		t.Errorf("delivered %+v", delivered)
	}
	<-began
	location = ""
	carried := make(chan gateway.Carried, 1)
	go func() { carried <- o.g.Carry(t.Context(), o.p, outgoing("m2", mail.Request, "2+2")) }()
	in := <-began
	c, ctx := o.overGRPC(t, bearer(token)...)
	reply := in.Reply("response", amptest.Result("5"))
	if r, err := c.Emit(ctx, rawMessage(reply)); err != nil || r.GetId() != reply.Message.ID {
		t.Fatalf("%v, %v", r, err)
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("as a message: %+v", got)
	}
	if delivered := o.rt.take(); len(delivered) != 1 || delivered[0].Body != "5" || !delivered[0].Sent {
		t.Errorf("delivered %+v", delivered)
	}
}

// TestEndpointOfGRPC (M-026, M-028, M-097): an agent that is registered with a gRPC address is asked
// there, whatever the partner's own binding is; the address is of a host alone.
func TestEndpointOfGRPC(t *testing.T) {
	t.Parallel()
	o, a := newOut(t), &grpcAgent{does: func(_ context.Context, in amptest.Message) (*amppb.Message, error) {
		return rawMessage(in.Reply("response", amptest.Result("4"))), nil
	}}
	url, client := serveGRPCAgent(t, a, nil)
	o.p.URL, o.p.Client = url+"/invoke", client
	o.rt.AddPartner(o.p)
	register := func(address string) amptest.Reply {
		m := amptest.New("request", "agent-1", "registry", amptest.Object{"agent": amptest.Object{"id": "agent-1"}, "capabilities": []any{}, "endpoints": amptest.Object{"grpc": address}})
		m.Message.Destination.Capability = "registration"
		return o.send(t, m)
	}
	wantFault(t, register(url+"/invoke"), http.StatusBadRequest, "INVALID_SCHEMA", "CALLBACK")
	if r := register(url); r.Message.Result()["registered"] != true || len(r.Message.Result()["warnings"].([]any)) != 0 {
		t.Fatalf("got %s", r.Text)
	}
	if got := o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "2+2")); got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Body != "4" || len(a.came) != 1 {
		t.Errorf("delivered %+v after %v", asked, a.came)
	}
	discovery := amptest.New("request", "agent-1", "registry", amptest.Object{"query": amptest.Object{}})
	discovery.Message.Destination.Capability = "discovery"
	if r := o.send(t, discovery); !strings.Contains(r.Text, `"grpc":"`+url+`"`) {
		t.Errorf("discovery has %s", r.Text)
	}
}
