package iacp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// Name is the gateway's name in swarm.toml.
const Name = "iacp"

// Options are the settings of [gateways.iacp], and what the host lends the gateway.
type Options struct {
	Runtime gateway.Runtime
	// Network names this host in handshakes.
	Network string
	// Listen opens the socket. Mark says whether a connection of it keeps its place when
	// others come; nil for none that could.
	Listen func(context.Context) (net.Listener, error)
	Mark   func(c net.Conn, keeps bool)
	// Serve serves a request as the public listener does. The gateway authenticates the
	// peer of a connection by a request to its mount, which lasts as long as the
	// connection: so all limits of callers hold for it, and it ends with the credential.
	Serve func(http.ResponseWriter, *http.Request)
	// Partners lists the partners in force: those with a Dialer are called. Default: none.
	Partners func() []gateway.Partner
	// FirstPause is the pause after which a lost connection to a partner is made again, what a
	// store has refused is tried again, and an agent that fails is asked again; each further one
	// is twice as long, up to a minute. Default 1 s.
	FirstPause time.Duration
	// Strict refuses what the document leaves open.
	Strict bool
	// MaxBody bounds a message, in bytes, and MaxDepth the levels of its payload. Default,
	// and of MaxBody at most, the document's.
	MaxBody  int64
	MaxDepth int
	// Asks is how many messages of one realm are worked on: the load of an agent is its part
	// of them. Default 256.
	Asks int
	// Sessions bounds the connections of one realm. Default 256.
	Sessions int
	// Held bounds the frames above 8 KiB that are held for one realm, in bytes, the smaller ones in
	// its queues, and the answers above that size that it has not acknowledged. It is MaxBody at least. Default 32 MiB, and
	// twice MaxBody at least.
	Held int64
	// Heartbeat is the time between two heartbeats, Idle that without a byte from the peer
	// after which a connection ends, Ack that for an acknowledgement. Default 30 s, 90 s
	// and 10 s.
	Heartbeat, Idle, Ack time.Duration
	// AckDelay is how long the acknowledgement of a question waits for its answer, to a peer that sends
	// one question after the other. Default 10 ms.
	AckDelay time.Duration
	// FirstTime is the time for a peer's first message, AuthTime for its credential, FrameTime
	// for a frame whose first byte has come. Default 10 s, 20 s and a minute.
	FirstTime, AuthTime, FrameTime time.Duration
	// Rest is how long the worker of a connection waits for the next message before it ends. Default
	// 1 s.
	Rest time.Duration
	// Log gets what is wrong with the host, not with callers. Default: nothing is logged.
	Log *slog.Logger
}

// Gateway serves IaCP. Make one with [New].
type Gateway struct {
	Options
	reader    message.Reader
	conns     *conns
	waiting   *waiting
	early     *earlyAnswers
	calls     *calls
	relays    *relays
	loads     *loads
	deadlines *deadlines
	// breakers are of our agents, by the realms that ask them, and of the realms' agents.
	breakers *breakers
	// bigUnproven has an element for each connection that has sent a large frame before a credential.
	bigUnproven chan struct{}
	refused     refusedConns
	socket      net.Listener // nil before Open
	pushing     sync.WaitGroup
}

// New returns a gateway. It starts nothing.
func New(o Options) *Gateway {
	o.Network = cmp.Or(o.Network, "skep")
	o.MaxBody = min(cmp.Or(o.MaxBody, message.MaxSize), message.MaxSize)
	o.Held = max(cmp.Or(o.Held, max(heldBytes, 2*o.MaxBody)), o.MaxBody)
	o.MaxDepth = cmp.Or(o.MaxDepth, message.MaxDepth)
	o.Sessions, o.Asks = cmp.Or(o.Sessions, 256), cmp.Or(o.Asks, 256)
	o.Heartbeat, o.Idle, o.Ack = cmp.Or(o.Heartbeat, 30*time.Second), cmp.Or(o.Idle, 90*time.Second), cmp.Or(o.Ack, 10*time.Second)
	o.AckDelay = cmp.Or(o.AckDelay, 10*time.Millisecond)
	o.FirstTime, o.AuthTime, o.FrameTime = cmp.Or(o.FirstTime, 10*time.Second), cmp.Or(o.AuthTime, 20*time.Second), cmp.Or(o.FrameTime, time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Mark == nil {
		o.Mark = func(net.Conn, bool) {}
	}
	if o.Partners == nil {
		o.Partners = func() []gateway.Partner { return nil }
	}
	o.FirstPause, o.Rest = cmp.Or(o.FirstPause, time.Second), cmp.Or(o.Rest, time.Second)
	g := &Gateway{Options: o, reader: message.Reader{Strict: o.Strict, Depth: o.MaxDepth}, conns: newConns(o.Sessions, o.Held), waiting: newWaiting(), early: newEarlyAnswers(), bigUnproven: make(chan struct{}, bigPlaces)}
	g.relays, g.loads, g.breakers = newRelays(g), newLoads(), newBreakers(o.FirstPause)
	g.deadlines = newDeadlines(g)
	g.calls = &calls{g: g, byName: map[string]*call{}}
	return g
}

// Name implements [gateway.Gateway].
func (g *Gateway) Name() string { return Name }

// connectionPath is the mount of connections. Over HTTP there is nothing.
const connectionPath = "/iacp/v1/connection"

// Mounts implements [gateway.Gateway].
func (g *Gateway) Mounts() []gateway.Mount {
	return []gateway.Mount{{Method: http.MethodGet, Pattern: connectionPath, Proof: gateway.Bearer, Streams: true, OwnPlaces: true, Handler: http.HandlerFunc(g.serveProven)}}
}

// Open implements [gateway.Opener].
func (g *Gateway) Open(ctx context.Context) (err error) {
	g.socket, err = g.Listen(ctx)
	return err
}

// Close implements [gateway.Opener].
func (g *Gateway) Close() error {
	if g.socket == nil {
		return nil
	}
	if err := g.socket.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Run implements [gateway.Gateway]: it takes connections until ctx ends. Then their peers
// are told, and what waits for an answer gets it.
func (g *Gateway) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	defer g.pushing.Wait()
	defer g.relays.sending.Wait()
	defer serving.Wait()
	calling, endCalls := context.WithCancelCause(ctx)
	defer endCalls(errors.New(stopping))
	serving.Go(func() { g.calls.keep(calling) })
	serving.Go(func() { g.deadlines.run(ctx) })
	stop := context.AfterFunc(ctx, func() { _ = g.Close() })
	defer stop()
	for {
		c, err := g.socket.Accept()
		if err == nil {
			serving.Go(func() { g.serve(ctx, c) })
			continue
		}
		g.conns.close()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil
		}
		return err
	}
}

// Health implements [gateway.Gateway].
func (g *Gateway) Health() gateway.Health {
	h := gateway.Health{OK: g.socket != nil, Detail: "it does not listen", Connections: g.conns.len()}
	if h.OK {
		h.Detail = "listens on " + g.socket.Addr().String()
	}
	if down := g.calls.down(); h.OK && down != "" {
		h.Detail += "; not connected: " + down
	}
	return h
}

// Discover implements [gateway.Gateway]: the agents that have spoken on a partner's
// connections.
func (g *Gateway) Discover(ctx context.Context, p gateway.Partner) (list []gateway.ForeignAgent, err error) {
	err = g.calls.state(ctx, p.Name)
	names, connected := g.conns.agents(p.Caller())
	if !connected {
		return nil, cmp.Or(err, errAway)
	}
	for _, name := range names {
		list = append(list, gateway.ForeignAgent{Name: name})
	}
	return list, nil
}
