package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"skep/host/internal/egress"
	"skep/host/internal/envelope"
	"skep/host/internal/swarm"
)

// Office is where letters come from and what is told of them.
// [swarm.Runtime] is one.
type Office interface {
	Outboxes(ctx context.Context) ([]swarm.Outbox, error)
	NextLetter(ctx context.Context, box swarm.Outbox, resting ...int64) (p swarm.Parcel, ok bool, err error)
	LetterDelivered(ctx context.Context, box swarm.Outbox, n int64, runner string) error
	LetterFailed(ctx context.Context, box swarm.Outbox, n int64, reason string) error
}

// Peer is how a swarm is called.
type Peer struct {
	// BaseURL has no trailing slash.
	BaseURL string
	Token   string
	// GiveUp is how long a letter is tried when the swarm does not answer. One that
	// is an answer rests after that, see [swarm.Parcel].
	GiveUp time.Duration
	// Private lets it be at a private or loopback address. PrivateNames lets its
	// name resolve to one.
	Private, PrivateNames bool
	// BodyToken repeats the token in the wrapper, for peers that look there.
	BodyToken bool
	// Signed lets letters bear the signature of this host.
	Signed bool
}

// Peers knows the swarms that letters may go to. It is safe for concurrent use.
type Peers interface {
	// Peer says how a swarm is called, or why it cannot be.
	Peer(name string) (Peer, error)
}

// Signer signs wrappers in the name of this host. It is safe for concurrent use.
type Signer interface {
	// Sign returns the signature of a wrapper, which stands in its metadata as
	// [envelope.Member].
	Sign(wrapper []byte, way envelope.Way, at time.Time) (string, error)
}

// Options of [New]. Local and Peers are required; other zeros take the defaults.
type Options struct {
	// Local is the swarm in whose name letters are sent.
	Local string
	Peers Peers
	// Signer is required when a peer is Signed.
	Signer Signer
	// Lanes bounds those of one peer, 16 by default.
	Lanes int
	// PeerFlights bounds the requests under way to one peer, 8 by default, and
	// Flights those to all peers beyond the first of each, 64 by default.
	PeerFlights, Flights int
	// Egress changes how swarms are reached.
	Egress egress.Options
	Logger *slog.Logger
	Now    func() time.Time
	// Pick chooses how long a pause is, from 0 to below, which it leaves out; by
	// default at random. It must be safe for concurrent use.
	Pick func(below time.Duration) time.Duration
}

// Router delivers letters. It is a [swarm.Forwarder], and safe for concurrent use.
type Router struct {
	opt     Options
	client  *egress.Client
	flights *gate

	mu    sync.Mutex
	lines map[string]*line
	// office and life are nil before Run; begun is when it began.
	office Office
	life   context.Context
	begun  time.Time
	lanes  sync.WaitGroup
}

var _ swarm.Forwarder = (*Router)(nil)

// One request to a peer takes no longer than flightTime, of which opening the
// connection, where there is none, takes no longer than connectTime. It has
// leastFlight also when the time of its letter is up.
const (
	flightTime  = 30 * time.Second
	connectTime = 5 * time.Second
	leastFlight = time.Second
)

// maxAnswer bounds what a peer may answer, in bytes.
const maxAnswer = 64 << 10

// New returns a router. It starts nothing; see [Router.Run].
func New(opt Options) *Router {
	opt.Lanes, opt.PeerFlights, opt.Flights = cmp.Or(opt.Lanes, 16), cmp.Or(opt.PeerFlights, 8), cmp.Or(opt.Flights, 64)
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Pick == nil {
		opt.Pick = rand.N[time.Duration]
	}
	opt.Egress.Timeout, opt.Egress.Connect, opt.Egress.MaxBody, opt.Egress.MaxRedirects = flightTime, connectTime, maxAnswer, -1
	opt.Egress.Keep.Idle = opt.PeerFlights
	return &Router{
		opt: opt, client: egress.New(opt.Egress), flights: newGate(opt.Flights, opt.PeerFlights, opt.Now), lines: map[string]*line{},
	}
}

// Check implements [swarm.Forwarder].
func (r *Router) Check(_ context.Context, _ swarm.InstanceKey, name string) error {
	_, err := r.opt.Peers.Peer(name)
	return err
}

// errStopped is the cause with which lanes end.
var errStopped = errors.New("the router has stopped")

// Run delivers letters, first those that an earlier host has left, until ctx ends.
// What is under way then is broken off, and stays in its outbox.
func (r *Router) Run(ctx context.Context, office Office) error {
	left, err := office.Outboxes(ctx)
	if err != nil && ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return fmt.Errorf("find letters to deliver: %w", err)
	}
	life, stop := context.WithCancelCause(ctx)
	r.begin(life, office)
	for _, box := range left {
		r.Wake(box)
	}
	if len(left) > 0 {
		r.opt.Logger.Info("letters of an earlier host are delivered", "outboxes", len(left))
	}
	r.watch(ctx)
	r.mu.Lock()
	r.office = nil // no lane begins any more
	r.mu.Unlock()
	stop(errStopped)
	r.lanes.Wait()
	r.client.Close()
	return nil
}

// watch wakes letters that rest, until ctx ends.
func (r *Router) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.look()
		}
	}
}

// begin lets the lanes go that were opened before.
func (r *Router) begin(life context.Context, office Office) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.office, r.life, r.begun = office, life, r.opt.Now()
	for _, l := range r.lines {
		for range min(len(l.waiting), r.opt.Lanes) {
			r.open(l, l.next())
		}
	}
}
