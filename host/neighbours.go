package host

import (
	"context"
	"fmt"
	"strings"

	"skep/host/internal/audit"
	"skep/host/internal/registry"
	"skep/host/internal/swarm"
)

// neighbours shows agents the swarms that the host knows.
type neighbours struct {
	peers *peers
	audit *audit.Log
}

var _ swarm.Neighbours = (*neighbours)(nil)

// Known implements [swarm.Neighbours]. A swarm that nobody has asked yet may well
// be there.
func (n *neighbours) Known() []swarm.Neighbour {
	if n.peers.known == nil {
		return nil
	}
	var known []swarm.Neighbour
	for _, e := range n.peers.known.Entries() {
		known = append(known, neighbour(e))
	}
	return known
}

func neighbour(e registry.Entry) swarm.Neighbour {
	return swarm.Neighbour{Name: e.Name, Entrypoint: e.Entrypoint, Description: e.Description, Down: e.Trouble != ""}
}

// Discover implements [swarm.Neighbours]. What an agent has made known is in the
// audit log; where it found nothing is, too, as far as that holds.
func (n *neighbours) Discover(ctx context.Context, s swarm.Search) ([]string, error) {
	if n.peers.known == nil {
		return nil, fmt.Errorf("the host has not started yet")
	}
	entry := audit.Entry{
		Act: "swarm.discover", Outcome: audit.Done, Tenant: s.Task.Tenant, Principal: s.Task.Instance, Target: s.URL,
		Reason: fmt.Sprintf("agent %s, task %s", s.Agent, s.Task.Task),
	}
	found, err := n.peers.known.Discover(ctx, s.URL)
	if err != nil {
		entry.Reason += ": " + err.Error()
		n.audit.Refused(entry)
		return nil, err
	}
	var names []string
	for _, e := range found {
		names = append(names, e.Name)
	}
	entry.Reason += ": " + strings.Join(names, ", ")
	return names, n.audit.Record(entry)
}
