package a2a

import (
	"net/http"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"google.golang.org/grpc"
)

// pingPause is the pause between two comments in a stream of events. They find readers
// that are gone.
const pingPause = 15 * time.Second

// bindings are the protocol's forms on the wire, which the library has. All of them use
// the same requests.
type bindings struct {
	rpc, rest http.Handler
	rpcV03    http.Handler // REST of 0.3 is not served: the libraries disagree on its form
	grpc      *grpc.Server
}

func newBindings(g *Gateway) bindings {
	handler := logged{requests{g}}
	ping := a2asrv.WithTransportKeepAlive(pingPause)
	b := bindings{
		rpc: a2asrv.NewJSONRPCHandler(handler, ping), rest: a2asrv.NewRESTHandler(handler, ping),
		rpcV03: a2av0.NewJSONRPCHandler(handler, ping),
		grpc:   grpc.NewServer(grpc.MaxRecvMsgSize(int(g.MaxBody))),
	}
	a2agrpc.NewHandler(handler).RegisterWith(b.grpc)
	return b
}

// choose returns the binding for a request below an agent's address, where rest is the
// path, and the version that the request asks for.
func (g *Gateway) choose(r *http.Request, rest string) (http.Handler, a2a.ProtocolVersion) {
	version := requestedVersion(r)
	switch {
	case rest != "":
		return g.bindings.rest, version
	case version == a2av0.Version && g.V03:
		return g.bindings.rpcV03, version
	}
	return g.bindings.rpc, version
}

// requestedVersion returns the major and minor version that a request asks for. Without
// one it is 0.3 (https://a2a-protocol.org/latest/specification/#36-versioning).
func requestedVersion(r *http.Request) a2a.ProtocolVersion {
	text := r.Header.Get(a2a.SvcParamVersion)
	if text == "" {
		text = r.URL.Query().Get(a2a.SvcParamVersion)
	}
	if text == "" {
		return a2av0.Version
	}
	if parts := strings.SplitN(text, ".", 3); len(parts) == 3 {
		text = parts[0] + "." + parts[1]
	}
	return a2a.ProtocolVersion(text)
}

// checkVersion refuses a version that a binding does not have.
func (g *Gateway) checkVersion(v a2a.ProtocolVersion, binding http.Handler) error {
	if v == a2a.Version || binding == g.bindings.rpcV03 {
		return nil
	}
	served := string(a2a.Version)
	if g.V03 {
		served += ", and over JSON-RPC " + string(a2av0.Version)
	}
	return a2a.NewError(a2a.ErrVersionNotSupported, "version "+string(v)+" is not served, only "+served+": set the header "+a2a.SvcParamVersion)
}
