package uamp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/wire"
)

// Name is the gateway's name in swarm.toml.
const Name = "uamp"

// Defaults of [Options].
const (
	defaultMaxBody       = 1 << 20 // bytes
	defaultMaxDepth      = 64
	defaultSkew          = 5 * time.Minute
	defaultMaxWindow     = 1024
	defaultKeep          = 24 * time.Hour
	defaultSessions      = 256
	defaultSubscriptions = 256
)

// Gateway serves UAMP. Make one with [New].
type Gateway struct {
	*Documents
	proof  *Proof
	reader envelope.Reader
	state  state.Store
	// large bounds the long envelopes while they are read, proved and kept.
	large wire.LargeReads
	// threads are the records of conversations with foreign agents.
	threads state.Evicting
	// events are the records of events that went to subscriptions.
	events  state.Evicting
	waiting *waiting
	sockets *socketLimiter
	grpc    *grpc.Server
	// manifests are of foreign agents that are written to.
	manifests *partnerManifests
	// partnerSockets are the WebSockets to partners.
	partnerSockets *partnerSockets
	// followers go on with subscriptions; subscribing guards how many there are, and the records
	// of subscribers.
	followers   *state.Followers[struct{}]
	subscribing state.RealmLocks
	// opening has the envelopes that are being kept, by the keys of their streams.
	opening sync.Map
	// stopped is closed when the host stops.
	stopped chan struct{}
}

// envelopeRoom is for what an envelope has besides its payload, in bytes.
const envelopeRoom = 64 << 10

// New returns a gateway. It starts nothing.
func New(o Options) (*Gateway, error) {
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.MaxDepth = cmp.Or(o.MaxDepth, defaultMaxDepth)
	o.ClockSkew = cmp.Or(o.ClockSkew, defaultSkew)
	o.MaxWindow = cmp.Or(o.MaxWindow, defaultMaxWindow)
	o.Keep = cmp.Or(o.Keep, defaultKeep)
	o.Sessions = cmp.Or(o.Sessions, defaultSessions)
	o.Subscriptions = cmp.Or(o.Subscriptions, defaultSubscriptions)
	if o.Pace == nil {
		o.Pace = func(string) wire.Pace { return wire.Within(time.Minute) }
	}
	if o.Fetch == nil {
		o.Fetch = fetchesNothing{}
	}
	d, err := NewDocuments(o)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		Documents: d, proof: d.NewProof(did.NewResolver(o.Fetch, d.Log), o.RequireToken),
		reader: envelope.Reader{Strict: o.Strict, MaxBytes: int(o.MaxBody), MaxDepth: o.MaxDepth}, state: o.Runtime.State(),
		large: wire.NewLargeReads(), threads: newThreads(o.Runtime.State()), events: newEvents(o.Runtime.State()), waiting: newWaiting(),
		sockets: newSocketLimiter(o.Sessions), followers: state.NewFollowers[struct{}](), stopped: make(chan struct{}),
	}
	g.proof.large = g.large
	g.manifests = newPartnerManifests(g.proof)
	g.partnerSockets, g.grpc = newPartnerSockets(g), newGRPCServer(g)
	return g, nil
}

// fetchesNothing is a transport that reaches nobody.
type fetchesNothing struct{}

// RoundTrip implements [http.RoundTripper].
func (fetchesNothing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("DID documents are not fetched")
}

// Name implements [gateway.Gateway].
func (g *Gateway) Name() string { return Name }

// Health implements [gateway.Gateway].
func (g *Gateway) Health() gateway.Health {
	return gateway.Health{OK: true, Connections: g.sockets.open()}
}

// Mounts implements [gateway.Gateway].
func (g *Gateway) Mounts() []gateway.Mount {
	return append(append(g.Documents.Mounts(), g.grpcMounts()...),
		gateway.Mount{Method: http.MethodPost, Pattern: messagesPath, Proof: gateway.OtherProof, MaxBody: g.MaxBody + envelopeRoom, Handler: http.HandlerFunc(g.serveMessage)},
		gateway.Mount{Method: http.MethodGet, Pattern: streamPath + "*rest", Proof: gateway.OtherProof, Streams: true, Handler: http.HandlerFunc(g.serveStream)},
		gateway.Mount{Method: http.MethodGet, Pattern: socketPath, Proof: gateway.OtherProof, Streams: true, Handler: http.HandlerFunc(g.serveSocket)},
	)
}

// Run implements [gateway.Gateway]. It goes on with subscriptions, and ends those who read
// streams.
func (g *Gateway) Run(ctx context.Context) error {
	g.followers.Open(ctx)
	for pause := minFollowPause; ; pause = min(2*pause, maxFollowPause) {
		err := g.resume(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		g.Log.Warn("uamp: subscriptions of an earlier run wait", "pause", pause, "error", err)
		gateway.Pause(ctx, pause)
	}
	<-ctx.Done()
	close(g.stopped)
	g.followers.Wait()
	return nil
}
