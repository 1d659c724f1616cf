package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skep/spec/mail"
)

// KnownSwarm is another swarm that the host knows.
type KnownSwarm struct {
	Name string
	// Entrypoint is the agent that gets messages for the whole swarm, empty while it is
	// unknown.
	Entrypoint string
	// Description is the swarm's own description.
	Description string
	// Down means that it did not answer the last health check.
	Down bool
}

// KnownSwarms are the other swarms that the host knows. Its methods are safe for
// concurrent use.
type KnownSwarms interface {
	// List returns them, always in the same order. It returns at once. The caller owns
	// the list.
	List() []KnownSwarm
	// Discover fetches the list of swarms of a host, makes them known and returns their
	// names. It returns soon after ctx ends. Its errors are shown to agents.
	Discover(ctx context.Context, s DiscoveryRequest) ([]string, error)
}

// DiscoveryRequest is an agent's request to discover swarms.
type DiscoveryRequest struct {
	Task  TaskKey
	Agent string
	// URL is the host's, as the agent gave it.
	URL string
}

// noKnownSwarms is the empty [KnownSwarms].
type noKnownSwarms struct{}

var errNoKnownSwarms = errors.New("this host keeps no list of other swarms")

func (noKnownSwarms) List() []KnownSwarm { return nil }

func (noKnownSwarms) Discover(context.Context, DiscoveryRequest) ([]string, error) {
	return nil, errNoKnownSwarms
}

// Bounds of what an agent is shown of other swarms: their number, and the characters of
// each description.
const (
	maxShownSwarms = 32
	maxDescription = 200
)

// describeKnownSwarms lists the other swarms that the agent may write to.
func (t *Turn) describeKnownSwarms() string {
	var list []string
	for _, n := range t.rt.knownSwarms.List() {
		if n.Name != t.def.Name && t.agent.Interswarm && t.mayReach(n.Name) {
			list = append(list, n.describe())
		}
	}
	if len(list) == 0 {
		return ""
	}
	more := ""
	if len(list) > maxShownSwarms {
		more = fmt.Sprintf("\nand %d more", len(list)-maxShownSwarms)
		list = list[:maxShownSwarms]
	}
	return "\nOther swarms, in their own words:\n" + strings.Join(list, "\n") + more
}

// mayReach reports whether comm_targets names an agent of another swarm.
func (t *Turn) mayReach(swarm string) bool {
	return slices.ContainsFunc(t.agent.Targets, func(target string) bool {
		_, of, _ := strings.Cut(target, "@")
		return of == swarm || of == "*"
	})
}

// describe renders a swarm on one line. The swarm's own description stays quoted on
// this line, so that it cannot pass for the host's text.
func (n KnownSwarm) describe() string {
	text := "- " + n.Name
	if n.Entrypoint != "" {
		text += " (write to " + mail.FormatAddr(n.Entrypoint, n.Name) + ")"
	}
	if n.Down {
		text += " (does not answer now)"
	}
	if words := strings.Join(strings.Fields(n.Description), " "); words != "" {
		text += fmt.Sprintf(": %.*q", maxDescription, words)
	}
	return text
}
