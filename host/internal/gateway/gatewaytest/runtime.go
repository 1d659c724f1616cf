package gatewaytest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
)

// Runtime is a [gateway.Runtime] in memory. Make one with [New].
type Runtime struct {
	mu        sync.Mutex
	agents    map[agentKey]exposed
	callers   map[string]*credential
	partners  map[string]gateway.Partner
	exchanges map[exchangeKey]accepted
	order     []*exchange
	log       []logged // the pieces of all exchanges
	changed   chan struct{}
	blobs     map[swarm.BlobID][]byte
	failures  map[string]error
	events    []gateway.Event
	shown     []Shown
	maxOpen   int
	closed    map[string]bool
	draining  chan struct{}
	running   sync.WaitGroup
	state     *memory
}

var _ gateway.Runtime = (*Runtime)(nil)

type agentKey struct{ tenant, swarm, name string }

type exposed struct {
	gateway.ExposedAgent
	run Agent
}

// Shown is a piece that [Runtime.Show] got.
type Shown struct {
	Answers string
	Piece   gateway.Piece
}

// New returns a runtime without agents and callers.
func New() *Runtime {
	return &Runtime{
		agents: map[agentKey]exposed{}, callers: map[string]*credential{}, partners: map[string]gateway.Partner{},
		exchanges: map[exchangeKey]accepted{}, blobs: map[swarm.BlobID][]byte{}, failures: map[string]error{}, closed: map[string]bool{},
		changed: make(chan struct{}), draining: make(chan struct{}), state: newMemory(),
	}
}

// Expose adds or replaces an agent of a tenant.
func (rt *Runtime) Expose(tenant string, a gateway.ExposedAgent, run Agent) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.agents[agentKey{tenant, a.Swarm, a.Name}] = exposed{a, run}
}

// Hide removes an agent of a tenant.
func (rt *Runtime) Hide(tenant, swarm, name string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	delete(rt.agents, agentKey{tenant, swarm, name})
}

// AddPartner configures a realm. Without a Timeout it has a minute.
func (rt *Runtime) AddPartner(p gateway.Partner) {
	p.Timeout = cmp.Or(p.Timeout, time.Minute)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.partners[p.Name] = p
}

// LimitOpen refuses messages of a caller that has n open exchanges.
func (rt *Runtime) LimitOpen(n int) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.maxOpen = n
}

// FailNext lets the next call of a method, as "Ask", fail with err.
func (rt *Runtime) FailNext(method string, err error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.failures[method] = err
}

// failure returns the error for a call and forgets it. rt.mu is held.
func (rt *Runtime) failure(method string) error {
	err := rt.failures[method]
	delete(rt.failures, method)
	return err
}

// Drain refuses messages and ends waits, as a host that stops does.
func (rt *Runtime) Drain() { close(rt.draining) }

// Close cancels what runs and waits for its end.
func (rt *Runtime) Close() {
	rt.mu.Lock()
	for _, e := range rt.order {
		e.cancel()
	}
	rt.mu.Unlock()
	rt.running.Wait()
}

// ExposedAgents lists what the caller's tenant exposes, for users the entrypoints.
func (rt *Runtime) ExposedAgents(c gateway.Caller) (list []gateway.ExposedAgent) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for key, a := range rt.agents {
		if key.tenant == c.Principal.Tenant && visible(c, a.ExposedAgent) {
			list = append(list, a.ExposedAgent)
		}
	}
	slices.SortFunc(list, func(a, b gateway.ExposedAgent) int {
		return cmp.Or(strings.Compare(a.Swarm, b.Swarm), strings.Compare(a.Name, b.Name))
	})
	return list
}

func visible(c gateway.Caller, a gateway.ExposedAgent) bool { return !c.IsUser() || a.Entrypoint }

// Ask is gateway.Runtime's.
func (rt *Runtime) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	if err := context.Cause(ctx); err != nil {
		return gateway.Exchange{}, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.failure("Ask"); err != nil {
		return gateway.Exchange{}, err
	}
	select {
	case <-rt.draining:
		return gateway.Exchange{}, fmt.Errorf("the host stops: %w", gateway.ErrDraining)
	default:
	}
	if f := swarm.ForwardingOf(ctx); a.ID == "" && f != nil {
		a.ID = f.Key
	} else if a.ID == "" {
		a.ID = uuid.NewString()
	}
	if first, ok := rt.exchanges[keyOf(c, a.ID)]; ok {
		return first.repeat(a)
	}
	if a.Kind == gateway.Answers || a.Kind == gateway.Resumes {
		return rt.reply(c, a)
	}
	agents, err := rt.recipients(c, a)
	if err != nil {
		return gateway.Exchange{}, err
	}
	if rt.maxOpen > 0 && rt.open(c) >= rt.maxOpen {
		return gateway.Exchange{}, fmt.Errorf("too many open messages: %w", gateway.ErrBusy)
	}
	first := rt.begin(c, a, agents[0])
	for _, agent := range agents[1:] {
		other := a
		other.ID, other.Conversation = gateway.OtherID(a.ID, agent.Name), first.x.Conversation
		rt.begin(c, other, agent)
	}
	return first.x, nil
}

