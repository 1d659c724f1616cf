package uamp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/grpcserve"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/stream"
	"skep/spec/gateways/uamp/uamppb"
)

// grpcService serves uamp.v1.Agent (U-055): the same pipeline as over HTTP.
type grpcService struct {
	uamppb.UnimplementedAgentServer
	g *Gateway
}

// grpcRoom is what a message of gRPC has besides its JSON, in bytes.
const grpcRoom = 16 << 10

func newGRPCServer(g *Gateway) *grpc.Server {
	s := grpcserve.NewServer(g.MaxBody + envelopeRoom)
	uamppb.RegisterAgentServer(s, grpcService{g: g})
	return s
}

// grpcMounts are the methods of the service, which the public listener serves over HTTP/2.
func (g *Gateway) grpcMounts() (list []gateway.Mount) {
	for _, m := range uamppb.Agent_ServiceDesc.Methods {
		list = append(list, g.grpcMount(m.MethodName, g.MaxBody+envelopeRoom+grpcRoom, false))
	}
	for _, s := range uamppb.Agent_ServiceDesc.Streams {
		most := int64(grpcRoom)
		if s.ClientStreams {
			most = -1 // each message has a bound
		}
		list = append(list, g.grpcMount(s.StreamName, most, true))
	}
	return list
}

func (g *Gateway) grpcMount(method string, maxBody int64, streams bool) gateway.Mount {
	return gateway.Mount{
		Method: http.MethodPost, Pattern: "/" + uamppb.Agent_ServiceDesc.ServiceName + "/" + method, Proof: gateway.OtherProof, MaxBody: maxBody, Streams: streams,
		Handler: http.HandlerFunc(g.serveGRPC),
	}
}

// grpcCall is the key of a call's caller in its context.
type grpcCall struct{}

// grpcCaller is the caller of a method, with the request of his call.
type grpcCaller struct {
	gateway.Caller
	request *http.Request
}

// serveGRPC serves a call whose caller is known. Nothing is read of others.
func (g *Gateway) serveGRPC(w http.ResponseWriter, r *http.Request) {
	if !grpcserve.IsCall(w, r) {
		return
	}
	c, err := g.Runtime.Identify(r)
	switch {
	case errors.Is(err, gateway.ErrBusy):
		refuseGRPC(w, g.faultOf(err))
	case err != nil:
		f, _ := credentialFault(r)
		refuseGRPC(w, f)
	case c.IsUser():
		refuseGRPC(w, &envelope.Fault{Code: envelope.Unauthorized, Text: "UAMP is for agents: show a credential of role agent"})
	default:
		grpcserve.Serve(g.grpc, w, r.WithContext(context.WithValue(r.Context(), grpcCall{}, c)), g.MaxBody+envelopeRoom, nil)
		if f := g.faultOfStatus(w.Header()); f != nil {
			g.record(c, envelope.Signed{}, nil, received{}, f)
			grpcserve.SetStatus(w.Header(), status.New(codeOf(f.Code), grpcText(f)))
		}
	}
}

// faultOfStatus returns why the library has ended a call by itself for a message that it could
// not read, nil for other statuses: the statuses of methods begin with a code of the document.
func (g *Gateway) faultOfStatus(h http.Header) *envelope.Fault {
	switch f, ok := grpcserve.FaultOf(h, statusText.MatchString); {
	case !ok:
		return nil
	case f.TooLarge:
		return g.tooLarge()
	default:
		return &envelope.Fault{Code: envelope.Malformed, Text: "the message cannot be read: " + f.Text}
	}
}

// statusText matches the texts of [grpcText].
var statusText = regexp.MustCompile(`^[45]\.\d\d `)

// refuseGRPC answers a call that no method has seen.
func refuseGRPC(w http.ResponseWriter, f *envelope.Fault) {
	grpcserve.Refuse(w, status.New(codeOf(f.Code), grpcText(f)), f.RetryAfter)
}

// grpcText is a fault as the message of a status has it: the document's code is first.
func grpcText(f *envelope.Fault) string { return string(f.Code) + " " + f.Text }

// codeOf is a code of the document as gRPC has it
// (https://grpc.io/docs/guides/status-codes/).
func codeOf(c envelope.Code) codes.Code {
	known := map[envelope.Code]codes.Code{
		envelope.Unauthenticated: codes.Unauthenticated, envelope.Unauthorized: codes.PermissionDenied, envelope.MissingSeq: codes.Aborted,
		envelope.TooLarge: codes.ResourceExhausted, envelope.Busy: codes.Unavailable, envelope.Malformed: codes.InvalidArgument,
		envelope.UnknownRecipient: codes.NotFound, envelope.TimedOut: codes.DeadlineExceeded, envelope.Unsupported: codes.InvalidArgument,
		envelope.IllegalState: codes.FailedPrecondition, envelope.TooMany: codes.ResourceExhausted,
	}
	if code, ok := known[c]; ok {
		return code
	}
	return codes.Internal
}

