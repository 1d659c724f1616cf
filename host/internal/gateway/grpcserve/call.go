package grpcserve

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"skep/host/internal/gateway/wire"
)

// Call is what the methods of a call have besides its messages.
type Call struct {
	// Request is the request of the call. Its context ends as the caller leaves or may not call
	// any more.
	Request *http.Request
	body    *body // nil in tests of methods alone
}

// Failure returns why messages are not read any more, nil where the caller or the library has
// ended them.
func (c Call) Failure() error {
	if c.body == nil {
		return nil
	}
	if why := c.body.failure.Load(); why != nil {
		return *why
	}
	return nil
}

// callKey is the key of a [Call] in the context of its methods.
type callKey struct{}

// NewContext returns a context whose methods find a request of their call.
func NewContext(ctx context.Context, r *http.Request) context.Context {
	return context.WithValue(ctx, callKey{}, Call{Request: r})
}

// NewServer returns a server without services whose messages have at most so many bytes. Its calls
// are served by [Serve].
func NewServer(maxMessage int64, more ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(more, grpc.MaxRecvMsgSize(int(maxMessage)), grpc.StatsHandler(takenMessages{}))...)
}

// IsCall reports whether a request is a call of gRPC. It answers one that is not.
func IsCall(w http.ResponseWriter, r *http.Request) bool {
	if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		return true
	}
	http.Error(w, "gRPC is served over HTTP/2, with the Content-Type application/grpc", http.StatusUnsupportedMediaType)
	return false
}

// Serve serves a call, of which at most one message is read ahead. A nil pace does not bound the
// time of a message. The library would end a call whose context ends without its status: methods
// end it, by [Begin].
func Serve(s *grpc.Server, w http.ResponseWriter, r *http.Request, maxMessage int64, pace wire.Pace) {
	b := newBody(r.Body, maxMessage, pace)
	inner := r.WithContext(context.WithValue(context.WithoutCancel(r.Context()), callKey{}, Call{r, b}))
	inner.Body = b
	s.ServeHTTP(w, inner)
}

// Begin returns the call of a method, and a context that ends with the call, as its caller leaves
// or may not call any more. end must be called.
func Begin(ctx context.Context) (_ context.Context, c Call, end func()) {
	c, _ = ctx.Value(callKey{}).(Call) // Serve has put it there
	ctx, cancel := context.WithCancelCause(ctx)
	of := c.Request.Context()
	stop := context.AfterFunc(of, func() { cancel(context.Cause(of)) })
	return ctx, c, func() { stop(); cancel(nil) }
}

// takenMessages lets the bodies of calls be read on.
type takenMessages struct{}

// HandleRPC implements [stats.Handler].
func (takenMessages) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.InPayload); ok {
		c, _ := ctx.Value(callKey{}).(Call) // Serve has put it there
		c.body.allowNext()
	}
}

// TagRPC implements [stats.Handler].
func (takenMessages) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements [stats.Handler].
func (takenMessages) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (takenMessages) HandleConn(context.Context, stats.ConnStats) {}
