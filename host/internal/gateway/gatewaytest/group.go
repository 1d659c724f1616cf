package gatewaytest

import (
	"context"
	"io"
	"slices"

	"skep/host/internal/gateway"
)

// logged is a piece of an exchange in the order in which all pieces came.
type logged struct {
	e     *exchange
	piece gateway.Piece
}

// logPiece keeps the order of a piece. rt.mu is held.
func (rt *Runtime) logPiece(e *exchange, p gateway.Piece) {
	p.Agent = e.x.Agent
	rt.log = append(rt.log, logged{e, p})
	close(rt.changed)
	rt.changed = make(chan struct{})
}

// FollowEach is gateway.Runtime's. A chunk is in the log at once here.
func (rt *Runtime) FollowEach(_ context.Context, of []gateway.Exchange) (gateway.Stream, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.failure("FollowEach"); err != nil {
		return nil, err
	}
	g := &group{rt: rt, closed: make(chan struct{})}
	for _, x := range of {
		e, err := rt.find(x)
		if err != nil {
			return nil, err
		}
		g.open = append(g.open, e)
	}
	return g, nil
}

// group reads the pieces of several exchanges.
type group struct {
	rt     *Runtime
	open   []*exchange
	next   int
	closed chan struct{}
}

// Next is gateway.Stream's.
func (g *group) Next(ctx context.Context) (gateway.Piece, error) {
	for len(g.open) > 0 {
		g.rt.mu.Lock()
		log, changed := g.rt.log, g.rt.changed
		g.rt.mu.Unlock()
		for g.next < len(log) {
			one := log[g.next]
			g.next++
			i := slices.Index(g.open, one.e)
			if i < 0 {
				continue
			}
			if one.piece.Kind == gateway.End {
				g.open = slices.Delete(g.open, i, i+1)
			}
			return one.piece, nil
		}
		select {
		case <-changed:
		case <-g.closed:
			return gateway.Piece{}, io.ErrClosedPipe
		case <-ctx.Done():
			return gateway.Piece{}, context.Cause(ctx)
		}
	}
	return gateway.Piece{}, io.EOF
}

// Close is gateway.Stream's.
func (g *group) Close() error {
	close(g.closed)
	return nil
}
