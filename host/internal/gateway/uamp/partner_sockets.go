package uamp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"skep/host/internal/gateway"
)

const (
	// maxSocketUsers bounds the attempts on one socket: a partner reads so many streams on it
	// and more.
	maxSocketUsers = maxSocketStreams / 2
	// socketIdle is how long a socket without an attempt stays open.
	socketIdle = 10 * time.Second
	// socketDial bounds the opening of a socket.
	socketDial = 20 * time.Second
)

// partnerSockets are the open WebSockets to partners, and calls of gRPC which carry the same
// frames. Attempts to one partner share them. It is safe for concurrent use.
type partnerSockets struct {
	g     *Gateway
	dials singleflight.Group

	mu   sync.Mutex
	open map[socketKey]map[*partnerSocket]bool
}

// socketKey is where sockets lead, by which binding, by whose credential, since a reload makes other
// clients, and whether for the events of subscriptions.
type socketKey struct {
	client  *http.Client
	url     string
	binding string
	events  bool
}

// partnerConn carries the frames of a socket to a partner. The end of the socket's context ends it.
type partnerConn interface {
	frameConn
	// run reads frames until the connection ends, and ends the socket with the reason.
	run(s *socket)
	// leave closes it in good order, drop at once.
	leave()
	drop()
}

// partnerSocket is a socket to a partner. The mutex of its pool guards what follows partner.
type partnerSocket struct {
	*socket
	partner partnerConn
	token   partnerToken
	acks    *ackQueue
	users   int
	// retired sockets get no attempt any more: they are closed with the last one.
	retired bool
	idle    *time.Timer
}

// ended is why the socket has ended, nil while it is open.
func (s *partnerSocket) ended() error {
	if s.ctx.Err() == nil {
		return nil
	}
	if why := context.Cause(s.ctx); !errors.Is(why, context.Canceled) {
		return why
	}
	return errSocketEnded
}

func newPartnerSockets(g *Gateway) *partnerSockets {
	return &partnerSockets{g: g, open: map[socketKey]map[*partnerSocket]bool{}}
}

// acquire returns a socket for an attempt, which releases it. A new one may have ended.
func (p *partnerSockets) acquire(ctx context.Context, key socketKey, partner gateway.Partner) (*partnerSocket, error) {
	for {
		if s := p.find(key); s != nil {
			return s, nil
		}
		dialled := p.dials.DoChan(fmt.Sprintf("%p %s %s %t", key.client, key.binding, key.url, key.events), func() (any, error) {
			if s := p.peek(key); s != nil { // it was dialled after the look above
				return s, nil
			}
			return p.dial(context.WithoutCancel(ctx), key, partner)
		})
		select {
		case got := <-dialled:
			if got.Err != nil {
				return nil, got.Err
			}
			s, _ := got.Val.(*partnerSocket)
			if p.enter(s) {
				return s, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// find returns an open socket that has a place.
func (p *partnerSockets) find(key socketKey) *partnerSocket {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.open[key] {
		if s.ended() == nil && p.join(s) {
			return s
		}
	}
	return nil
}

// peek returns an open socket that has a place, without taking it.
func (p *partnerSockets) peek(key socketKey) *partnerSocket {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.open[key] {
		if s.ended() == nil && s.hasPlace() {
			return s
		}
	}
	return nil
}

// hasPlace is for holders of the pool's mutex.
func (s *partnerSocket) hasPlace() bool { return !s.retired && s.users < maxSocketUsers }

// enter counts an attempt on a new socket. It is false for one that has no place.
func (p *partnerSockets) enter(s *partnerSocket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.join(s)
}

func (p *partnerSockets) join(s *partnerSocket) bool {
	if !s.hasPlace() {
		return false
	}
	s.users++
	s.idle.Stop()
	return true
}

// release ends the use of a socket by an attempt. One that the attempt has left with a stream
// that goes on serves no other: its partner writes into the stream for as long as it is open.
func (p *partnerSockets) release(s *partnerSocket, unfinished bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	s.retired = s.retired || unfinished
	switch {
	case s.users > 0:
	case s.retired || s.ended() != nil:
		s.leave()
	default:
		s.idle.Reset(socketIdle)
	}
}

// retire closes a socket that no attempt uses.
func (p *partnerSockets) retire(s *partnerSocket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users == 0 {
		s.retired = true
		s.leave()
	}
}

// leave closes a socket in good order, unless it has ended. The mutex is held.
func (s *partnerSocket) leave() {
	if s.ended() == nil {
		s.running.Go(s.partner.leave)
	}
}

// dial opens a socket.
func (p *partnerSockets) dial(ctx context.Context, key socketKey, partner gateway.Partner) (*partnerSocket, error) {
	s := &partnerSocket{socket: newSocket(p.g, partner.Caller())}
	s.awaited, s.acks = newAwaitedFrames(), newAckQueue()
	s.ctx, s.end = context.WithCancelCause(s.token.watch(ctx))
	dial := dialWebSocket
	if key.binding == bindingGRPC {
		dial = beginPartnerCall
	}
	var err error
	if s.partner, err = dial(s.socket, key); err != nil {
		s.end(err)
		return nil, err
	}
	s.frames = s.partner
	s.idle = time.AfterFunc(socketIdle, func() { p.retire(s) })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[key] == nil {
		p.open[key] = map[*partnerSocket]bool{}
	}
	p.open[key][s] = true
	go p.serve(key, s)
	return s, nil
}

// errSocketEnded ends the attempts on a socket that its partner has closed without a reason.
var errSocketEnded = errors.New("the partner has closed the connection")

// serve reads a socket to its end.
func (p *partnerSockets) serve(key socketKey, s *partnerSocket) {
	s.running.Go(func() { s.acks.run(s.ctx) })
	s.partner.run(s.socket)
	s.end(errSocketEnded)
	p.mu.Lock()
	s.idle.Stop()
	if delete(p.open[key], s); len(p.open[key]) == 0 {
		delete(p.open, key)
	}
	p.mu.Unlock()
	s.partner.drop()
	s.running.Wait()
}
