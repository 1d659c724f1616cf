package mcp

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// request is an HTTP request and who sent it, for the handlers of its call.
type request struct {
	caller gateway.Caller
	// swarm is the swarm of its path, empty for all.
	swarm string
	// call is the id of its JSON-RPC message, as it was written. A reply answers a request
	// of ours.
	call    string
	isReply bool
	body    []byte
	// trace is from its headers, or from the _meta of its call.
	trace swarm.Trace
	// session is the session that it belongs to, slot the place for the one that it may
	// open; both are nil without sessions.
	session *session
	slot    *slot
	// over ends with the credential and the session; without a session with the HTTP
	// request, whose context the SDK hands on.
	over context.Context
	// tool is the name of the tool that it calls.
	tool string
	// read is set when the SDK has read it.
	read atomic.Bool
}

// The causes that end a call which the client did not cancel.
var (
	errRevoked     = errors.New("the credential is not valid any more")
	errSessionOver = errors.New("the session is over")
	errHold        = errors.New("the call was held long enough")
)

type requestKey struct{}

// requestInfo is the key of the request in a token's info.
const requestInfo = "request"

func requestOf(req mcp.Request) *request {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		if q, ok := extra.TokenInfo.Extra[requestInfo].(*request); ok {
			return q
		}
	}
	return nil
}

// context is ctx that also ends with the credential and the session. Another host can answer the
// request unless that is of a session.
func (q *request) context(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(swarm.WithForwarding(ctx, swarm.ForwardingOf(q.over)))
	stop := context.AfterFunc(q.over, func() { cancel(context.Cause(q.over)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// principal identifies who owns sessions.
func principal(c gateway.Caller) string { return c.Principal.String() + "\x1f" + c.Realm }