// recipients finds the agents that a message is for, by name. rt.mu is held.
func (rt *Runtime) recipients(c gateway.Caller, a gateway.Ask) (list []exposed, err error) {
	if len(a.To) > 1 && !c.May.Has(gateway.MayBroadcast) {
		return nil, fmt.Errorf("a message to several agents: %w", gateway.ErrDenied)
	}
	names := slices.Sorted(slices.Values(a.To))
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		agent, err := rt.recipient(c, a.Swarm, name)
		if err != nil {
			return nil, err
		}
		list = append(list, agent)
	}
	return list, nil
}

// recipient finds an agent, the entrypoint without a name. rt.mu is held.
func (rt *Runtime) recipient(c gateway.Caller, swarm, name string) (exposed, error) {
	for key, agent := range rt.agents {
		if key.tenant != c.Principal.Tenant || key.swarm != swarm || !visible(c, agent.ExposedAgent) {
			continue
		}
		if name == key.name || name == "" && agent.Entrypoint {
			return agent, nil
		}
	}
	return exposed{}, fmt.Errorf("no such agent: %w", gateway.ErrUnknown)
}

// open counts the exchanges of a caller without an answer. rt.mu is held.
func (rt *Runtime) open(c gateway.Caller) (n int) {
	for _, e := range rt.order {
		if e.key.owner == owner(c) && e.key.tenant == c.Principal.Tenant && e.answer == nil {
			n++
		}
	}
	return n
}

// begin stores an exchange and starts its agent. rt.mu is held.
func (rt *Runtime) begin(c gateway.Caller, a gateway.Ask, agent exposed) *exchange {
	conversation := a.Conversation
	if conversation == "" {
		conversation = uuid.NewString()
	}
	key := keyOf(c, a.ID)
	task := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: key.tenant, Swarm: a.Swarm, Instance: key.owner}, Task: conversation}
	ctx, cancel := context.WithCancel(context.Background())
	e := &exchange{
		rt: rt, key: key, cancel: cancel, changed: make(chan struct{}),
		x: gateway.Exchange{Caller: c, ID: a.ID, Agent: agent.Name, Task: task, Conversation: conversation, Accepted: time.Now(), Note: a.Note},
	}
	t := &Turn{Caller: c, Ask: a, Agent: agent.ExposedAgent, e: e}
	for _, before := range rt.order {
		if before.x.Task == task {
			t.History = append(t.History, before.asked)
		}
	}
	e.asked = a
	rt.exchanges[key] = accepted{a.Digest, a.Note, e}
	rt.order = append(rt.order, e)
	rt.running.Go(func() { e.end(agent.run(ctx, t)) })
	return e
}

// Partner is gateway.Runtime's.
func (rt *Runtime) Partner(name string) (gateway.Partner, bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	p, ok := rt.partners[name]
	return p, ok
}

// CheckRelay is gateway.Runtime's: the realm needs the right, and its partner the ids.
func (rt *Runtime) CheckRelay(c gateway.Caller, m gateway.Relayed) error {
	p, ok := rt.Partner(c.Realm)
	to := p
	if m.Realm != "" {
		to, _ = rt.Partner(m.Realm)
		ok = ok && to.May.Has(gateway.MayRelay)
	}
	switch {
	case !ok || !c.May.Has(gateway.MayRelay) || !p.Owns(m.From) || !to.Owns(m.To):
		return gateway.ErrDenied
	case m.Hops >= swarm.MaxHops:
		return gateway.ErrInvalid
	}
	return nil
}

// CheckRate is gateway.Runtime's: there is no limit but the failure of a test.
func (rt *Runtime) CheckRate(gateway.Caller) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.failure("CheckRate")
}

// State is gateway.Runtime's.
func (rt *Runtime) State() state.Store { return rt.state }

// Record is gateway.Runtime's.
func (rt *Runtime) Record(e gateway.Event) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.events = append(rt.events, e)
}

// Events are the recorded events, oldest first.
func (rt *Runtime) Events() []gateway.Event {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return slices.Clone(rt.events)
}

// Show is gateway.Runtime's.
func (rt *Runtime) Show(_ context.Context, of swarm.Delivery, piece gateway.Piece) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.shown = append(rt.shown, Shown{of.Wrapper.MessageID, piece})
	return rt.failure("Show")
}

// CloseRequest lets the request of an outbox message be open no more.
func (rt *Runtime) CloseRequest(id string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.closed[id] = true
}

// Waits is gateway.Runtime's.
func (rt *Runtime) Waits(_ context.Context, of swarm.Delivery) (bool, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return !rt.closed[of.Wrapper.Payload.ID], rt.failure("Waits")
}

// Shown are the pieces that were shown, oldest first.
func (rt *Runtime) Shown() []Shown {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return slices.Clone(rt.shown)
}
