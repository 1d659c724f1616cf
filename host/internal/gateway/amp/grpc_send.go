package amp

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/grpcmessage"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/grpcconn"
	"skep/host/internal/swarm"
)

// bindingOption is the option of a partner that names how its url is called, grpcBinding its value
// for gRPC.
const (
	bindingOption = "binding"
	grpcBinding   = "grpc"
)

func isCalledByGRPC(p gateway.Partner) bool { return p.Options[bindingOption] == grpcBinding }

// call sends a message by a call of gRPC: by Emit one that is owed no answer, by Invoke others. What
// the outcome means is as over HTTP.
func (g *Gateway) call(ctx context.Context, p gateway.Partner, kind message.Type, text []byte, trace swarm.Trace) (got, error) {
	base, err := url.Parse(p.URL)
	if err != nil {
		return got{}, gateway.Refuse("the url of %s cannot be called: %v", p.Name, err)
	}
	conn := grpcconn.Conn{Client: p.Client, Base: base.Scheme + "://" + base.Host, MaxMessage: int(g.maxWire())}
	sent := metadata.MD{}
	trace.Fields(func(name, value string) { sent.Set(name, value) })
	method := "/" + services[g.Token] + "/Invoke"
	if kind == message.Event {
		method = "/" + services[g.Token] + "/Emit"
	}
	var reply grpcmessage.Wire
	var trailer metadata.MD
	err = conn.Invoke(metadata.NewOutgoingContext(ctx, sent), method, wireOf(text, true), &reply, grpc.Trailer(&trailer))
	switch {
	case err != nil:
		return g.refusedCall(p, err, trailer)
	case kind == message.Event || len(reply.Raw) == 0:
		return locatedAt(base, trailer)
	}
	in, err := g.readReply(p, reply.Raw)
	if err != nil {
		return got{}, err
	}
	if isInterim(*in) {
		return locatedAt(base, trailer)
	}
	return got{message: in}, nil
}

// locatedAt is a reply without the answer: it will be where the trailer says, or comes as a message.
func locatedAt(base *url.URL, trailer metadata.MD) (reply got, err error) {
	if at := trailer.Get(locationTrailer); len(at) > 0 && at[0] != "" {
		reply.location, err = gateway.ResolveLocation(base, at[0])
	}
	return reply, err
}

// readReply reads a message of the partner.
func (g *Gateway) readReply(p gateway.Partner, raw []byte) (*message.Received, error) {
	text, _, err := g.textOf(g.Token, raw)
	if err != nil {
		return nil, gateway.Refuse("the partner's answer is no message: %v", err)
	}
	in, err := (message.Reader{Depth: g.MaxDepth}).Read(text)
	if err != nil {
		return nil, gateway.Refuse("the partner's answer is no message: %v", err)
	}
	return &in, checkAnswer(p, in)
}

// refusedCall is what the end of a call with an error means: that the message may be sent again, that
// the error message in the details is the answer, that it is refused, or that nothing is known.
func (g *Gateway) refusedCall(p gateway.Partner, err error, trailer metadata.MD) (got, error) {
	st, is := status.FromError(err)
	if !is {
		return got{}, err // of the connection, or a status of HTTP
	}
	failed := fmt.Errorf("the partner answers %s: %s", st.Code(), gateway.Excerpt(st.Message()))
	var in *message.Received
	for _, d := range st.Proto().GetDetails() {
		if strings.HasSuffix(d.GetTypeUrl(), "/amp.v1.Message") && in == nil {
			var wrong error
			if in, wrong = g.readReply(p, d.GetValue()); wrong != nil {
				return got{}, wrong
			}
		}
	}
	again := http.Header{"Retry-After": trailer.Get("retry-after")}
	switch code := st.Code(); {
	case code == codes.Unavailable:
		return got{}, gateway.StatusOf(&http.Response{StatusCode: http.StatusServiceUnavailable, Header: again})
	case code == codes.ResourceExhausted && (again.Get("Retry-After") != "" || in != nil && isLimit(*in)):
		return got{}, gateway.StatusOf(&http.Response{StatusCode: http.StatusTooManyRequests, Header: again})
	case doubtful[code] && (in == nil || code != codes.DeadlineExceeded):
		return got{}, failed
	case in != nil:
		return got{message: in}, nil
	}
	return got{}, &gateway.Refusal{Reason: failed.Error()}
}

// doubtful are the codes after which the partner may have done what was asked: as a status of HTTP
// from 500 on does not tell.
var doubtful = map[codes.Code]bool{
	codes.Unknown: true, codes.Internal: true, codes.DataLoss: true, codes.Canceled: true, codes.DeadlineExceeded: true,
}

// isLimit reports whether an error message is of a limit that passes.
func isLimit(in message.Received) bool {
	code, _, _, err := contentOf(in)
	return err == nil && code == string(message.RateLimitExceeded)
}
