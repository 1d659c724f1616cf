package a2a

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
)

// Name is the gateway's name in swarm.toml.
const Name = "a2a"

// Options are the settings of [gateways.a2a], and what the host lends the gateway.
type Options struct {
	Runtime gateway.Runtime
	// PublicURL is where cards say that agents are. Empty: where the card was asked for.
	PublicURL string
	// Hold is how long a caller that waits is held. Default 30 s.
	Hold time.Duration
	// Keep is how long an answer can be fetched, and a push is tried. Default 24 h.
	Keep time.Duration
	// MaxBody bounds a request, in bytes. Default 1 MiB.
	MaxBody int64
	// MaxDepth bounds the levels of its JSON. Default 64.
	MaxDepth int
	// V03 serves version 0.3 besides 1.0, Push lets callers have answers pushed.
	V03, Push bool
	// CardKey signs agent cards; nil leaves them unsigned.
	CardKey *CardKey
	// PushClient sends pushes to addresses that callers chose: it must reach public
	// addresses only, follow no redirect, add no credential and bound what it reads.
	PushClient *http.Client
	// CheckPush returns why PushClient does not reach an address. Nil: it reaches all.
	CheckPush func(address string) error
	// Tenants lists the tenants whose pushes go on after a start.
	Tenants func(context.Context) ([]string, error)
	// Log gets what is wrong with the host, not with callers. Default: nothing is logged.
	Log *slog.Logger
}

// Gateway serves A2A. Make one with [New].
type Gateway struct {
	Options
	bindings bindings
	pusher   *pusher
	cards    cards
	records  state.Evicting
	// maxAnswer bounds what a foreign task may answer, in bytes.
	maxAnswer int
}

// New returns a gateway. It starts nothing.
func New(o Options) *Gateway {
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	o.Hold = cmp.Or(o.Hold, 30*time.Second)
	o.Keep = cmp.Or(o.Keep, 24*time.Hour)
	o.MaxBody = cmp.Or(o.MaxBody, 1<<20)
	o.MaxDepth = cmp.Or(o.MaxDepth, 64)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	g := &Gateway{Options: o, cards: cards{kept: map[string]keptCard{}}, records: newRecords(o.Runtime.State(), maxConversations), maxAnswer: maxAnswer}
	g.bindings, g.pusher = newBindings(g), newPusher(g)
	return g
}

// Name implements [gateway.Gateway].
func (g *Gateway) Name() string { return Name }

// Health implements [gateway.Gateway].
func (g *Gateway) Health() gateway.Health { return gateway.Health{OK: true} }

var _ gateway.Gateway = (*Gateway)(nil)
