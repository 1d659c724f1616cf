package acp

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/gateway/mailbox"
	"skep/host/internal/gateway/sockets"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/wire"
)

// Name is the gateway's name in swarm.toml.
const Name = "acp"

// Options are the settings of [gateways.acp], and what the host lends the gateway.
type Options struct {
	Runtime gateway.Runtime
	// PublicURL is the host's address: its host is part of agent://HOST/SWARM/AGENT. Empty
	// takes every host.
	PublicURL string
	// Strict refuses what the document leaves open.
	Strict bool
	// Declarations are the messages with the operator's header fields; nil for ACP 1.0.
	Declarations *dsl.Schema
	// Hold is how long a caller that waits is held. Default 30 s.
	Hold time.Duration
	// MaxBody bounds a message, in bytes. Default, and at most, [MaxMessage].
	MaxBody int64
	// MaxDepth bounds the levels of its JSON. Default, and at most, 64.
	MaxDepth int
	// Sessions bounds the WebSockets of one realm. Default 256.
	Sessions int
	// Pace bounds a tenant's messages on their way over WebSockets. Default: each is whole
	// within a minute.
	Pace func(tenant string) wire.Pace
	// MQTT is the broker of partners with topics, nil for none.
	MQTT *MQTT
	// Log gets what is wrong with the host, not with callers. Default: nothing is logged.
	Log *slog.Logger
}

// Gateway serves ACP. Make one with [New].
type Gateway struct {
	Options
	reader  reader
	records state.Evicting
	// host is the host of PublicURL.
	host    string
	waiting *waiting
	mailbox *mailbox.Boxes
	sockets *sockets.Set[*socket]
	queues  *queues
	// stopped is closed when the host stops.
	stopped chan struct{}
}

// New returns a gateway. It starts nothing.
func New(o Options) *Gateway {
	o.Hold = cmp.Or(o.Hold, 30*time.Second)
	o.Sessions = cmp.Or(o.Sessions, 256)
	if o.Pace == nil {
		o.Pace = func(string) wire.Pace { return wire.Within(time.Minute) }
	}
	o.MaxBody = min(cmp.Or(o.MaxBody, MaxMessage), MaxMessage)
	o.MaxDepth = min(cmp.Or(o.MaxDepth, maxDepth), maxDepth)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{Options: o, reader: reader{strict: o.Strict, depth: o.MaxDepth, large: wire.NewLargeReads()}, records: newRecords(o.Runtime.State(), maxThreads), waiting: newWaiting(), sockets: sockets.New[*socket](Name, o.Sessions), queues: &queues{byPartner: map[string]*queue{}}, stopped: make(chan struct{})}
	g.mailbox = mailbox.New(g.records, Name, readEntry)
	if o.Declarations != nil {
		g.reader.declared = o.Declarations.Root()
	}
	if u, err := url.Parse(o.PublicURL); err == nil {
		g.host = u.Host
	}
	return g
}

// Name implements [gateway.Gateway].
func (g *Gateway) Name() string { return Name }

// Health implements [gateway.Gateway].
func (g *Gateway) Health() gateway.Health {
	wrong := g.queues.state()
	return gateway.Health{OK: wrong == "", Detail: wrong, Connections: g.sockets.Len()}
}

// Run implements [gateway.Gateway]. It keeps the connections to the broker, and ends the
// WebSockets and those who wait for messages.
func (g *Gateway) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	if g.MQTT != nil {
		running.Go(func() { g.runQueues(ctx) })
	}
	<-ctx.Done()
	close(g.stopped)
	g.sockets.Close()
	return nil
}
