package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"skep/host/internal/egress"
	"skep/host/internal/swarm"
)

// Office is where letters come from and what is told of them.
// [swarm.Runtime] is one.
type Office interface {
	Outboxes(ctx context.Context) ([]swarm.Outbox, error)
	NextLetter(ctx context.Context, box swarm.Outbox) (p swarm.Parcel, ok bool, err error)
	LetterDelivered(ctx context.Context, box swarm.Outbox, n int64, runner string) error
	LetterFailed(ctx context.Context, box swarm.Outbox, n int64, reason string) error
}

// Peer is how a swarm is called.
type Peer struct {
	// BaseURL has no trailing slash.
	BaseURL string
	Token   string
	// GiveUp is how long a letter is tried when the swarm does not answer.
	GiveUp time.Duration
	// Private lets it be at a private or loopback address.
	Private bool
	// BodyToken repeats the token in the wrapper, for peers that look there.
	BodyToken bool
}

// Peers knows the swarms that letters may go to. It is safe for concurrent use.
type Peers interface {
	// Peer says how a swarm is called, or why it cannot be.
	Peer(name string) (Peer, error)
}

// Options of [New]. Local and Peers are required; other zeros take the defaults.
type Options struct {
	// Local is the swarm in whose name letters are sent.
	Local string
	Peers Peers
	// Lanes bounds those of one peer, 16 by default. Flights bounds the requests
	// under way, 64 by default.
	Lanes, Flights int
	// Egress changes how swarms are reached.
	Egress egress.Options
	Logger *slog.Logger
	Now    func() time.Time
}

// Router delivers letters. It is a [swarm.Forwarder], and safe for concurrent use.
type Router struct {
	opt     Options
	client  *egress.Client
	flights chan struct{}

	mu    sync.Mutex
	lines map[string]*line
	// office and life are nil before Run; begun is when it began.
	office Office
	life   context.Context
	begun  time.Time
	lanes  sync.WaitGroup
}

var _ swarm.Forwarder = (*Router)(nil)

// flightTime bounds one request to a peer.
const flightTime = 30 * time.Second

// maxAnswer bounds what a peer may answer, in bytes.
const maxAnswer = 64 << 10

// New returns a router. It starts nothing; see [Router.Run].
func New(opt Options) *Router {
	if opt.Lanes <= 0 {
		opt.Lanes = 16
	}
	if opt.Flights <= 0 {
		opt.Flights = 64
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Egress.Timeout, opt.Egress.MaxBody, opt.Egress.MaxRedirects = flightTime, maxAnswer, -1
	return &Router{
		opt: opt, client: egress.New(opt.Egress), flights: make(chan struct{}, opt.Flights), lines: map[string]*line{},
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
	<-ctx.Done()
	r.mu.Lock()
	r.office = nil // no lane begins any more
	r.mu.Unlock()
	stop(errStopped)
	r.lanes.Wait()
	return nil
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
