package uamp

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
)

// partnerToken is the bearer token that a socket to a partner has shown, if it can be replaced
// (U-041). It is safe for concurrent use.
type partnerToken struct {
	shown atomic.Pointer[gateway.ShownToken]
}

// watch returns the context of the request that opens the socket.
func (t *partnerToken) watch(ctx context.Context) context.Context {
	return gateway.WatchTokens(ctx, func(shown gateway.ShownToken) { t.shown.Store(&shown) })
}

// confirm records that the partner takes the token.
func (t *partnerToken) confirm() {
	if shown := t.shown.Load(); shown != nil {
		(*shown).Confirm()
	}
}

// reject forgets the token, and reports whether another may be shown.
func (t *partnerToken) reject() bool {
	shown := t.shown.Load()
	return shown != nil && (*shown).Reject()
}

// refusesToken reports whether a partner refuses the token: by its answer to the call, by the
// end of the connection, or by an error that it has signed.
func refusesToken(err error) bool {
	var answered *gateway.StatusError
	var ended *callEndError
	var no *signedRefusal
	switch {
	case errors.As(err, &no):
		return no.fault.Code == envelope.Unauthenticated
	case errors.As(err, &answered):
		return answered.Code == http.StatusUnauthorized
	case errors.As(err, &ended):
		return ended.status.Code() == codes.Unauthenticated
	}
	return websocket.CloseStatus(err) == websocket.StatusPolicyViolation
}

// errTokenReplaced is returned by what may be done again, with another token.
var errTokenReplaced = errors.New("the partner refuses the token")

// replaceToken returns [errTokenReplaced] for an error by which the partner refuses the token of
// the attempt's socket, once until it takes one, and else the error.
func (b *socketBinding) replaceToken(err error) error {
	if b.renewed || b.socket == nil || !refusesToken(err) || !b.socket.token.reject() {
		return err
	}
	b.renewed, b.unfinished = true, true // no other attempt gets the socket
	b.close()
	return errTokenReplaced
}

// confirmToken records that the partner takes the token of the attempt's socket.
func (b *socketBinding) confirmToken() {
	b.renewed = false
	b.socket.token.confirm()
}
