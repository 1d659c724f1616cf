package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skep/spec/mail"
)

// Neighbour is another swarm that the host knows.
type Neighbour struct {
	Name string
	// Entrypoint is the agent that takes what is for the whole swarm, empty while
	// the swarm has not told.
	Entrypoint string
	// Description is the swarm's own.
	Description string
	// Down says that it did not answer when it was last asked.
	Down bool
}

// Neighbours are the other swarms that the host knows. Its methods are safe for
// concurrent use.
type Neighbours interface {
	// Known lists them, always in the same order. It returns at once. The list is
	// the caller's.
	Known() []Neighbour
	// Discover asks a host which swarms it lists, makes them known and returns
	// their names. It returns soon after ctx ends. Agents are shown its errors.
	Discover(ctx context.Context, s Search) ([]string, error)
}

// Search is the wish of an agent to discover swarms.
type Search struct {
	Task  TaskKey
	Agent string
	// URL is that of a host, as the agent gave it.
	URL string
}

// alone is a host that knows nobody.
type alone struct{}

var errAlone = errors.New("this host keeps no list of other swarms")

func (alone) Known() []Neighbour { return nil }

func (alone) Discover(context.Context, Search) ([]string, error) { return nil, errAlone }

// Bounds of what an agent is told of other swarms: their number, and the
// characters of what each says of itself.
const (
	maxAround      = 32
	maxDescription = 200
)

// around tells an agent which other swarms it may write to.
func (t *Turn) around() string {
	var list []string
	for _, n := range t.rt.neighbours.Known() {
		if n.Name != t.def.Name && t.agent.Interswarm && t.mayReach(n.Name) {
			list = append(list, n.line())
		}
	}
	if len(list) == 0 {
		return ""
	}
	more := ""
	if len(list) > maxAround {
		more = fmt.Sprintf("\nand %d more", len(list)-maxAround)
		list = list[:maxAround]
	}
	return "\nOther swarms, in their own words:\n" + strings.Join(list, "\n") + more
}

// mayReach reports whether comm_targets names anybody in another swarm.
func (t *Turn) mayReach(swarm string) bool {
	return slices.ContainsFunc(t.agent.Targets, func(target string) bool {
		_, of, _ := strings.Cut(target, "@")
		return of == swarm || of == "*"
	})
}

// line describes a swarm. What it says of itself stays on the line, so that it
// cannot pass for the host's words.
func (n Neighbour) line() string {
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
