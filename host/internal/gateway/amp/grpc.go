package amp

import (
	"context"
	"errors"
	"net/http"
	"regexp"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/grpcmessage"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/grpcserve"
	"skep/host/internal/gateway/wire"
	"skep/spec/gateways/amp/amppb"
)

// grpcRoom is what a call has besides the text of a message and its members, in bytes.
const grpcRoom = 16 << 10

// maxWire bounds a message of gRPC, in bytes: it may have its text and its members.
func (g *Gateway) maxWire() int64 { return 2*g.MaxBody + grpcRoom }

// services are the services that are served, by the token of a message that names none (D-M1).
var services = map[string]string{message.AMP: "amp.v1.AgentMesh", message.AIP: "aip.v1.AgentMesh"}

// connectMethod carries messages in both directions.
const connectMethod = "Connect"

// newGRPCServer returns the server of M-097. Its calls come from the public listener.
func newGRPCServer(g *Gateway) *grpc.Server {
	s := grpcserve.NewServer(g.maxWire(), grpcserve.BytesCodec())
	for token, name := range services {
		s.RegisterService(serviceNamed(name), mesh{g, token})
	}
	grpc_health_v1.RegisterHealthServer(s, grpcHealth{g: g})
	grpc_reflection_v1.RegisterServerReflectionServer(s, newReflection(s))
	return s
}

// serviceNamed is the service with methods that take the bytes of a Message.
func serviceNamed(name string) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: name, HandlerType: (*any)(nil), Metadata: amppb.AgentMesh_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			{MethodName: "Invoke", Handler: unary(mesh.invoke)},
			{MethodName: "Emit", Handler: unary(mesh.emit)},
			{MethodName: "Health", Handler: unary(mesh.health)},
		},
		Streams: []grpc.StreamDesc{{StreamName: connectMethod, ServerStreams: true, ClientStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
			return srv.(mesh).connect(stream)
		}}},
	}
}

// unary is the handler of a method with one message.
func unary[T any](method func(mesh, context.Context, *T) (any, error)) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(T)
		if err := decode(in); err != nil {
			return nil, err
		}
		return method(srv.(mesh), ctx, in)
	}
}

// grpcMounts are the methods that the public listener serves over HTTP/2.
func (g *Gateway) grpcMounts() (list []gateway.Mount) {
	mount := func(path string, maxBody int64, streams bool, h http.HandlerFunc) {
		list = append(list, gateway.Mount{Method: http.MethodPost, Pattern: path, Proof: gateway.OtherProof, MaxBody: maxBody, Streams: streams, Handler: h})
	}
	for _, name := range services {
		for _, m := range amppb.AgentMesh_ServiceDesc.Methods {
			mount("/"+name+"/"+m.MethodName, g.maxWire()+answeredExcess, true, g.serveCall)
		}
		mount("/"+name+"/"+connectMethod, -1, true, g.serveConnect) // each message has a bound
	}
	mount(grpc_health_v1.Health_Check_FullMethodName, grpcRoom, false, g.serveHealthCheck)
	mount(grpc_reflection_v1.ServerReflection_ServerReflectionInfo_FullMethodName, -1, true, g.serveReflection)
	return list
}

// meshCaller is what a call shows besides its messages. It is in the context of the methods.
type meshCaller struct {
	gateway.Caller
	// shown is false where the call shows nothing; then its messages show who calls.
	shown bool
}

type meshCallerKey struct{}

func callerOf(ctx context.Context) meshCaller {
	c, _ := ctx.Value(meshCallerKey{}).(meshCaller) // serve has put it there
	return c
}

// serveCall serves a call of one message, which the listener paces as other bodies.
func (g *Gateway) serveCall(w http.ResponseWriter, r *http.Request) { g.serve(w, r, false, nil) }

func (g *Gateway) serveConnect(w http.ResponseWriter, r *http.Request) { g.serve(w, r, false, g.Pace) }

// serveReflection serves the description of the services, to callers that are known by their call.
func (g *Gateway) serveReflection(w http.ResponseWriter, r *http.Request) {
	g.serve(w, r, true, g.Pace)
}

// serveHealthCheck serves the state of the host to anyone, as over HTTP.
func (g *Gateway) serveHealthCheck(w http.ResponseWriter, r *http.Request) {
	if grpcserve.IsCall(w, r) {
		grpcserve.Serve(g.grpc, w, r, grpcRoom, nil)
	}
}

// serve serves a call. What the call shows is held against the partners before anything is read.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, mustShow bool, pace func(tenant string) wire.Pace) {
	if !grpcserve.IsCall(w, r) {
		return
	}
	c, shown, err := g.identifyRequest(r)
	switch {
	case err == nil && shown && c.IsUser():
		err = errUser
	case err == nil && !shown && mustShow:
		err = errNoCredential
	}
	if err != nil {
		f := g.faultOf(err)
		grpcserve.Refuse(w, g.statusOf(c, message.Received{Token: message.AMP}, f), f.RetryAfter)
		return
	}
	var bound wire.Pace
	if pace != nil {
		bound = pace(c.Principal.Tenant)
	}
	grpcserve.Serve(g.grpc, w, r.WithContext(context.WithValue(r.Context(), meshCallerKey{}, meshCaller{c, shown})), g.maxWire(), bound)
	if f := faultOfCall(w.Header()); f != nil {
		g.record(c, message.Received{}, nil, reply{}, f)
		grpcserve.SetStatus(w.Header(), g.statusOf(c, message.Received{Token: message.AMP}, f))
	}
}

// statusText matches the texts of statuses that are given here.
var statusText = regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*: `)

// faultOfCall returns why the library has ended a call by itself for a message that it could not
// read, nil for other statuses.
func faultOfCall(h http.Header) *message.Fault {
	switch f, ok := grpcserve.FaultOf(h, statusText.MatchString); {
	case !ok:
		return nil
	case f.TooLarge:
		return errMessageTooLarge
	default:
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "the message cannot be read: %s", f.Text)
	}
}

// textOf returns the text of a message. Its errors are faults.
func (g *Gateway) textOf(token string, raw []byte) (text []byte, members bool, err error) {
	reader := grpcmessage.Reader{Protocol: token + "/" + message.Version, MaxText: int(g.MaxBody), MaxDepth: g.MaxDepth}
	text, members, err = reader.Text(raw)
	switch {
	case errors.Is(err, grpcmessage.ErrTooLarge):
		err = errMessageTooLarge
	case errors.Is(err, grpcmessage.ErrDeep):
		err = message.Faultf(message.InvalidSchema, message.ReasonMalformed, "the message is nested deeper than max_depth of [gateways.amp]")
	case err != nil:
		err = message.Faultf(message.InvalidSchema, message.ReasonMalformed, "%v", err)
	}
	return text, members, err
}

// deadlineFault refuses to hold a call for longer than its caller waits.
func deadlineFault() *message.Fault {
	return message.Faultf(message.Timeout, "", "the call lasts longer than its caller's deadline: the same message, sent again, has its answer")
}

// endOf is why a call has ended whose context has.
func endOf(ctx context.Context) *message.Fault {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return deadlineFault()
	}
	return message.Faultf(message.AuthenticationFailed, message.ReasonCredential, "the credential does not hold any more")
}
