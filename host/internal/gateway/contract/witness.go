package contract

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// witness has the calls that gateways make for callers, by the ids of these.
type witness struct {
	mu    sync.Mutex
	calls map[string][]string
}

func newWitness() *witness { return &witness{calls: map[string][]string{}} }

func (w *witness) saw(c gateway.Caller, call string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[c.Principal.ID] = append(w.calls[c.Principal.ID], call)
}

func (w *witness) forget(who string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, who)
}

// of are the calls for a caller, in order.
func (w *witness) of(who string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls[who])
}

// witnessed is a runtime whose calls for callers are seen.
type witnessed struct {
	gateway.Runtime
	w *witness
}

// Identify is gateway.Runtime's.
func (r witnessed) Identify(q *http.Request) (gateway.Caller, error) {
	c, err := r.Runtime.Identify(q)
	r.w.saw(c, "Identify")
	return c, err
}

// Ask is gateway.Runtime's.
func (r witnessed) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	r.w.saw(c, "Ask")
	return r.Runtime.Ask(ctx, c, a)
}

// CheckRelay is gateway.Runtime's.
func (r witnessed) CheckRelay(c gateway.Caller, m gateway.Relayed) error {
	r.w.saw(c, "CheckRelay")
	return r.Runtime.CheckRelay(c, m)
}

// Find is gateway.Runtime's.
func (r witnessed) Find(ctx context.Context, c gateway.Caller, id string) (gateway.Exchange, error) {
	r.w.saw(c, "Find")
	return r.Runtime.Find(ctx, c, id)
}

// Asked is gateway.Runtime's.
func (r witnessed) Asked(ctx context.Context, c gateway.Caller, d swarm.Delivery) (gateway.Exchange, error) {
	r.w.saw(c, "Asked")
	return r.Runtime.Asked(ctx, c, d)
}

// List is gateway.Runtime's.
func (r witnessed) List(ctx context.Context, c gateway.Caller, before string, limit int) ([]gateway.Exchange, error) {
	r.w.saw(c, "List")
	return r.Runtime.List(ctx, c, before, limit)
}

// ExposedAgents is gateway.Runtime's.
func (r witnessed) ExposedAgents(c gateway.Caller) []gateway.ExposedAgent {
	r.w.saw(c, "ExposedAgents")
	return r.Runtime.ExposedAgents(c)
}

// Record is gateway.Runtime's.
func (r witnessed) Record(e gateway.Event) {
	r.w.saw(e.Caller, "Record")
	r.Runtime.Record(e)
}
