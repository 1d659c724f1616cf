package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// extraAction is granted by some of the operator's files, and not by others.
const extraAction = "extra"

// grants are the operator's files, one after the other. A definition is what a file has
// granted; an older one is narrowed by the file in force.
type grants struct {
	world *world

	mu sync.Mutex
	// files are whether each file grants the extra action.
	files []bool
	// since is when the file in force was in force for sure.
	since time.Time
}

func newGrants(w *world) *grants { return &grants{world: w, files: []bool{true}, since: time.Now()} }

func digestOf(n int) string { return fmt.Sprintf("file-%d", n) }

func (g *grants) digests() (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for n := range g.files {
		list = append(list, digestOf(n))
	}
	return list
}

// definition is what a file grants, narrowed by the file in force.
func (g *grants) definition(tenant string, n int) swarm.Definition {
	actions := []string{"confirm"}
	if g.files[n] && g.files[len(g.files)-1] {
		actions = append(actions, extraAction)
	}
	confirm := abi.Tool{Name: "confirm", Description: "a person confirms", Parameters: []byte(`{"type":"object"}`)}
	extra := confirm
	extra.Name = extraAction
	exposed := []string{strings.TrimPrefix(simDoor, swarm.GatewayDoor)}
	return swarm.Definition{
		Tenant: tenant, Name: swarmName, Digest: digestOf(n), Entrypoint: "boss", Interswarm: true, Human: []abi.Tool{confirm, extra},
		Agents: []swarm.Agent{
			{Name: "boss", Targets: []string{"math", "text", "calc@" + peerName}, Entrypoint: true, CanComplete: true, Interswarm: true, Expose: exposed, Actions: actions},
			{Name: "math", Targets: []string{"boss", "text", "calc@" + peerName}, Interswarm: true, Expose: exposed, Actions: actions},
			{Name: "text", Targets: []string{"boss", "math"}, Actions: actions},
		},
		Limits: swarm.Limits{TaskMessages: 60, TaskTimeout: time.Hour, Queue: 100},
	}
}

// inForce are the definitions of the newest file.
func (g *grants) inForce() (defs []swarm.Definition) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, tenant := range tenants {
		defs = append(defs, g.definition(tenant, len(g.files)-1))
	}
	return defs
}

// reload puts a new file in force.
func (g *grants) reload(h *host, extra bool) error {
	g.mu.Lock()
	g.files = append(g.files, extra)
	g.since = time.Now().Add(time.Hour) // not yet
	var older []swarm.Definition
	for n := range len(g.files) - 1 {
		older = append(older, g.definition("", n))
	}
	g.mu.Unlock()
	h.exec.Bind(g.world.bindings())
	err := h.rt.ReplaceDefinitions(g.inForce(), older...)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = time.Now()
	return err
}

// started notes that a host has started with the newest file.
func (g *grants) started() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); g.since.After(now) {
		g.since = now
	}
}

// olderDefinitions finds older definitions for a host.
func (g *grants) olderDefinitions(h *host) swarm.Library { return library{g, h} }

type library struct {
	*grants
	host *host
}

func (l library) Definition(_ context.Context, tenant, _, digest string) (*swarm.Definition, error) {
	p := l.host.park("library "+digest, readGate)
	switch p.fault {
	case noFault, slow, unreported:
	case hostDied:
		return nil, swarm.ErrFenced
	default:
		return nil, errInjected
	}
	l.mu.Lock()
	n, files := 0, len(l.files)
	for n < files && digestOf(n) != digest {
		n++
	}
	if n == files {
		l.mu.Unlock()
		return nil, swarm.ErrNotFound
	}
	def := l.definition(tenant, n)
	l.mu.Unlock()
	l.host.park("library has "+digest, stepGate)
	return &def, nil
}

// staleTime is how long a turn may still run on what it began with after a reload.
const staleTime = 45 * time.Second

// check checks what a turn that began at a time may call.
func (g *grants) check(tools []abi.Tool, began time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	has := slices.ContainsFunc(tools, func(t abi.Tool) bool { return t.Name == extraAction })
	return !has || g.files[len(g.files)-1] || began.Before(g.since.Add(staleTime))
}