// fail is the status of an error. signed is the error as an envelope, nil for none.
func (s grpcService) fail(ctx context.Context, f *envelope.Fault, signed []byte) error {
	if f.RetryAfter > 0 {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("retry-after", grpcserve.Seconds(f.RetryAfter))) // it fails outside of a call
	}
	st := status.New(codeOf(f.Code), grpcText(f))
	if signed != nil {
		if detailed, err := st.WithDetails(&uamppb.Envelope{Json: signed}); err == nil {
			st = detailed
		}
	}
	return st.Err()
}

// beginCall returns the caller of a method, and a context that ends with the call, as its caller
// leaves or may not call any more. end must be called.
func beginCall(ctx context.Context) (_ context.Context, c grpcCaller, end func()) {
	c.Caller, _ = ctx.Value(grpcCall{}).(gateway.Caller) // serveGRPC has put it there
	ctx, call, end := grpcserve.Begin(ctx)
	c.request = call.Request
	return ctx, c, end
}

// Send implements [uamppb.AgentServer].
func (s grpcService) Send(ctx context.Context, in *uamppb.Envelope) (*uamppb.SendReply, error) {
	ctx, c, end := beginCall(ctx)
	defer end()
	var e envelope.Signed
	var x received
	text, err := envelopeText(in)
	if err == nil {
		e, x, err = s.g.receive(ctx, c.Caller, text, nil)
	}
	s.g.record(c.Caller, e, text, x, err)
	if err != nil {
		return nil, s.refuse(ctx, c.Caller, e.Envelope, err)
	}
	reply := &uamppb.SendReply{StreamId: x.stream}
	if x.stream != "" {
		reply.Location = streamPath + url.PathEscape(x.stream)
	}
	if len(x.missing) > 0 {
		signed, err := s.g.signedError(s.g.host.String(), e.Envelope, missingFault(x.missing))
		if err != nil { // it was taken all the same
			s.g.Log.Error("uamp: an error cannot be signed", "error", err)
			return reply, nil
		}
		reply.Error = envelopeMessage(signed)
	}
	return reply, nil
}

// refuse is the status of an envelope that was not taken, with the signed error as over HTTP.
func (s grpcService) refuse(ctx context.Context, c gateway.Caller, e envelope.Envelope, err error) error {
	f := s.g.faultOf(err)
	if e.From == "" || e.Intent == envelope.Error {
		return s.fail(ctx, f, nil)
	}
	signed, err := s.g.signedError(s.g.answerer(c, e), e, f)
	if err != nil {
		s.g.Log.Error("uamp: an error cannot be signed", "error", err)
	}
	return s.fail(ctx, f, signed)
}

// Subscribe implements [uamppb.AgentServer].
func (s grpcService) Subscribe(in *uamppb.StreamRequest, out grpc.ServerStreamingServer[uamppb.Delta]) error {
	ctx, c, end := beginCall(out.Context())
	defer end()
	x, n, err := s.g.openStream(ctx, c.Caller, in.GetStreamId())
	if err != nil {
		return s.fail(ctx, s.g.faultOf(err), nil)
	}
	from := int(in.GetFrom())
	w := &grpcWriter{out: out, from: from, window: stream.NewWindow(min(n.Window, s.g.MaxWindow), from)}
	switch err := s.g.writeStream(ctx, x, n, w); {
	case errors.Is(err, errWindow):
		return nil // the next call acknowledges
	case err == nil && w.seen < from:
		return s.fail(ctx, &envelope.Fault{Code: envelope.MissingSeq, Text: "from follows no delta which was sent"}, nil)
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return s.ended(ctx)
	default:
		return s.fail(ctx, s.g.faultOf(err), nil)
	}
}

// grpcWriter writes deltas as messages. Progress has no number, and so is no delta.
type grpcWriter struct {
	out    grpc.ServerStreamingServer[uamppb.Delta]
	from   int
	window *stream.Window
	// seen counts the deltas that there are so far, written or not.
	seen int
}

func (w *grpcWriter) write(d envelope.Delta) error {
	w.seen = d.Seq + 1
	if d.Seq < w.from {
		return nil
	}
	if !w.window.Open() {
		return errWindow
	}
	m, err := deltaMessage(d)
	if err != nil {
		return err
	}
	w.window.Next()
	return w.out.Send(m)
}

func (w *grpcWriter) progress(map[string]any) {}

// comment sends the header of the response, once.
func (w *grpcWriter) comment(string) { _ = w.out.SendHeader(nil) } // later ones are refused

// GetManifest implements [uamppb.AgentServer].
func (s grpcService) GetManifest(ctx context.Context, in *uamppb.ManifestRequest) (*uamppb.Manifest, error) {
	ctx, c, end := beginCall(ctx)
	defer end()
	for _, known := range s.g.addresses(c.request) {
		if known.did == in.GetDid() || in.GetDid() == "" && known.address == (address{}) {
			signed, err := s.g.signDocument(known.did, s.g.manifest(known))
			if err != nil {
				return nil, s.fail(ctx, s.g.faultOf(err), nil)
			}
			return &uamppb.Manifest{Jws: signed}, nil
		}
	}
	return nil, s.fail(ctx, s.g.faultOf(s.g.noRecipient(in.GetDid())), nil)
}
