package amp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"skep/host/internal/gateway"
)

// Bounds of the probes of a partner's agents (M-028).
const (
	defaultProbe  = 30 * time.Second // between two rounds
	probeTimeout  = 10 * time.Second // for one agent
	probeFailures = 3                // in a row, until the agent is unhealthy
	maxProbes     = 8                // at once
	maxProbeReply = 64 << 10         // bytes that are read
)

// probes are the results of the health probes of registered agents since the host started.
// It is safe for concurrent use.
type probes struct {
	mu    sync.Mutex
	found map[realmKey]map[string]probed // by agent
	// running are the realms with a round under way.
	running map[realmKey]bool
}

type realmKey struct{ tenant, realm string }

func realmKeyOf(c gateway.Caller) realmKey { return realmKey{c.Principal.Tenant, c.Realm} }

// probed is the health of an agent. It does not count for another endpoint.
type probed struct {
	endpoint, status string
	failures         int // probes without success, in a row
}

func newProbes() *probes {
	return &probes{found: map[realmKey]map[string]probed{}, running: map[realmKey]bool{}}
}

// of returns the health of a registered agent of a realm.
func (s *probes) of(realm realmKey, r registration) probed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, has := s.found[realm][r.Agent.ID]; has && known.endpoint == r.Endpoints.Health {
		return known
	}
	return probed{endpoint: r.Endpoints.Health, status: statusUnknown}
}

// begin reports whether a round may begin for a realm: the one before may still run.
func (s *probes) begin(realm realmKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[realm] {
		return false
	}
	s.running[realm] = true
	return true
}

// end ends a round. found replaces what is known of the realm's agents, unless it is nil.
func (s *probes) end(realm realmKey, found map[string]probed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, realm)
	switch {
	case found == nil:
	case len(found) == 0:
		delete(s.found, realm)
	default:
		s.found[realm] = found
	}
}

// Run implements [gateway.Gateway]. It probes the health of registered agents, keeps agents of ours
// registered with partners and the connection to the broker, sends events, and ends the WebSockets.
func (g *Gateway) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer context.AfterFunc(ctx, func() { close(g.stopped) })()
	if g.queue != nil {
		running.Go(func() { g.queue.run(ctx) })
	}
	running.Go(func() { g.runJoins(ctx) })
	g.openNotices(ctx)
	defer g.notices.Wait()
	g.runProbes(ctx)
	g.sockets.Close()
	return nil
}

// runProbes probes the health of registered agents until ctx ends. Each realm has rounds of its
// own: agents that do not answer hold up no other realm.
func (g *Gateway) runProbes(ctx context.Context) {
	var rounds sync.WaitGroup
	defer rounds.Wait()
	for gateway.Pause(ctx, g.Probe) {
		for _, p := range g.Partners() {
			realm := realmKeyOf(p.Caller())
			if p.May.Has(gateway.MayRegister) && g.probes.begin(realm) {
				rounds.Go(func() { g.probes.end(realm, g.probeAgents(ctx, p)) })
			}
		}
	}
}

// probeAgents probes each agent that a partner has registered with a health endpoint. It returns
// nil if they cannot be listed.
func (g *Gateway) probeAgents(ctx context.Context, p gateway.Partner) map[string]probed {
	all, err := g.registered.list(ctx, p.Caller())
	if err != nil {
		if ctx.Err() == nil {
			g.Log.Error("amp: the registered agents of a partner are not probed", "partner", p.Name, "error", err)
		}
		return nil
	}
	var (
		mu     sync.Mutex
		looks  sync.WaitGroup
		places = make(chan struct{}, maxProbes)
		found  = map[string]probed{}
	)
	for _, r := range all {
		if r.Endpoints.Health == "" {
			continue
		}
		places <- struct{}{}
		looks.Go(func() {
			defer func() { <-places }()
			got := g.probe(ctx, p, r)
			mu.Lock()
			defer mu.Unlock()
			found[r.Agent.ID] = got
		})
	}
	looks.Wait()
	return found
}

// probe asks an agent's health endpoint once, and returns the health that follows.
func (g *Gateway) probe(ctx context.Context, p gateway.Partner, r registration) probed {
	known := g.probes.of(realmKeyOf(p.Caller()), r)
	before := known.status
	status, err := g.askHealth(ctx, p, r)
	switch {
	case ctx.Err() != nil:
		return known
	case err == nil:
		known.status, known.failures = status, 0
	default:
		if known.failures++; known.failures >= probeFailures {
			known.status = statusUnhealthy
		}
	}
	switch {
	case known.status == statusUnhealthy && before != statusUnhealthy:
		g.Log.Warn("amp: a registered agent is left out, its health is not good", "partner", p.Name, "agent", r.Agent.ID, "endpoint", r.Endpoints.Health, "reason", err)
	case known.status != statusUnhealthy && before == statusUnhealthy:
		g.Log.Info("amp: a registered agent is healthy again", "partner", p.Name, "agent", r.Agent.ID)
	}
	return known
}

// askHealth returns the status in the reply of an agent's health endpoint. A reply of 200 without a
// status is healthy (M-092).
func (g *Gateway) askHealth(ctx context.Context, p gateway.Partner, r registration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	client := p.Client
	if !isOwn(p, r.Endpoints.Health) {
		client = endpointClient(g.EndpointClient, probeTimeout, r.Authentication.Credentials)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Endpoints.Health, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", &gateway.StatusError{Code: resp.StatusCode}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeReply))
	if err != nil {
		return "", err
	}
	var health struct {
		Status string `json:"status"`
	}
	if json.Unmarshal(text, &health) != nil { // it need not be JSON
		return statusHealthy, nil
	}
	switch health.Status {
	case statusUnhealthy:
		return "", fmt.Errorf("its status is %s", health.Status)
	case statusDegraded:
		return statusDegraded, nil
	}
	return statusHealthy, nil
}
