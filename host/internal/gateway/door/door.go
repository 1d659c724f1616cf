package door

import (
	"net/http"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
)

// Options are what a door needs of the host.
type Options struct {
	// Gateway is the name of the gateway that the door is for.
	Gateway string
	Swarm   *swarm.Runtime
	State   state.Store
	// Keep is how long answers can be read; zero is a day.
	Keep time.Duration
	// Asks bounds the tasks of a realm that run, and Rate the messages of a caller; zero
	// values do not.
	Asks int
	Rate auth.Rate
	// KeepRaw keeps the messages of realms as they came.
	KeepRaw bool
	// ExposedAgents, Partner, Identify, Renew and Record implement [gateway.Runtime].
	ExposedAgents func(c gateway.Caller) []gateway.ExposedAgent
	Partner       func(name string) (gateway.Partner, bool)
	Identify      func(r *http.Request) (gateway.Caller, error)
	Renew         func(c gateway.Caller) (gateway.Caller, error)
	Record        func(e gateway.Event)
}

// Door is a gateway's way to the runtime. It is safe for concurrent use.
type Door struct {
	opt Options
	// name is the door of the gateway's submissions.
	name  string
	rates *auth.Limiter
}

var _ gateway.Runtime = (*Door)(nil)

// New returns the door of one gateway.
func New(opt Options) *Door {
	return &Door{opt: opt, name: swarm.GatewayDoor + opt.Gateway, rates: auth.NewLimiter(opt.Rate, time.Now)}
}

// ExposedAgents is [gateway.Runtime]'s.
func (d *Door) ExposedAgents(c gateway.Caller) []gateway.ExposedAgent { return d.opt.ExposedAgents(c) }

// Partner is [gateway.Runtime]'s.
func (d *Door) Partner(name string) (gateway.Partner, bool) { return d.opt.Partner(name) }

// Identify is [gateway.Runtime]'s.
func (d *Door) Identify(r *http.Request) (gateway.Caller, error) { return d.opt.Identify(r) }

// Renew is [gateway.Runtime]'s.
func (d *Door) Renew(c gateway.Caller) (gateway.Caller, error) { return d.opt.Renew(c) }

// State is [gateway.Runtime]'s.
func (d *Door) State() state.Store { return d.opt.State }

// Record is [gateway.Runtime]'s. A message for another host is recorded there.
func (d *Door) Record(e gateway.Event) {
	if e.Verdict != gateway.SentOn {
		d.opt.Record(e)
	}
}
