package amp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// Options of a partner in whose mesh agents of ours take part.
const (
	joinOption      = "join"
	joinTokenOption = "join_token"
)

// Bounds of what agents of ours do in the mesh of a partner.
const (
	defaultJoinPause = 5 * time.Second  // between two looks at which agents there are
	joinTimeout      = 10 * time.Second // for one request
	leaveTimeout     = 5 * time.Second  // for all that are made at the end
	leastLease       = time.Second      // that a mesh may grant
	unknownLease     = time.Minute      // where a mesh grants none
	lastJoinPause    = time.Minute      // between two attempts at a registry that fails
)

// joins are the agents of ours that have registered with partners since the host started.
type joins struct {
	mu      sync.Mutex
	meshes  map[realmKey]*joinedMesh
	running sync.WaitGroup
}

// joinedMesh is what was registered with one partner. Only the one round that is under way uses
// its agents.
type joinedMesh struct {
	partner gateway.Partner
	agents  map[string]*joinedAgent // by id
	busy    bool
	failure error // of the last round, nil for none
}

// joinedAgent is an agent of ours that is registered, or is to be.
type joinedAgent struct {
	// registered is the hash of the registration that the mesh has, zero for none.
	registered [sha256.Size]byte
	next       time.Time     // of the next heartbeat or attempt
	pause      time.Duration // after an attempt that has failed
}

func newJoins() *joins { return &joins{meshes: map[realmKey]*joinedMesh{}} }

// wantsJoin reports whether agents of ours register with a partner.
func wantsJoin(p gateway.Partner) bool {
	join, _ := p.Options[joinOption].(bool)
	return join && p.URL != "" && p.Client != nil
}

// runJoins keeps agents of ours registered with the partners that want it until ctx ends, and then
// removes them. Each mesh has rounds of its own: one that does not answer holds up no other.
func (g *Gateway) runJoins(ctx context.Context) {
	for {
		for _, m := range g.joins.begin(g.Partners()) {
			g.joins.running.Go(func() { g.joins.end(m, g.joinMesh(ctx, m)) })
		}
		if !gateway.Pause(ctx, g.JoinPause) {
			break
		}
	}
	g.joins.running.Wait()
	g.leaveMeshes(context.WithoutCancel(ctx))
}

// begin returns the meshes whose round may begin: those that are joined, or are to be left.
func (j *joins) begin(partners []gateway.Partner) (due []*joinedMesh) {
	j.mu.Lock()
	defer j.mu.Unlock()
	wanted := map[realmKey]bool{}
	for _, p := range partners {
		key := realmKeyOf(p.Caller())
		if wanted[key] = wantsJoin(p); !wanted[key] {
			continue
		}
		if j.meshes[key] == nil {
			j.meshes[key] = &joinedMesh{agents: map[string]*joinedAgent{}}
		}
		if m := j.meshes[key]; !m.busy {
			m.partner, m.busy, due = p, true, append(due, m)
		}
	}
	for key, m := range j.meshes {
		if wanted[key] || m.busy {
			continue
		}
		if len(m.agents) == 0 {
			delete(j.meshes, key)
			continue
		}
		m.partner.Options, m.busy, due = nil, true, append(due, m)
	}
	return due
}

func (j *joins) end(m *joinedMesh, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	m.busy, m.failure = false, err
}

// state is why agents of ours are not registered with a partner, nil for nothing.
func (j *joins) state(c gateway.Caller) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m := j.meshes[realmKeyOf(c)]; m != nil {
		return m.failure
	}
	return nil
}

// joinMesh makes one round: it registers the agents that the partner may see and that are new or
// have changed, renews the others, and removes those that are gone.
func (g *Gateway) joinMesh(ctx context.Context, m *joinedMesh) (failed error) {
	wanted := map[string][]byte{}
	if wantsJoin(m.partner) {
		for _, a := range g.Runtime.ExposedAgents(m.partner.Caller()) {
			wanted[nameOf(a)] = g.registrationFor(m.partner, a)
		}
	}
	for _, id := range sortedKeys(m.agents, wanted) {
		if ctx.Err() != nil {
			return m.failure
		}
		err := g.joinAgent(ctx, m, id, wanted[id])
		failed = cmp.Or(failed, err)
	}
	switch {
	case ctx.Err() != nil:
		return m.failure
	case failed != nil && m.failure == nil:
		g.Log.Warn("amp: agents are not registered with a partner", "partner", m.partner.Name, "reason", failed)
	case failed == nil && m.failure != nil:
		g.Log.Info("amp: agents are registered with a partner again", "partner", m.partner.Name)
	}
	return failed
}

