package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skep/abi"
)

// Definition is one swarm as its operator composed it. It does not change
// after it was handed to [New] or [Runtime.Replace].
type Definition struct {
	Tenant string
	Name   string
	// Digest tells definitions of one swarm apart. Tasks are recorded with it;
	// empty means that there is never another one.
	Digest      string
	Version     string
	Description string
	Keywords    []string
	Public      bool
	Entrypoint  string
	// Interswarm lets it take mail from other swarms.
	Interswarm bool
	// Discovery lets supervisors look for other swarms in tasks of anybody
	// (allow_agent_discovery); else they may in those of admins.
	Discovery bool
	// Preempt makes an interrupt call off the turn its recipient has under
	// way; else it only goes before other mail.
	Preempt bool
	// BreakpointTools names MAIL tools and actions whose calls a person answers.
	BreakpointTools []string
	// Human are the actions that have no code: a person answers every call. Coded
	// are the others.
	Human  []abi.Tool
	Coded  []abi.Tool
	Agents []Agent
	Limits Limits
}

// Agent is one agent of a swarm.
type Agent struct {
	Name string
	// Targets are the addresses it may write to (comm_targets).
	Targets     []string
	Entrypoint  bool // enable_entrypoint
	CanComplete bool // can_complete_tasks
	Interswarm  bool // enable_interswarm
	Trusted     bool // it runs outside the sandbox
	// Actions names the actions it may call.
	Actions []string
	// Exclude names MAIL tools it is not given.
	Exclude []string
	Params  json.RawMessage
	Limits  TurnLimits

	// tools are made when the runtime takes the agent in, adminTools for tasks of
	// admins.
	tools, adminTools *toolset
}

// TurnLimits are the limits of one turn that the runtime enforces or tells the
// agent; zero means the host's default. The executor knows the others.
type TurnLimits struct {
	Wall      time.Duration
	Fuel      uint64
	Output    int64
	HostCalls int64
	// Spend bounds what the agent's calls of models may cost in one task.
	Spend Spend
}

// Limits bound a swarm. Zero means no limit.
type Limits struct {
	// TaskMessages is the default message limit of a task.
	TaskMessages int
	TaskTimeout  time.Duration
	// Queue bounds the messages that wait in one instance.
	Queue int
	// PeerTasks bounds the tasks that run for one other swarm's key.
	PeerTasks int
	// Instances bounds the instances the swarm has.
	Instances int
	// Spend bounds what calls of models may cost in one task.
	Spend Spend
}

// Bounds of one turn's staged effects (design: 64 messages and 4 MiB).
const (
	maxStaged      = 64
	maxStagedBytes = 4 << 20
	// MaxBody is the largest body of one message, in bytes.
	MaxBody = 256 << 10
	// MaxSubject is the longest subject, in bytes.
	MaxSubject = 4 << 10
	// defaultTurn is the wall time of a turn whose agent names none.
	defaultTurn = 10 * time.Minute
)

// agent returns the agent of that name.
func (d *Definition) agent(name string) (*Agent, bool) {
	i := slices.IndexFunc(d.Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return nil, false
	}
	return &d.Agents[i], true
}

// others returns the names of all agents but one, in file order.
func (d *Definition) others(than string) []string {
	var names []string
	for _, a := range d.Agents {
		if a.Name != than {
			names = append(names, a.Name)
		}
	}
	return names
}

func (d *Definition) check() error {
	entry, ok := d.agent(d.Entrypoint)
	if !ok {
		return fmt.Errorf("swarm %q: entrypoint %q is not one of its agents", d.Name, d.Entrypoint)
	}
	if !entry.Entrypoint {
		return fmt.Errorf("swarm %q: entrypoint %q lacks enable_entrypoint", d.Name, d.Entrypoint)
	}
	if !slices.ContainsFunc(d.Agents, func(a Agent) bool { return a.CanComplete }) {
		return fmt.Errorf("swarm %q: no agent can complete tasks", d.Name)
	}
	return nil
}
