package router

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"skep/host/internal/gateway/state"
	"skep/host/internal/peer/signature"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
)

// Outbox stores the messages to deliver. [swarm.Runtime] is one.
type Outbox interface {
	Outboxes(ctx context.Context) ([]swarm.OutboxKey, error)
	NextDelivery(ctx context.Context, box swarm.OutboxKey, resting ...string) (p swarm.Delivery, ok bool, err error)
	NextWanted(ctx context.Context, box swarm.OutboxKey, wanted func(swarm.OutboxMessage) bool) (p swarm.Delivery, ok bool, err error)
	MarkDelivered(ctx context.Context, box swarm.OutboxKey, id, runner string) error
	MarkUndeliverable(ctx context.Context, box swarm.OutboxKey, id, reason string) error
	// ShowRetry shows that a message will be sent again.
	ShowRetry(box swarm.OutboxKey, message, reason string)
}

// Peer is how to reach a swarm.
type Peer struct {
	name string
	// BaseURL has no trailing slash.
	BaseURL string
	Token   string
	// GiveUp is how long a message is tried when the swarm does not answer. An
	// answer is deferred after that, see [swarm.Delivery].
	GiveUp time.Duration
	// AllowPrivate allows a private or loopback address, AllowPrivateNames a name
	// that resolves to one.
	AllowPrivate, AllowPrivateNames bool
	// BodyToken repeats the token in the wrapper, for peers that read it there.
	BodyToken bool
	// SignRequests adds this host's signature.
	SignRequests bool
	// TLS has the authorities that vouch for the swarm, and the certificate that it is
	// shown; nil takes the system's authorities.
	TLS *tls.Config

	// Carrier, if set, takes the messages instead of MAIL's routes, and the fields from
	// BaseURL on do not count but for GiveUp.
	Carrier Carrier
	// Tenant is the only tenant that may write to the swarm; empty for all.
	Tenant string
	// Gateway is the name of the carrier's gateway.
	Gateway string
	// AttemptTime is the time of one attempt of the carrier, 30 s by default. MaxAttempts
	// bounds the attempts in progress, 40 by default, of which one recipient has four
	// fifths at most; a few more are for interrupts, and for the first attempt of each
	// instance.
	AttemptTime time.Duration
	MaxAttempts int
	// FailInDoubt gives up a message which the swarm may have, instead of sending it again
	// under the same id.
	FailInDoubt bool
}

// Peers returns the swarms that mail may go to. It is safe for concurrent use.
type Peers interface {
	// Peer returns how to reach a swarm, or why that is not possible.
	Peer(name string) (Peer, error)
}

// Signer signs wrappers with this host's key. It is safe for concurrent use.
type Signer interface {
	// Sign returns the signature of a wrapper, for its metadata under
	// [signature.Member].
	Sign(wrapper []byte, way signature.Route, at time.Time) (string, error)
}

// Options of [New]. Local and Peers are required; other zeros take the defaults.
type Options struct {
	// Local is the sending swarm.
	Local string
	Peers Peers
	// Signer is required when a peer has SignRequests, State when one has FailInDoubt.
	Signer Signer
	State  state.Store
	// PeerWorkers bounds the workers of one peer, 16 by default.
	PeerWorkers int
	// PeerRequests bounds the requests in progress to one peer, 8 by default.
	// SharedRequests bounds those to all peers beyond the first of each, 64 by
	// default.
	PeerRequests, SharedRequests int
	// Egress configures the HTTP client.
	Egress egress.Options
	Logger *slog.Logger
	Now    func() time.Time
	// RandomBelow returns a random duration from 0 to below, exclusively. It must
	// be safe for concurrent use.
	RandomBelow func(below time.Duration) time.Duration
}

// Router delivers mail to other swarms. It is a [swarm.Forwarder], and safe for
// concurrent use.
type Router struct {
	opt      Options
	client   *egress.Client
	requests *requestLimiter

	mu     sync.Mutex
	queues map[string]*peerQueue
	// outbox and runCtx are nil before Run; started is when Run began.
	outbox  Outbox
	runCtx  context.Context
	started time.Time
	workers sync.WaitGroup
}

var _ swarm.Forwarder = (*Router)(nil)

// One request takes at most maxRequestTime, opening a connection at most
// connectTimeout of it. It has minRequestTime even when the time of its message
// is up.
const (
	maxRequestTime = 30 * time.Second
	connectTimeout = 5 * time.Second
	minRequestTime = time.Second
)

// maxReply bounds the body of an HTTP reply, in bytes.
const maxReply = 64 << 10

// New returns a router. It starts nothing; see [Router.Run].
func New(opt Options) *Router {
	opt.PeerWorkers, opt.PeerRequests, opt.SharedRequests = cmp.Or(opt.PeerWorkers, 16), cmp.Or(opt.PeerRequests, 8), cmp.Or(opt.SharedRequests, 64)
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.RandomBelow == nil {
		opt.RandomBelow = rand.N[time.Duration]
	}
	opt.Egress.Timeout, opt.Egress.ConnectTimeout, opt.Egress.MaxResponseBody, opt.Egress.MaxRedirects = maxRequestTime, connectTimeout, maxReply, -1
	opt.Egress.KeepAlive.MaxIdlePerHost = opt.PeerRequests
	return &Router{
		opt: opt, client: egress.New(opt.Egress), requests: newRequestLimiter(opt.SharedRequests, opt.PeerRequests, opt.Now), queues: map[string]*peerQueue{},
	}
}

// Check implements [swarm.Forwarder].
func (r *Router) Check(_ context.Context, from swarm.InstanceKey, name string) error {
	peer, err := r.opt.Peers.Peer(name)
	if err == nil && peer.Tenant != "" && peer.Tenant != from.Tenant {
		err = fmt.Errorf("'%s' is the partner of another tenant", name)
	}
	return err
}

// errStopped is the cause when workers are cancelled.
var errStopped = errors.New("the router has stopped")

// Run delivers mail, first what an earlier host has left, until ctx ends. It then
// cancels what is in progress, which stays in its outbox.
func (r *Router) Run(ctx context.Context, outbox Outbox) error {
	left, err := outbox.Outboxes(ctx)
	if err != nil && ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return fmt.Errorf("find letters to deliver: %w", err)
	}
	life, stop := context.WithCancelCause(ctx)
	r.startWorkers(life, outbox)
	for _, box := range left {
		r.Wake(box)
	}
	if len(left) > 0 {
		r.opt.Logger.Info("messages of an earlier host are delivered", "outboxes", len(left))
	}
	r.wakeDeferred(ctx)
	r.mu.Lock()
	r.outbox = nil // no worker starts any more
	r.mu.Unlock()
	stop(errStopped)
	r.workers.Wait()
	r.client.Close()
	return nil
}

// wakeDeferred wakes deferred answers until ctx ends.
func (r *Router) wakeDeferred(ctx context.Context) {
	tick := time.NewTicker(wakeInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.wakeDue()
		}
	}
}

// startWorkers starts workers for the outboxes that were woken before Run.
func (r *Router) startWorkers(life context.Context, outbox Outbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outbox, r.runCtx, r.started = outbox, life, r.opt.Now()
	for _, l := range r.queues {
		for n, ok := l.popWaiting(l.active); ok; n, ok = l.popWaiting(l.active) {
			r.startWorker(l, n)
		}
	}
}