func sortedKeys(agents map[string]*joinedAgent, wanted map[string][]byte) (ids []string) {
	for id := range agents {
		ids = append(ids, id)
	}
	for id := range wanted {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// joinAgent does what is due for one agent, whose registration is nil where it is gone. It returns
// why the agent is not as it should be.
func (g *Gateway) joinAgent(ctx context.Context, m *joinedMesh, id string, registration []byte) error {
	a := m.agents[id]
	if a == nil {
		a = &joinedAgent{}
		m.agents[id] = a
	}
	if registration == nil {
		delete(m.agents, id)
		_, err := g.askJoin(ctx, m.partner, id, deregistrationCapability, nil)
		return err
	}
	sum, now := sha256.Sum256(registration), time.Now()
	isNew := a.registered != sum
	if now.Before(a.next) && (!isNew || a.pause > 0) {
		if a.pause > 0 {
			return m.failure
		}
		return nil
	}
	var lease time.Duration
	var err error
	if !isNew {
		lease, err = g.askJoin(ctx, m.partner, id, heartbeatCapability, nil)
	}
	if isNew || isForgotten(err) {
		lease, err = g.askJoin(ctx, m.partner, id, registrationCapability, registration)
	}
	if err != nil {
		a.pause = min(max(2*a.pause, g.JoinPause), lastJoinPause)
		a.next = now.Add(a.pause)
		return err
	}
	*a = joinedAgent{registered: sum, next: now.Add(lease / 3)}
	return nil
}

// isForgotten reports whether a mesh has answered a heartbeat in a way that asks for the
// registration: it does not have the agent, or has no heartbeats.
func isForgotten(err error) bool {
	f := new(joinError)
	return errors.As(err, &f) && (f.reason == message.ReasonNotRegistered || f.code == message.CapabilityNotFound || f.code == message.AgentNotFound)
}

// joinError is what a registry answers in place of a lease.
type joinError struct {
	code         message.Code
	reason, text string
}

// Error implements error.
func (e *joinError) Error() string { return "[" + codeOf(string(e.code)) + "] " + e.text }

// registrationFor is the payload that registers an agent of ours (M-026).
func (g *Gateway) registrationFor(p gateway.Partner, a gateway.ExposedAgent) []byte {
	base, id := strings.TrimSuffix(g.PublicURL, "/")+prefixOf(g.Token), nameOf(a)
	at := endpoints{Invoke: base + invokePath, Health: base + agentsPath + id + healthSuffix}
	if isCalledByGRPC(p) {
		at.GRPC = g.PublicURL
	}
	payload := map[string]any{"agent": identityOf(a), "capabilities": describe(capabilitiesOf(a)), "endpoints": at}
	if token, has := p.Options[joinTokenOption].(interface{ Reveal() string }); has && token.Reveal() != "" {
		payload["authentication"] = authentication{Type: bearerType, Credentials: token.Reveal()}
	}
	return wire.MustEncode(payload)
}

// askJoin asks the partner's registry for one of its capabilities, and returns the lease that it
// grants. Without a payload the request names the agent alone.
func (g *Gateway) askJoin(ctx context.Context, p gateway.Partner, agent, capability string, payload []byte) (lease time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if payload == nil {
		payload = wire.MustEncode(map[string]any{"agent": map[string]string{"id": agent}})
	}
	m := message.Message{
		ID: ownID(capability, p.Caller(), agent+timestamp(time.Now())), Source: message.Source{Agent: agent},
		Destination: message.Destination{Agent: registryAgent, Capability: capability}, Payload: payload,
	}
	in, err := g.askMesh(ctx, p, m, swarm.Trace{})
	if err == nil {
		lease, err = leaseOf(in, m.ID)
	}
	if err != nil {
		err = fmt.Errorf("%s of %s: %w", capability, agent, err)
	}
	if capability != heartbeatCapability || err != nil {
		g.Runtime.Record(gateway.Event{Caller: p.Caller(), Foreign: m.ID, Type: capability, Out: true}.WithOutcome(false, err))
	}
	return lease, err
}

// leaseOf is the lease in the answer of a registry.
func leaseOf(in *message.Received, id string) (time.Duration, error) {
	if in != nil && in.Type == message.Error {
		var p struct {
			Error message.ErrorBody `json:"error"`
		}
		_ = json.Unmarshal(in.Payload, &p) // another form has no code
		reason, _ := p.Error.Details["reason"].(string)
		return 0, &joinError{p.Error.Code, reason, gateway.Excerpt(p.Error.Message)}
	}
	raw, err := resultOf(in, id)
	if err != nil {
		return 0, err
	}
	var result struct {
		Lease float64 `json:"lease_seconds"`
	}
	if json.Unmarshal(raw, &result) != nil || result.Lease <= 0 {
		return unknownLease, nil
	}
	return time.Duration(min(max(result.Lease, leastLease.Seconds()), (24*time.Hour).Seconds()) * float64(time.Second)), nil
}

// leaveMeshes removes the agents of ours from all meshes.
func (g *Gateway) leaveMeshes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	for _, m := range g.joins.meshes {
		g.joins.running.Go(func() {
			for id, a := range m.agents {
				if a.registered == ([sha256.Size]byte{}) {
					continue
				}
				if _, err := g.askJoin(ctx, m.partner, id, deregistrationCapability, nil); err != nil {
					g.Log.Warn("amp: an agent stays registered with a partner until its lease is over", "partner", m.partner.Name, "reason", err)
				}
			}
		})
	}
	g.joins.running.Wait()
}
